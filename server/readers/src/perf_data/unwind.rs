//! Stacks that `--call-graph dwarf` recorded as registers and bytes, walked by the unwind information of the binaries.
//!
//! Where a stack cannot be walked to its end (it was longer than what was copied, or a binary is missing), the frames up
//! to there are kept.

use super::bytes::Order;
use super::chains::Key;
use super::elf::ElfImage;
use super::mappings::Mapping;
use super::world::World;
use crate::Binaries;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use heatline_profile::{BuildId, Identity, Module, ModuleId, ModuleKind};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

/// Frames of one stack.
const MOST_FRAMES: usize = 1024;

/// What is further than this above the stack pointer is no part of the stack.
const LARGEST_STACK: usize = 8 << 20;

/// Processes whose unwinders are kept.
const MOST_PROCESSES: usize = 256;

/// Numbers of the registers in perf's order, on x86-64.
mod x86_64 {
    pub const BP: u32 = 6;
    pub const SP: u32 = 7;
    pub const IP: u32 = 8;
}

/// Numbers of the registers in perf's order, on AArch64.
mod aarch64 {
    pub const FP: u32 = 29;
    pub const LR: u32 = 30;
    pub const SP: u32 = 31;
    pub const PC: u32 = 32;
}

/// The machine that recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// By the name in the header, or else by which registers were recorded.
    pub fn guess(name: Option<&str>, registers: u64) -> Option<Machine> {
        match name {
            Some("x86_64") => Some(Machine::X86_64),
            Some("aarch64") => Some(Machine::Aarch64),
            Some(_) => None,
            None if registers >> aarch64::PC & 1 == 1 => Some(Machine::Aarch64),
            None => Some(Machine::X86_64),
        }
    }
}

/// A stack as recorded, waiting to be walked.
pub(crate) struct Dump {
    pub key: Key,
    /// The recorded chain: the kernel's part.
    pub chain: Vec<u64>,
    pub machine: Machine,
    pub registers: Vec<u64>,
    pub mask: u64,
    pub stack: Vec<u8>,
}

impl Dump {
    /// Its share of memory, about.
    pub fn bytes(&self) -> usize {
        self.stack.len() + 8 * (self.registers.len() + self.chain.len()) + size_of::<Dump>()
    }

    fn register(&self, number: u32) -> Option<u64> {
        if self.mask >> number & 1 == 0 {
            return None;
        }
        let before = self.mask & ((1 << number) - 1);
        self.registers.get(before.count_ones() as usize).copied()
    }

    /// The user instruction pointer.
    pub fn ip(&self) -> Option<u64> {
        self.register(match self.machine {
            Machine::X86_64 => x86_64::IP,
            Machine::Aarch64 => aarch64::PC,
        })
    }
}

type Bytes = Arc<[u8]>;

/// The unwinder of one process, up to date with its mappings of a certain version.
struct Process<U> {
    unwinder: U,
    version: u32,
}

/// Walks stacks.
pub(crate) struct Unwinding {
    binaries: Arc<dyn Binaries>,
    order: Order,
    build_ids: Vec<(String, BuildId)>,
    images: HashMap<ModuleId, Option<Arc<ElfImage>>>,
    x86_64: Processes<UnwinderX86_64<Bytes>>,
    x86_64_cache: CacheX86_64,
    aarch64: Processes<UnwinderAarch64<Bytes>>,
    aarch64_cache: CacheAarch64,
    /// Of how many bytes the largest copy of a stack is.
    largest: usize,
    depths: Depths,
}

/// How far stacks could be walked.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Depths {
    /// All stacks.
    pub walked: u64,
    /// Those that go on where the copied bytes end.
    pub beyond: u64,
}

type Processes<U> = FxHashMap<u32, Process<U>>;

impl Unwinding {
    /// `build_ids` are those that the header gives by path.
    pub fn new(binaries: Arc<dyn Binaries>, order: Order, build_ids: Vec<(String, BuildId)>) -> Unwinding {
        Unwinding {
            binaries,
            order,
            build_ids,
            images: HashMap::new(),
            x86_64: Processes::default(),
            x86_64_cache: CacheX86_64::new(),
            aarch64: Processes::default(),
            aarch64_cache: CacheAarch64::new(),
            largest: 0,
            depths: Depths::default(),
        }
    }

    /// How far stacks could be walked so far.
    pub fn depths(&self) -> Depths {
        self.depths
    }

    /// Binaries that were needed and not found, or are none that can be used.
    pub fn missing(&self) -> impl Iterator<Item = ModuleId> {
        self.images.iter().filter(|(_, image)| image.is_none()).map(|(&module, _)| module)
    }

