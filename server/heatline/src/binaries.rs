//! The one list of places where binaries and their debug files are looked for.

use crate::storage::FileStorage;
use heatline_annotate::components;
use heatline_profile::{BuildId, Identity, Module, ModuleKind};
use heatline_readers::{Binaries, BinaryBytes};
use heatline_symbols::{DebugFile, Image, Locate, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder below which Debian and others install separate debug files.
const GLOBAL_DEBUG: &str = "/usr/lib/debug";

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SearchPaths {
    /// A folder under which recorded paths are looked up first.
    pub symfs: Option<PathBuf>,
    /// Folders with binaries or separate debug files.
    pub debug_dirs: Vec<PathBuf>,
    /// The folders that hold the profiles.
    pub beside: Vec<PathBuf>,
    /// The person's home, for perf's cache of binaries.
    pub home: Option<PathBuf>,
    /// Use a binary although its identity differs.
    pub allow_mismatch: bool,
}

/// The outcome of the search for one module.
pub struct Found {
    /// The image, if one was believed.
    pub image: Result<Image, String>,
    /// Where it was found.
    pub path: Option<PathBuf>,
    /// Where was looked, in order.
    pub looked: Vec<PathBuf>,
    /// An identity that differs but was used because the person asked for it: expected and found.
    pub mismatch: Option<String>,
}

impl SearchPaths {
    /// Finds the image of a module: the first in the list that has the recorded identity.
    pub fn find(&self, module: &Module) -> Found {
        let refusal = match module.kind {
            ModuleKind::Binary => None,
            ModuleKind::Kernel | ModuleKind::KernelModule => Some("kernel code: its symbols are not read yet"),
            ModuleKind::Guest => Some("code of a virtual machine"),
            ModuleKind::Vdso => Some("mapped by the kernel, not a file"),
            ModuleKind::Anonymous => Some("code generated at run time"),
            ModuleKind::Unmapped => Some("no mapping covers the address"),
        };
        let mut found = Found { image: Err(String::new()), path: None, looked: Vec::new(), mismatch: None };
        if let Some(refusal) = refusal {
            found.image = Err(refusal.into());
            return found;
        }
        let mut reason = None;
        for path in self.candidates(module) {
            found.looked.push(path.clone());
            let Ok(storage) = FileStorage::open(&path) else { continue };
            match self.open(module, &path, Arc::new(storage)) {
                Ok((image, mismatch)) => {
                    (found.image, found.path, found.mismatch) = (Ok(image), Some(path), mismatch);
                    return found;
                }
                Err(why) => reason = reason.or(Some(why)),
            }
        }
        found.image = Err(reason.unwrap_or_else(|| {
            format!("binary not found: {}; name its folder with --debug-dir or --symfs", module.path)
        }));
        found
    }

    fn open(&self, module: &Module, path: &Path, storage: Arc<dyn Storage>) -> Result<(Image, Option<String>), String> {
        let locate = Companions { search: self, binary: path };
        let image = Image::open(storage, &locate).map_err(|error| format!("{}: {error}", path.display()))?;
        let Some(expected) = &module.identity else { return Ok((image, None)) };
        let text = |identity: Option<&Identity>| identity.map_or_else(|| "none".to_owned(), ToString::to_string);
        if image.identity().is_some_and(|identity| same_identity(identity, expected)) {
            return Ok((image, None));
        }
        let difference =
            format!("{}: build id differs: expected {expected}, found {}", path.display(), text(image.identity()));
        if self.allow_mismatch { Ok((image, Some(difference))) } else { Err(difference) }
    }

    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let recorded = Path::new(&module.path);
        let below = |root: &Path| root.join(components(&module.path).collect::<PathBuf>());
        let mut list = Vec::new();
        if let Some(symfs) = &self.symfs {
            list.push(below(symfs));
            list.push(symfs.join(module.base_name()));
        }
        if recorded.is_absolute() {
            list.push(recorded.to_owned());
        }
        for folder in &self.beside {
            list.push(folder.join(module.base_name()));
        }
        let id = match &module.identity {
            Some(Identity::BuildId(id)) => Some(id),
            _ => None,
        };
        if let (Some(home), Some(id)) = (&self.home, id) {
            let cache = home.join(".debug");
            list.push(cache.join(".build-id").join(split_id(id, "")).join("elf"));
            list.push(below(&cache).join(id.to_string()).join("elf"));
        }
        for folder in &self.debug_dirs {
            list.push(folder.join(module.base_name()));
            list.push(below(folder));
            if let Some(id) = id {
                list.extend(build_id_paths(folder, id));
            }
        }
        list.dedup();
        list
    }
}

