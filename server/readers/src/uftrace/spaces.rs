//! The members `sid-….map`: where the images of a session were mapped, and the modules that follow from it.
//!
//! The recorder writes one line per image, from the start of its first segment to the end of its last:
//! `55d0c0a00000-55d0c0a05000 r-xp 00000000 00:00 0   /bin/app build-id:ab…`

use super::info::parse_build_id;
use heatline_profile::{AddressSpace, Identity, Module, ModuleAddress, ModuleId, ModuleKind};
use std::collections::HashMap;
use std::sync::Arc;

/// More images than this in one session are left out.
const MOST_IMAGES: usize = 1 << 16;

/// How far a library reaches at most of which only the start is known.
const LONGEST_LIBRARY: u64 = 1 << 30;

/// All modules, each once.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub all: Vec<Module>,
    /// The numbers of those with a path.
    by_path: HashMap<String, Vec<u32>>,
    unknown: Option<ModuleId>,
    kernel: Option<ModuleId>,
}

impl Modules {
    pub fn find_or_add(&mut self, path: &str, identity: Option<Identity>) -> ModuleId {
        let same = |number: &&u32| self.all.get(**number as usize).is_some_and(|module| module.identity == identity);
        let known = self.by_path.get(path).and_then(|numbers| numbers.iter().find(same).copied());
        let at = known.unwrap_or_else(|| {
            let (kind, space) = if path.starts_with('[') {
                (ModuleKind::Vdso, AddressSpace::Avma)
            } else {
                (ModuleKind::Binary, AddressSpace::FromFirstSegment)
            };
            let number = self.all.len() as u32;
            self.all.push(Module { path: path.into(), kind, identity, space });
            self.by_path.entry(path.to_owned()).or_default().push(number);
            number
        });
        ModuleId(at)
    }

    /// The module with a path, whatever its identity, a new one without if need be.
    fn find_or_add_path(&mut self, path: &str) -> ModuleId {
        let known = self.by_path.get(path).and_then(|numbers| numbers.first().copied());
        known.map_or_else(|| self.find_or_add(path, None), ModuleId)
    }

    /// The module of code that no image holds.
    pub fn unknown(&mut self) -> ModuleId {
        self.unknown.unwrap_or_else(|| {
            let id = self.add_nameless("[unknown]", ModuleKind::Unmapped);
            *self.unknown.insert(id)
        })
    }

    /// The module of the kernel.
    pub fn kernel(&mut self) -> ModuleId {
        self.kernel.unwrap_or_else(|| {
            let id = self.add_nameless("[kernel.kallsyms]", ModuleKind::Kernel);
            *self.kernel.insert(id)
        })
    }

    fn add_nameless(&mut self, path: &str, kind: ModuleKind) -> ModuleId {
        self.all.push(Module { path: path.into(), kind, identity: None, space: AddressSpace::Avma });
        ModuleId(self.all.len() as u32 - 1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    module: ModuleId,
}

/// The images of one session; those of a program that is executed again are kept once.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    ranges: Arc<Vec<Range>>,
}

impl Space {
    /// Reads a map. The executable's build id comes from `info` where the map has none.
    pub fn parse(bytes: &[u8], executable: Option<&(String, Option<Identity>)>, modules: &mut Modules) -> Space {
        let mut ranges = Vec::new();
        for line in bytes.split(|&byte| byte == b'\n').take(MOST_IMAGES) {
            let _ = Self::line(&mut ranges, &String::from_utf8_lossy(line), executable, modules);
        }
        ranges.sort_by_key(|range| range.start);
        Space { ranges: Arc::new(ranges) }
    }

    fn line(
        ranges: &mut Vec<Range>,
        line: &str,
        executable: Option<&(String, Option<Identity>)>,
        modules: &mut Modules,
    ) -> Option<()> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        // Permissions, offset, device and inode come before the path.
        let mut path = rest;
        for _ in 0..4 {
            path = path.trim_start().split_once(' ')?.1;
        }
        let (path, build_id) = path.trim().split_once(" build-id:").unwrap_or((path.trim(), ""));
        if path.is_empty() || path.starts_with('[') || end <= start {
            return None;
        }
        if let Some(last) = ranges.last_mut()
            && modules.all.get(last.module.0 as usize).is_some_and(|module| module.path == path)
        {
            last.end = last.end.max(end);
            return Some(());
        }
        let known = || executable.filter(|(exe, _)| exe == path).and_then(|(_, identity)| identity.clone());
        let identity = parse_build_id(build_id).map(Identity::BuildId).or_else(known);
        ranges.push(Range { start, end, module: modules.find_or_add(path, identity) });
        Some(())
    }

    /// Adds a library of which only the start is known.
    pub fn add_library(&mut self, base: u64, path: &str, modules: &mut Modules) {
        let at = self.ranges.partition_point(|range| range.start < base);
        if self.ranges.len() >= MOST_IMAGES || self.find(base).is_some() {
            return;
        }
        let next = self.ranges.get(at).map_or(u64::MAX, |range| range.start);
        let end = next.min(base.saturating_add(LONGEST_LIBRARY));
        let module = modules.find_or_add_path(path);
        Arc::make_mut(&mut self.ranges).insert(at, Range { start: base, end, module });
    }

    /// The module that holds an address, and where in it.
    pub fn find(&self, address: u64) -> Option<(ModuleId, ModuleAddress)> {
        let at = self.ranges.partition_point(|range| range.start <= address).checked_sub(1)?;
        let range = self.ranges.get(at).filter(|range| address < range.end)?;
        Some((range.module, ModuleAddress(address - range.start)))
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_found_by_address_with_their_build_ids() {
        let text = "1000-5000 r-xp 00000000 00:00 0                          /bin/an app build-id:abcd\n\
            6000-7000 r--p 00000000 00:00 0   /lib/x.so\n7000-9000 r-xp 00001000 00:00 0   /lib/x.so\n\
            f000-f800 rw-p 00000000 00:00 0   [stack]\nnonsense";
        let mut modules = Modules::default();
        let mut space = Space::parse(text.as_bytes(), None, &mut modules);
        assert_eq!(space.find(0x1234), Some((ModuleId(0), ModuleAddress(0x234))));
        assert_eq!(space.find(0x8000), Some((ModuleId(1), ModuleAddress(0x2000))));
        assert_eq!((space.find(0x5000), space.find(0xf100), space.find(0)), (None, None, None));
        assert_eq!(modules.all[0].path, "/bin/an app");
        assert_eq!(modules.all[0].identity.as_ref().map(ToString::to_string).as_deref(), Some("abcd"));
        space.add_library(0xa000, "/lib/late.so", &mut modules);
        assert_eq!(space.find(0xb000), Some((ModuleId(2), ModuleAddress(0x1000))));
    }

    #[test]
    fn a_path_with_another_identity_is_another_module() {
        let mut modules = Modules::default();
        let identity = |text| parse_build_id(text).map(Identity::BuildId);
        let [first, other] = ["ab", "cd"].map(|id| modules.find_or_add("/lib/x.so", identity(id)));
        assert_ne!(first, other);
        assert_eq!(modules.find_or_add("/lib/x.so", identity("cd")), other);
        assert_eq!(modules.find_or_add_path("/lib/x.so"), first);
        assert_eq!(modules.find_or_add_path("/lib/y.so"), ModuleId(2));
    }
}
