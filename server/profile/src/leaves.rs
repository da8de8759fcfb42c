//! A profile without callers, for what needs only exclusive costs.

use crate::{Profile, SampleFold, StackId, StackNode, StackTable};

impl Profile {
    /// Leaves of each stack only the code that ran, if all costs can do without callers: then there is less to resolve
    /// and to add up. A profile of instrumented calls, and events whose stacks say more than where a sample was taken,
    /// stay as they are.
    pub fn drop_callers(&mut self) {
        if self.calls.is_some() || !self.events.iter().all(|event| event.exclusive) {
            return;
        }
        let old = std::mem::take(&mut self.stacks);
        let mut leaves = StackTable::new();
        let mut leaf = |stack: StackId| leaves.intern(StackNode { parent: None, ..old.node(stack) });
        let mut fold = SampleFold::new();
        for row in std::mem::take(&mut self.rows) {
            fold.add(leaf(row.stack), row.event, row.thread, row.tally);
        }
        self.rows = fold.into_rows();
        for row in self.spe.iter_mut().flat_map(|table| &mut table.rows) {
            row.stack = leaf(row.stack);
        }
        leaves.seal();
        self.stacks = leaves;
        self.arcs.clear();
        self.events.iter_mut().for_each(|event| event.has_stacks = false);
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        CallTable, CodeAddress, Event, EventId, ModuleAddress, ModuleId, Profile, ProfileKind, SampleFold, StackNode,
        Tally, Unit, Weight,
    };

    /// f is reached from two places.
    fn profile() -> Profile {
        let mut profile = Profile::new(ProfileKind::PerfData);
        profile.events.push(Event { has_stacks: true, ..Event::new("cycles", Unit::Events) });
        let mut stack = |parent, address| {
            let address = CodeAddress::Ip(ModuleAddress(address));
            profile.stacks.intern(StackNode { parent, module: ModuleId(0), address })
        };
        let [one, two] = [0x100, 0x200].map(|address| stack(None, address));
        let stacks = [stack(Some(one), 0x10), stack(Some(two), 0x10), two];
        let mut fold = SampleFold::new();
        for (stack, weight) in stacks.into_iter().zip([1, 2, 4]) {
            fold.add(stack, EventId(0), None, Tally::one(Weight(weight)));
        }
        profile.rows = fold.into_rows();
        profile
    }

    #[test]
    fn samples_of_one_address_become_one_whoever_called() {
        let mut profile = profile();
        profile.drop_callers();
        let rows: Vec<_> = profile.rows.iter().map(|row| (profile.stacks.node(row.stack), row.tally)).collect();
        let node = |at| StackNode { parent: None, module: ModuleId(0), address: CodeAddress::Ip(ModuleAddress(at)) };
        let both = Tally { samples: 2, weight: Weight(3), squares: 5.0 };
        assert_eq!(rows, [(node(0x10), both), (node(0x200), Tally::one(Weight(4)))]);
        assert_eq!((profile.stacks.len(), profile.events[0].has_stacks), (2, false));
    }

    #[test]
    fn stacks_that_carry_the_cost_stay() {
        let inclusive = Event { exclusive: false, ..profile().events[0].clone() };
        let with_calls = Profile { calls: Some(CallTable::default()), ..profile() };
        for mut kept in [Profile { events: vec![inclusive], ..profile() }, with_calls] {
            kept.drop_callers();
            assert_eq!(kept.rows, profile().rows);
        }
    }
}