impl Binaries for SearchPaths {
    fn open(&self, module: &Module) -> Option<Arc<dyn BinaryBytes>> {
        Some(Arc::new(FileStorage::open(&self.find(module).path?).ok()?))
    }
}

/// Whether two identities are the same; a build id may be recorded with its end filled up by zeros.
fn same_identity(found: &Identity, expected: &Identity) -> bool {
    match (found, expected) {
        (Identity::BuildId(found), Identity::BuildId(expected)) => {
            let trim = |id: &BuildId| id.0.iter().rposition(|&byte| byte != 0).map_or(0, |at| at + 1);
            found.0[..trim(found)] == expected.0[..trim(expected)]
        }
        _ => found == expected,
    }
}

/// `ab/cdef…` and a suffix: how folders of build ids are laid out.
fn split_id(id: &BuildId, suffix: &str) -> PathBuf {
    let text = id.to_string();
    let (head, tail) = text.split_at(text.len().min(2));
    Path::new(head).join(format!("{tail}{suffix}"))
}

fn build_id_paths(root: &Path, id: &BuildId) -> [PathBuf; 3] {
    let folder = root.join(".build-id");
    [folder.join(split_id(id, ".debug")), folder.join(split_id(id, "")).join("elf"), root.join(split_id(id, ".debug"))]
}

/// Finds the files that belong to one binary.
pub struct Companions<'a> {
    /// The list of places.
    pub search: &'a SearchPaths,
    /// The binary.
    pub binary: &'a Path,
}

impl Companions<'_> {
    fn candidates(&self, wanted: &DebugFile<'_>) -> Vec<PathBuf> {
        let global = Path::new(GLOBAL_DEBUG);
        let folder = self.binary.parent().unwrap_or(Path::new("."));
        let roots = || self.search.debug_dirs.iter().map(PathBuf::as_path).chain([global]);
        match *wanted {
            DebugFile::BuildId(id) => roots().flat_map(|root| build_id_paths(root, id)).collect(),
            DebugFile::DebugLink { name, .. } => {
                let mut list = vec![folder.join(name), folder.join(".debug").join(name)];
                let below: PathBuf = components(&folder.to_string_lossy()).collect();
                list.extend(roots().flat_map(|root| [root.join(&below).join(name), root.join(name)]));
                list.retain(|path| path != self.binary);
                list
            }
            DebugFile::Supplementary { path, id } => {
                let base = Path::new(path).file_name().unwrap_or_default();
                let mut list = vec![folder.join(path)];
                list.extend(roots().flat_map(|root| build_id_paths(root, id)));
                list.extend(roots().map(|root| root.join(".dwz").join(base)));
                list
            }
            DebugFile::Dwo { folder: compiled, name, .. } => {
                let base = Path::new(name).file_name().unwrap_or_default();
                let mut list = vec![Path::new(compiled.unwrap_or("")).join(name), folder.join(name), folder.join(base)];
                list.extend(roots().map(|root| root.join(base)));
                list
            }
            DebugFile::Package => {
                let mut name = self.binary.as_os_str().to_owned();
                name.push(".dwp");
                let base = Path::new(&name).file_name().map(PathBuf::from).unwrap_or_default();
                let mut list = vec![PathBuf::from(&name)];
                list.extend(roots().map(|root| root.join(&base)));
                list
            }
            _ => Vec::new(),
        }
    }
}

impl Locate for Companions<'_> {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        let path = self.candidates(wanted).into_iter().find(|path| path.is_file())?;
        tracing::debug!(path = %path.display(), "debug file");
        Some(Arc::new(FileStorage::open(&path).ok()?))
    }
}