    /// Adds the user addresses of a stack to `words`, innermost first, as the present mappings of its task have it.
    pub fn walk(&mut self, dump: &Dump, task: u32, world: &World, words: &mut Vec<u64>) {
        let Some(ip) = dump.ip() else { return };
        let stack = StackBytes { order: self.order, bytes: &dump.stack, ends_early: Cell::new(false) };
        match dump.machine {
            Machine::X86_64 => {
                let (Some(sp), Some(bp)) = (dump.register(x86_64::SP), dump.register(x86_64::BP)) else {
                    words.push(ip);
                    return;
                };
                let mut processes = std::mem::take(&mut self.x86_64);
                let unwinder = self.unwinder(&mut processes, task, world);
                let registers = UnwindRegsX86_64::new(ip, sp, bp);
                collect(unwinder, ip, registers, &mut self.x86_64_cache, |at| stack.read(sp, at), words);
                self.x86_64 = processes;
            }
            Machine::Aarch64 => {
                let (Some(lr), Some(sp), Some(fp)) =
                    (dump.register(aarch64::LR), dump.register(aarch64::SP), dump.register(aarch64::FP))
                else {
                    words.push(ip);
                    return;
                };
                let mut processes = std::mem::take(&mut self.aarch64);
                let unwinder = self.unwinder(&mut processes, task, world);
                let mask = PtrAuthMask::from_max_known_address(unwinder.max_known_code_address());
                let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp);
                collect(unwinder, ip, registers, &mut self.aarch64_cache, |at| stack.read(sp, at), words);
                self.aarch64 = processes;
            }
        }
        // Of a smaller copy there was no more to copy.
        self.largest = self.largest.max(dump.stack.len());
        self.depths.walked += 1;
        self.depths.beyond += u64::from(stack.ends_early.get() && dump.stack.len() == self.largest);
    }

    /// The unwinder of a task's process, with its present mappings.
    fn unwinder<'p, U>(&mut self, processes: &'p mut Processes<U>, task: u32, world: &World) -> &'p U
    where
        U: Unwinder<Module = framehop::Module<Bytes>> + Default,
    {
        let (process, version) = world.mappings_version(task);
        if processes.len() >= MOST_PROCESSES && !processes.contains_key(&process) {
            processes.clear();
        }
        let entry = processes.entry(process).or_insert_with(|| Process { unwinder: U::default(), version: 0 });
        if entry.version != version {
            entry.unwinder = U::default();
            entry.version = version;
            for mapping in world.mappings(task) {
                if let Some(module) = self.module(mapping, world) {
                    entry.unwinder.add_module(module);
                }
            }
        }
        &entry.unwinder
    }

    fn module(&mut self, mapping: &Mapping, world: &World) -> Option<framehop::Module<Bytes>> {
        let image = self.image(mapping.module, world)?;
        let address = image.address_of(mapping.file_offset?)?;
        let bias = mapping.start.checked_sub(address)?;
        let (eh_frame, header) = (image.eh_frame.as_ref(), image.eh_frame_header.as_ref());
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: image.text.clone(),
            got_svma: image.got.clone(),
            eh_frame_svma: eh_frame.map(|section| section.addresses.clone()),
            eh_frame: eh_frame.map(|section| section.bytes.clone()),
            eh_frame_hdr_svma: header.map(|section| section.addresses.clone()),
            eh_frame_hdr: header.map(|section| section.bytes.clone()),
            debug_frame: image.debug_frame.as_ref().map(|section| section.bytes.clone()),
            ..ExplicitModuleSectionInfo::default()
        };
        Some(framehop::Module::new(String::new(), mapping.start..mapping.end, bias, sections))
    }

    fn image(&mut self, id: ModuleId, world: &World) -> Option<Arc<ElfImage>> {
        if let Some(image) = self.images.get(&id) {
            return image.clone();
        }
        let module = world.modules.all().get(id.0 as usize)?;
        let image = match module.kind {
            ModuleKind::Binary => self.open(module).map(Arc::new),
            _ => return None,
        };
        self.images.insert(id, image.clone());
        image
    }

    fn open(&self, module: &Module) -> Option<ElfImage> {
        let mut module = module.clone();
        if module.identity.is_none() {
            let known = self.build_ids.iter().find(|(path, _)| *path == module.path);
            module.identity = known.map(|(_, id)| Identity::BuildId(id.clone()));
        }
        ElfImage::read(self.binaries.open(&module)?)
    }
}

/// The copied part of a stack.
struct StackBytes<'a> {
    order: Order,
    bytes: &'a [u8],
    /// Whether more of the stack was asked for than was copied.
    ends_early: Cell<bool>,
}

impl StackBytes<'_> {
    fn read(&self, sp: u64, address: u64) -> Result<u64, ()> {
        let position = address.checked_sub(sp).and_then(|distance| usize::try_from(distance).ok()).ok_or(())?;
        let word = self.order.u64_at(self.bytes, position);
        if word.is_none() && position < LARGEST_STACK {
            self.ends_early.set(true);
        }
        word.ok_or(())
    }
}

fn collect<U: Unwinder>(
    unwinder: &U,
    ip: u64,
    registers: U::UnwindRegs,
    cache: &mut U::Cache,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
    words: &mut Vec<u64>,
) {
    let mut frames = unwinder.iter_frames(ip, registers, cache, &mut read);
    while let Ok(Some(frame)) = frames.next()
        && words.len() < MOST_FRAMES
    {
        words.push(match frame {
            FrameAddress::InstructionPointer(address) => address,
            FrameAddress::ReturnAddress(address) => address.get(),
        });
    }
}
