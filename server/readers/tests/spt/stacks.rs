//! Stacks: what they say, and which of their ends comes first.

use crate::{costs, with_prefix};
use expect_test::expect;
use heatline_profile::{CodeAddress, ModuleId, Profile, Rva, Silent};
use heatline_readers::spt::{self, Direction, StackOrder};
use heatline_readers::{Input, ReadOptions};
use std::collections::BTreeMap;
use std::io::Cursor;

/// {A0,B0,C0} ×3, {B0,C0} ×2, {B0,A0,B0} ×1, {C0} ×4, with A0 = 0xa00, B0 = 0xb00, C0 = 0xc00.
const STACKS: &str = "
    81 00 00 00 56 00 00 00
    82 00 02 00 00 00 00 00 00 00  42 03 00 0a 00 00 00 0b 00 00 00 0c 00 00
    82 00 01 00 00 00 00 00 00 00  42 02 00 0b 00 00 00 0c 00 00
    42 03 00 0b 00 00 00 0a 00 00 00 0b 00 00
    82 00 03 00 00 00 00 00 00 00  42 01 00 0c 00 00";

fn stacks(order: StackOrder) -> Profile {
    let options = ReadOptions { spt: spt::Options { stack_order: order, ..Default::default() }, ..Default::default() };
    spt::read(Input::File(&mut Cursor::new(with_prefix(STACKS))), &options, &Silent).unwrap()
}

/// Worked example V7: of ten recorded stacks A is on 4, B on 6, C on 9; B calls A 4 times, C calls B 5 times, and the
/// example's recursion is one call of B by A.
#[test]
fn a_function_counts_once_per_stack_and_has_no_cost_of_its_own() {
    let profile = stacks(StackOrder::LeafFirst);
    assert_eq!(profile.totals()[0].weight.0, 10);
    assert!(!profile.events[0].exclusive && profile.events[0].has_stacks);
    let mut on_stack: BTreeMap<u64, u64> = BTreeMap::new();
    for row in &profile.rows {
        let mut functions: Vec<_> = profile.stacks.frames(row.stack).map(|f| f.address.recorded().0).collect();
        functions.sort_unstable();
        functions.dedup();
        functions.into_iter().for_each(|function| *on_stack.entry(function).or_default() += row.tally.samples);
    }
    assert_eq!(on_stack, BTreeMap::from([(0xa00, 4), (0xb00, 6), (0xc00, 9)]));
    let mut edges: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for arc in spt::stack_arcs(&profile) {
        *edges.entry((arc.from.address.0, arc.to.address.0)).or_default() += arc.taken.0;
    }
    assert_eq!(edges, BTreeMap::from([((0xb00, 0xa00), 4), ((0xc00, 0xb00), 5), ((0xa00, 0xb00), 1)]));
}

#[test]
fn callers_are_return_addresses_and_the_innermost_frame_is_exact() {
    for order in [StackOrder::LeafFirst, StackOrder::RootFirst] {
        let profile = stacks(order);
        for row in &profile.rows {
            for (at, frame) in profile.stacks.frames(row.stack).enumerate() {
                assert_eq!(at == 0, matches!(frame.address, CodeAddress::Ip(_)), "{order}");
                assert_eq!(at > 0, matches!(frame.address, CodeAddress::ReturnAddress(_)), "{order}");
            }
        }
    }
}

#[test]
fn the_other_order_turns_stacks_round() {
    let turned = stacks(StackOrder::RootFirst);
    expect![[r#"
        m.exe spt:stacks 0xc00 x4
        m.exe spt:stacks 0xc00<0xb00 x2
        m.exe spt:stacks 0xc00<0xb00<0xa00 x3
        m.exe spt:stacks 0xb00<0xa00<0xb00 x1
    "#]]
    .assert_eq(&costs(&turned));
    let mut profile = stacks(StackOrder::LeafFirst);
    spt::turn_stacks(&mut profile);
    assert_eq!(costs(&profile), costs(&turned));
    assert_eq!(profile.stacks.nodes(), turned.stacks.nodes());
}

/// Settles the order when exactly these addresses follow a call.
#[track_caller]
fn check_direction(after_calls: &[u32], direction: Direction, first: &str) {
    let mut profile = stacks(StackOrder::LeafFirst);
    let mut follows_call = |module, rva: Rva| (module == ModuleId(0)).then(|| after_calls.contains(&rva.0));
    assert_eq!(spt::settle_stack_order(&mut profile, StackOrder::LeafFirst, &mut follows_call), direction);
    assert!(costs(&profile).contains(first), "{}", costs(&profile));
}

#[test]
fn the_code_before_the_frames_shows_the_order() {
    // Leaf first: B, C, C, A, B would be return addresses. Root first: A, B, B, B, A.
    check_direction(&[0xb00, 0xc00], Direction::Assumed(StackOrder::LeafFirst), "0xa00<0xb00<0xc00 x3");
    check_direction(&[0xa00, 0xb00], Direction::Assumed(StackOrder::LeafFirst), "0xa00<0xb00<0xc00 x3");
    check_direction(&[], Direction::Assumed(StackOrder::LeafFirst), "0xa00<0xb00<0xc00 x3");
    let clear = |lines: &str| with_prefix(&format!("81 00 00 00 0e 00 00 00 {lines}"));
    let file = clear("42 02 00 0a 00 00 00 0b 00 00");
    for (after_call, order) in [(0xb00, StackOrder::LeafFirst), (0xa00, StackOrder::RootFirst)] {
        let mut profile = spt::read(Input::File(&mut Cursor::new(&file)), &ReadOptions::default(), &Silent).unwrap();
        let mut follows_call = |_, rva: Rva| Some(rva.0 == after_call);
        let direction = spt::settle_stack_order(&mut profile, StackOrder::LeafFirst, &mut follows_call);
        assert_eq!(direction, Direction::Verified(order));
        let (inner, outer) = if order == StackOrder::LeafFirst { ("0xa00", "0xb00") } else { ("0xb00", "0xa00") };
        assert_eq!(costs(&profile), format!("m.exe spt:stacks {inner}<{outer} x1\n"));
    }
}

#[test]
fn without_code_the_order_stays_assumed() {
    let mut profile = stacks(StackOrder::RootFirst);
    let direction = spt::settle_stack_order(&mut profile, StackOrder::RootFirst, &mut |_, _| None);
    assert_eq!(direction.to_string(), "direction assumed: root-first");
}
