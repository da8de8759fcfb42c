//! The modules of a recording: which mappings show one and the same image.

use super::state::FileIdentity;
use heatline_profile::{AddressSpace, BuildId, Identity, Module, ModuleId, ModuleKind, Problems};
use std::collections::HashMap;

/// Different files that are told apart at one path.
const MOST_AT_ONE_PATH: usize = 64;

/// All modules so far.
#[derive(Default)]
pub(crate) struct Modules {
    modules: Vec<Module>,
    /// Per module what the mapping records said of its file.
    files: Vec<FileIdentity>,
    by_path: HashMap<String, Vec<ModuleId>>,
}

impl Modules {
    /// The module that a user mapping shows, and whether its addresses are positions in its file.
    pub fn user(&mut self, path: &str, file: &FileIdentity) -> (ModuleId, bool) {
        let path = if path.is_empty() { "//anon" } else { path };
        let (kind, space) = kind_of(path);
        (self.find_or_add(path, kind, space, file), space == AddressSpace::FileOffset)
    }

    pub fn kernel(&mut self, name: &str) -> ModuleId {
        self.find_or_add(name, ModuleKind::Kernel, AddressSpace::Avma, &FileIdentity::None)
    }

    pub fn kernel_module(&mut self, name: &str) -> ModuleId {
        self.find_or_add(name, ModuleKind::KernelModule, AddressSpace::Avma, &FileIdentity::None)
    }

    pub fn guest(&mut self, name: &str) -> ModuleId {
        self.find_or_add(name, ModuleKind::Guest, AddressSpace::Avma, &FileIdentity::None)
    }

    pub fn hypervisor(&mut self) -> ModuleId {
        self.find_or_add("[hypervisor]", ModuleKind::Kernel, AddressSpace::Avma, &FileIdentity::None)
    }

    pub fn unmapped(&mut self) -> ModuleId {
        self.find_or_add("[unknown]", ModuleKind::Unmapped, AddressSpace::Avma, &FileIdentity::None)
    }

    pub fn all(&self) -> &[Module] {
        &self.modules
    }

    /// Gives the modules the build ids that the recorder noted by path, and hands out all.
    pub fn finish(mut self, build_ids: &[(String, BuildId)], problems: &mut Problems) -> Vec<Module> {
        for (path, id) in build_ids {
            let Some(ids) = self.by_path.get(path) else { continue };
            let nameless: Vec<ModuleId> =
                ids.iter().copied().filter(|id| self.modules[id.0 as usize].identity.is_none()).collect();
            // The recorder looked at the end, when the path led to the newest of them.
            if let Some(newest) = nameless.last() {
                self.modules[newest.0 as usize].identity = Some(Identity::BuildId(id.clone()));
            }
            if nameless.len() > 1 {
                let message = format!(
                    "{path} was replaced while it was recorded, and only its last build is known; \
                     record with --buildid-mmap to tell the builds apart"
                );
                problems.add("replaced-binary", nameless.len() as u64 - 1, None, message);
            }
        }
        self.modules
    }

    fn find_or_add(&mut self, path: &str, kind: ModuleKind, space: AddressSpace, file: &FileIdentity) -> ModuleId {
        let known = self.by_path.get(path).map_or(&[][..], |ids| ids);
        for &id in known {
            let index = id.0 as usize;
            if self.modules[index].kind == kind && same_file(&self.files[index], file) {
                refine(&mut self.files[index], file);
                return id;
            }
        }
        if let Some(&last) = known.last()
            && known.len() >= MOST_AT_ONE_PATH
        {
            return last;
        }
        let id = ModuleId(self.modules.len() as u32);
        let identity = match file {
            FileIdentity::BuildId(id) => Some(Identity::BuildId(id.clone())),
            FileIdentity::None | FileIdentity::Inode { .. } => None,
        };
        self.modules.push(Module { path: path.to_owned(), kind, identity, space });
        self.files.push(file.clone());
        self.by_path.entry(path.to_owned()).or_default().push(id);
        id
    }
}

/// What a name in a mapping record stands for.
fn kind_of(path: &str) -> (ModuleKind, AddressSpace) {
    const NO_FILE: [&str; 8] =
        ["//anon", "/dev/zero", "/anon_hugepage", "/memfd:", "/SYSV", "[heap", "[stack", "[uprobes]"];
    match path {
        "[vdso]" | "[vdso32]" | "[vdsox32]" | "[vsyscall]" => (ModuleKind::Vdso, AddressSpace::FileOffset),
        _ if NO_FILE.iter().any(|prefix| path.starts_with(prefix)) => (ModuleKind::Anonymous, AddressSpace::Avma),
        _ => (ModuleKind::Binary, AddressSpace::FileOffset),
    }
}

fn same_file(a: &FileIdentity, b: &FileIdentity) -> bool {
    match (a, b) {
        (
            FileIdentity::Inode { device, inode, generation },
            FileIdentity::Inode { device: device_b, inode: inode_b, generation: generation_b },
        ) => {
            let either_unknown = *generation == 0 || *generation_b == 0;
            device == device_b && inode == inode_b && (either_unknown || generation == generation_b)
        }
        _ => a == b,
    }
}

/// Takes over a generation that was not known before.
fn refine(known: &mut FileIdentity, new: &FileIdentity) {
    if let (FileIdentity::Inode { generation: known, .. }, FileIdentity::Inode { generation: new, .. }) = (known, new)
        && *known == 0
    {
        *known = *new;
    }
}
