use super::*;

fn lines(numbers: impl IntoIterator<Item = u32>) -> impl Iterator<Item = NonZeroU32> {
    numbers.into_iter().map(|n| NonZeroU32::new(n).unwrap())
}

fn found(map: &LineMap, base: u32) -> (u32, &'static str) {
    let (now, placement) = map.find(NonZeroU32::new(base).unwrap()).unwrap();
    (now + 1, placement.name())
}

#[test]
fn a_difference_finds_moved_changed_and_removed_lines() {
    let base = "one\ntwo\nthree\nfour\nfive\n";
    let map = Comparison::new(base, "zero\none\nTWO\nthree\nfive\n", lines(1..=5)).map;
    assert_eq!(found(&map, 1), (2, "moved"));
    assert_eq!(found(&map, 2), (3, "changed"));
    assert_eq!(found(&map, 3), (4, "moved"));
    assert_eq!(found(&map, 4).1, "gone");
    assert_eq!(found(&map, 5), (5, "exact"));
    assert_eq!(found(&Comparison::new(base, base, lines(1..=5)).map, 4), (4, "exact"));
}

const NOTHING: LineEdit = LineEdit {
    start_line: 0,
    end_line: 0,
    keeps_head: false,
    keeps_tail: false,
    inserted_breaks: 0,
    touches_head: false,
    touches_tail: false,
    cuts_head: false,
    cuts_tail: false,
};

#[test]
fn lines_put_in_above_move_a_line_and_taking_them_out_brings_it_back() {
    let mut map = LineMap::identity(lines([1, 3]));
    map.edit(&LineEdit { start_line: 2, end_line: 2, keeps_tail: true, inserted_breaks: 2, ..NOTHING });
    assert_eq!((found(&map, 1), found(&map, 3)), ((1, "exact"), (5, "moved")));
    map.edit(&LineEdit { start_line: 2, end_line: 4, keeps_tail: true, cuts_head: true, ..NOTHING });
    assert_eq!((found(&map, 1), found(&map, 3)), ((1, "exact"), (3, "exact")));
}

#[test]
fn typing_in_a_line_changes_it_and_a_line_break_at_its_end_does_not() {
    let mut map = LineMap::identity(lines([2, 3]));
    map.edit(&LineEdit { start_line: 1, end_line: 1, keeps_head: true, inserted_breaks: 1, ..NOTHING });
    assert_eq!((found(&map, 2), found(&map, 3)), ((2, "exact"), (4, "moved")));
    let typed = LineEdit { touches_head: true, touches_tail: true, keeps_head: true, keeps_tail: true, ..NOTHING };
    map.edit(&LineEdit { start_line: 1, end_line: 1, ..typed });
    assert_eq!(found(&map, 2), (2, "changed"));
}

#[test]
fn a_removed_line_is_gone_and_a_replaced_one_changed() {
    let mut map = LineMap::identity(lines([2, 3, 4]));
    map.edit(&LineEdit { start_line: 1, end_line: 2, keeps_tail: true, cuts_head: true, ..NOTHING });
    assert_eq!((found(&map, 2).1, found(&map, 3)), ("gone", (2, "moved")));
    map.edit(&LineEdit {
        start_line: 2,
        end_line: 2,
        cuts_head: true,
        touches_head: true,
        touches_tail: true,
        ..NOTHING
    });
    assert_eq!(found(&map, 4), (3, "changed"));
}

#[test]
fn lines_now_are_found_back() {
    let mut map = LineMap::identity(lines([2, 5]));
    map.edit(&LineEdit { start_line: 0, end_line: 0, keeps_tail: true, inserted_breaks: 3, ..NOTHING });
    assert_eq!(map.on_line(4).map(|(base, _)| base.get()).collect::<Vec<_>>(), [2]);
    assert_eq!(map.in_range(0, 99).count(), 2);
    assert_eq!(map.on_line(1).count(), 0);
}
