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
    is_empty: false,
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

/// Where the lines of a text are in another: base line, line now, placement.
#[track_caller]
fn check(base: &str, now: &str, expect: &[(u32, u32, &str)]) {
    let map = Comparison::new(base, now, lines(expect.iter().map(|(line, ..)| *line))).map;
    // Of a line that is gone there is no place to be right.
    let place = |line: NonZeroU32, now: u32, how: Placement| {
        (line.get(), if how == Placement::Gone { 0 } else { now + 1 }, how.name())
    };
    let found: Vec<_> = map.all().map(|(line, now, how)| place(line, now, how)).collect();
    assert_eq!(found, expect);
}

const FUNCTIONS: &str = "int first(int a)\n{\n    return a + one;\n}\n\nint second(int b)\n{\n    return b * two;\n}\n";

#[test]
fn indentation_and_line_ends_are_no_change() {
    check(
        "if (a)\n    call(a);\nend();\n",
        "if (a)\r\n\tcall(a);  \r\nend();\r\n",
        &[(1, 1, "exact"), (2, 2, "exact")],
    );
    check("call(a);\n", "if (x) {\n    call(a);\n}\n", &[(1, 2, "moved")]);
}

#[test]
fn a_function_that_moved_takes_its_lines_along() {
    let now = "int second(int b)\n{\n    return b * two;\n}\n\nint first(int a)\n{\n    return a + one;\n}\n";
    check(FUNCTIONS, now, &[(1, 6, "moved"), (3, 8, "moved"), (6, 1, "moved"), (8, 3, "moved")]);
}

#[test]
fn a_line_that_is_alike_between_the_same_neighbours_is_changed_and_another_is_gone() {
    let edited = FUNCTIONS.replace("a + one", "a + one + 7");
    check(FUNCTIONS, &edited, &[(3, 3, "changed"), (8, 8, "exact")]);
    let other = FUNCTIONS.replace("return a + one;", "while (queue.pop()) {}");
    check(FUNCTIONS, &other, &[(3, 0, "gone"), (8, 8, "exact")]);
}

#[test]
fn a_line_that_was_split_is_where_most_of_it_is_and_joined_lines_are_one() {
    let base = "begin(all);\nresult = compute(first_argument, second_argument, third);\nfinish(all);\n";
    let split = "begin(all);\nresult = compute(\n    first_argument, second_argument,\n    third);\nfinish(all);\n";
    check(base, split, &[(2, 3, "changed"), (3, 5, "moved")]);
    check(split, base, &[(2, 2, "changed"), (3, 2, "changed"), (4, 2, "changed"), (5, 3, "moved")]);
}

#[test]
fn which_of_two_equal_lines_was_removed_is_never_called_exact() {
    let base = "alpha();\nsame();\nsame();\nomega();\n";
    let found = Comparison::new(base, "alpha();\nsame();\nomega();\n", lines([2, 3])).map;
    assert!(found.all().all(|(.., placement)| placement != Placement::Exact), "{found:?}");
}

#[test]
fn how_much_is_left_of_a_text_is_told() {
    assert_eq!(Comparison::new(FUNCTIONS, FUNCTIONS, lines([3])).confidence, 1.0);
    let half = Comparison::new(FUNCTIONS, &FUNCTIONS[..FUNCTIONS.find("int second").unwrap()], lines([3]));
    assert!(half.is_sure() && half.confidence == 0.5, "{half:?}");
    assert!(!Comparison::new(FUNCTIONS, "something else\nentirely here\n", lines([3])).is_sure());
}

#[test]
fn code_is_told_from_blanks_and_comments() {
    let fits = |text: &str, path: &str, line: u32| fit(text, path, lines([line])).is_whole();
    let c = "/* one\n two */ int a;\n// three\n\nint b; /* four\n five */\nchar *s = \"/* no\";\nint c;\n";
    let expected = [false, true, false, false, true, false, true, true, false];
    assert_eq!((1..=9).map(|line| fits(c, "/src/a.c", line)).collect::<Vec<_>>(), expected);
    assert!(fits("#include <a.h>\n", "a.c", 1) && !fits("# words\n", "a.py", 1));
    assert_eq!(fit(c, "a.c", lines([1, 2])), Fit { fitting: 1, of: 2 });
}
