//! The unique addresses of a profile: what has to be resolved, each once.

use heatline_profile::{ModuleAddress, ModuleId, Profile};
use std::ops::Range;

/// The unique look-up addresses of a profile, by module, and which of them each stack node has.
///
/// Look-up addresses: a return address has stepped back into its call.
#[derive(Clone, Debug)]
pub struct Addresses {
    all: Vec<ModuleAddress>,
    by_module: Vec<Range<usize>>,
    of_node: Vec<u32>,
}

impl Addresses {
    /// Collects them.
    pub fn of(profile: &Profile) -> Self {
        let nodes = profile.stacks.nodes();
        let key = |node: &heatline_profile::StackNode| (node.module, node.address.lookup());
        let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
        order.sort_unstable_by_key(|&node| key(&nodes[node as usize]));
        let mut all = Vec::new();
        let mut by_module = vec![0..0; profile.modules.len()];
        let mut of_node = vec![0; nodes.len()];
        let mut last = None;
        for node in order {
            let (module, address) = key(&nodes[node as usize]);
            if last != Some((module, address)) {
                let range = &mut by_module[module.0 as usize];
                if range.end == 0 {
                    *range = all.len()..all.len();
                }
                all.push(address);
                range.end = all.len();
                last = Some((module, address));
            }
            of_node[node as usize] = all.len() as u32 - 1;
        }
        Addresses { all, by_module, of_node }
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
}
