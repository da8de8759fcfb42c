//! The one list of places where binaries and their debug files are looked for.

use crate::storage::FileStorage;
use crate::symbol_path;
use heatline_annotate::components;
use heatline_profile::{AddressSpace, BuildId, Identity, Module, ModuleKind, PdbId};
use heatline_readers::{Binaries, BinaryBytes};
use heatline_symbols::{DebugFile, IdentityMatch, Image, Locate, Nowhere, Storage};
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
    /// Symbol stores, in the syntax of `_NT_SYMBOL_PATH`.
    pub symbol_path: Option<String>,
    /// The folders that hold the profiles.
    pub beside: Vec<PathBuf>,
    /// The person's home, for perf's cache of binaries.
    pub home: Option<PathBuf>,
    /// Use a binary although its identity differs.
    pub allow_mismatch: bool,
    /// Names of kernel functions, as `/proc/kallsyms` has them.
    pub kallsyms: Option<PathBuf>,
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

impl Found {
    fn without_image(&self) -> Found {
        let image = Err(self.image.as_ref().err().cloned().unwrap_or_default());
        Found { image, path: self.path.clone(), looked: self.looked.clone(), mismatch: self.mismatch.clone() }
    }
}

impl SearchPaths {
    /// What would be found of the same module as others, if it is looked for in the same places: the same, without the
    /// image.
    pub fn as_found(&self, module: &Module, known: &Found) -> Option<Found> {
        let places = self.candidates(module);
        let same = if known.path.is_some() { places.starts_with(&known.looked) } else { places == known.looked };
        same.then(|| known.without_image())
    }

    /// Finds the image of a module: the first in the list that has the recorded identity.
    pub fn find(&self, module: &Module) -> Found {
        let refusal = match module.kind {
            ModuleKind::Binary => None,
            ModuleKind::Kernel | ModuleKind::KernelModule => Some("kernel code: --kallsyms names its functions"),
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
        if module.space == AddressSpace::Rva && module.identity.is_none() && !self.allow_mismatch {
            found.image = Err("the profile holds no identity of it, so no binary can be believed".into());
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
        let found = image.identity().map_or_else(|| "none".to_owned(), ToString::to_string);
        let difference = match expected {
            Identity::BuildId(_) => match image.identity() {
                Some(identity) if same_identity(identity, expected) => return Ok((image, None)),
                _ => format!("{}: build id differs: expected {expected}, found {found}", path.display()),
            },
            Identity::Pdb(_) => match image.fits(expected).map_err(|error| format!("{}: {error}", path.display()))? {
                IdentityMatch::Exact | IdentityMatch::Rewritten => return Ok((image, None)),
                IdentityMatch::OtherAge => format!(
                    "{}: age differs, GUID matches (relinked incrementally): expected {expected}, found {found}",
                    path.display()
                ),
                IdentityMatch::OtherBuild => {
                    format!("{}: GUID differs, another build: expected {expected}, found {found}", path.display())
                }
            },
        };
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
        if let Some(Identity::Pdb(id)) = &module.identity {
            list.extend(self.candidates_of_pe(module, id));
        }
        list.dedup();
        list
    }

    /// The image in symbol stores, then the PDB alone everywhere: a profile of a PE image names no path of either.
    fn candidates_of_pe(&self, module: &Module, id: &PdbId) -> Vec<PathBuf> {
        let stores = self.symbol_path.as_deref().map(symbol_path::folders).unwrap_or_default();
        let name = module.base_name();
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let pdb = format!("{stem}.pdb");
        let folders = || self.symfs.iter().chain(&self.beside).chain(&self.debug_dirs).chain(&stores);
        let images = stores.iter().flat_map(|folder| symbol_path::places(folder, name, id));
        images.chain(folders().flat_map(|folder| symbol_path::places(folder, &pdb, id))).collect()
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
            DebugFile::Pdb { path, id } => {
                let base = components(path).next_back().unwrap_or(path);
                let stores = self.search.symbol_path.as_deref().map(symbol_path::folders).unwrap_or_default();
                let near = [folder.to_owned()];
                let search = self.search;
                let folders =
                    near.iter().chain(&search.symfs).chain(&search.beside).chain(&search.debug_dirs).chain(&stores);
                let mut list: Vec<PathBuf> =
                    folders.flat_map(|folder| symbol_path::places(folder, base, &id)).collect();
                list.insert(1, PathBuf::from(path));
                // Of several with this name the one of this build; the asker compares and says what differs.
                if let Some(at) = list.iter().position(|path| is_build(path, &id)) {
                    list.swap(0, at);
                }
                list
            }
            _ => Vec::new(),
        }
    }
}

/// Whether a file is the PDB of this build.
fn is_build(path: &Path, id: &PdbId) -> bool {
    let Ok(storage) = FileStorage::open(path) else { return false };
    let image = Image::open(Arc::new(storage), &Nowhere);
    image.is_ok_and(|image| matches!(image.fits(&Identity::Pdb(*id)), Ok(IdentityMatch::Exact)))
}

impl Locate for Companions<'_> {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        let path = self.candidates(wanted).into_iter().find(|path| path.is_file())?;
        tracing::debug!(path = %path.display(), "debug file");
        Some(Arc::new(FileStorage::open(&path).ok()?))
    }

    fn allow_mismatch(&self) -> bool {
        self.search.allow_mismatch
    }
}
