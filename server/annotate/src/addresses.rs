//! The unique addresses of a profile: what has to be resolved, each once.

use heatline_profile::{CodePlace, ModuleAddress, ModuleId, Profile};
use std::ops::Range;

/// The unique look-up addresses of a profile, by module, and which of them each stack node has.
///
/// Look-up addresses: a return address has stepped back into its call.
#[derive(Clone, Debug)]
pub struct Addresses {
    all: Vec<ModuleAddress>,
    by_module: Vec<Range<usize>>,
    of_node: Vec<u32>,
    of_arcs: Vec<ArcAddresses>,
}

/// Positions of the addresses of a branch among all addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArcAddresses {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The byte before the target, which tells whether a function begins there; `None` at address 0.
    pub(crate) before: Option<u32>,
}

/// How many of the keys met last are known. Of fixed size, so that no profile can make it slow.
const RECENT: usize = 1 << 12;

impl Addresses {
    /// Collects them.
    pub fn of(profile: &Profile) -> Self {
        let of_stacks = profile.stacks.nodes().iter().map(|node| (node.module, node.address.lookup()));
        let before = |place: CodePlace| ModuleAddress(place.address.0.saturating_sub(1));
        let of_arcs = profile.arcs.iter().flat_map(|arc| {
            [(arc.from.module, arc.from.address), (arc.to.module, arc.to.address), (arc.to.module, before(arc.to))]
        });
        let keys = of_stacks.chain(of_arcs);
        // Hot code is met again and again: most keys are one of the last, and need not be sorted.
        let mut recent = vec![(ModuleId(u32::MAX), ModuleAddress(0), 0u32); RECENT];
        // The keys themselves are sorted: looking each up by its number would wait for memory.
        let mut order: Vec<(ModuleId, ModuleAddress, u32)> = Vec::new();
        let number = |(module, address): (ModuleId, ModuleAddress)| {
            let slot = &mut recent[(address.0 ^ address.0 >> 12 ^ u64::from(module.0) << 5) as usize % RECENT];
            if (slot.0, slot.1) != (module, address) {
                *slot = (module, address, order.len() as u32);
                order.push(*slot);
            }
            slot.2
        };
        let numbers: Vec<u32> = keys.map(number).collect();
        order.sort_unstable();
        let mut all = Vec::new();
        let mut by_module = vec![0..0; profile.modules.len()];
        let mut position_of = vec![0; order.len()];
        let mut last = None;
        for (module, address, number) in order {
            if last != Some((module, address)) {
                let range = &mut by_module[module.0 as usize];
                if range.end == 0 {
                    *range = all.len()..all.len();
                }
                all.push(address);
                range.end = all.len();
                last = Some((module, address));
            }
            position_of[number as usize] = all.len() as u32 - 1;
        }
        let mut position: Vec<u32> = numbers.iter().map(|number| position_of[*number as usize]).collect();
        let ends = position.split_off(profile.stacks.len());
        let of_arcs = ends.as_chunks::<3>().0.iter().zip(&profile.arcs).map(|(&[from, to, before], arc)| {
            ArcAddresses { from, to, before: (arc.to.address.0 > 0).then_some(before) }
        });
        Addresses { all, by_module, of_node: position, of_arcs: of_arcs.collect() }
    }

    /// The addresses of one module, ascending.
    pub fn of_module(&self, module: ModuleId) -> &[ModuleAddress] {
        &self.all[self.by_module[module.0 as usize].clone()]
    }

    /// The number of unique addresses.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The position of each stack node's address among all addresses, modules in the order of their numbers.
    pub(crate) fn of_nodes(&self) -> &[u32] {
        &self.of_node
    }

    /// The positions of the addresses of each branch arc.
    pub(crate) fn of_arcs(&self) -> &[ArcAddresses] {
        &self.of_arcs
    }
}
