//! From chains in order to rows: where a sample's cost goes.

use super::chains::{ChainId, Chains};
use super::queue::Sink;
use super::state::{Change, Mode};
use super::world::{RawFrame, World};
use heatline_profile::{EventId, SampleFold, StackNode, StackTable, Tally, Weight};

/// The rows so far, and what is needed to add to them.
pub(crate) struct Folding {
    pub chains: Chains,
    pub world: World,
    pub stacks: StackTable,
    pub fold: SampleFold,
    frames: Vec<RawFrame>,
}

impl Folding {
    pub fn new() -> Folding {
        Folding {
            chains: Chains::default(),
            world: World::new(),
            stacks: StackTable::new(),
            fold: SampleFold::new(),
            frames: Vec::new(),
        }
    }

    /// Looks a chain up in the present world and adds the sample to its row.
    #[cold]
    fn look_up(&mut self, id: ChainId, tally: Tally) -> Option<()> {
        let chain = *self.chains.get(id)?;
        let task = self.world.task(chain.key.pid, chain.key.tid);
        self.frames.clear();
        let mode = Mode::of_misc(chain.key.mode.into());
        let words = self.chains.words(&chain);
        let kernel = self.world.frames(task, mode, chain.key.ip, words, &mut self.frames);
        if self.frames.is_empty() {
            let module = self.world.modules.unmapped();
            self.frames.push((module, heatline_profile::CodeAddress::Ip(heatline_profile::ModuleAddress(0))));
        }
        let mut parent = None;
        for &(module, address) in self.frames.iter().rev() {
            parent = Some(self.stacks.intern(StackNode { parent, module, address }));
        }
        let thread = self.world.thread(task);
        let row = self.fold.add(parent?, EventId(chain.key.event), thread, tally);
        let seen = self.world.now();
        let chain = self.chains.get_mut(id)?;
        (chain.seen, chain.task, chain.kernel) = (seen, task, kernel);
        chain.row = u32::try_from(row).ok()?;
        Some(())
    }
}

impl Sink for Folding {
    #[inline]
    fn sample(&mut self, id: ChainId, weight: u64) {
        let tally = Tally::one(Weight(weight));
        match self.chains.get(id) {
            Some(chain) if chain.seen != 0 && self.world.is_current(chain.seen, chain.task, chain.kernel) => {
                self.fold.add_to(chain.row as usize, tally);
            }
            _ => {
                self.look_up(id, tally);
            }
        }
    }

    fn change(&mut self, change: Change) {
        self.world.apply(change);
    }
}
