//! `--perf` on recordings that are written by hand: the worked examples D1 to D8, and many more beside perf.

use super::programs::{Hits, Programs, as_perf, cells};
use crate::writer::{EventSpec, IN_KERNEL, KERNEL, Order, Writer};

/// Checks the rows that both commands print: the cells of the values, then the last cell, a name.
#[track_caller]
fn check(programs: &Programs, arguments: &str, expected: &[&str]) {
    let arguments: Vec<&str> = arguments.split(' ').chain(["-t", ";"]).collect();
    let table = as_perf(programs.root(), &arguments);
    let rows: Vec<String> = cells(&table, ';').iter().map(|cells| cells.join("|").replace("|app|[.] ", "|")).collect();
    assert_eq!(rows, expected, "{arguments:?}");
    // Aligned it is the same table.
    as_perf(programs.root(), &arguments[..arguments.len() - 2]);
}

fn examples() -> Programs {
    let programs = Programs::new();
    programs.write_examples();
    programs
}

#[test]
fn d1_differences_of_shares_in_three_orders() {
    let p = &examples();
    let default = ["|+40.00%|fn5", "50.00|-30.00%|fn1", "5.00|+5.00%|fn4", "30.00|+0.00%|fn2", "15.00||fn3"];
    check(p, "A B", &default);
    let by_value = ["|+40.00%|fn5", "5.00|+5.00%|fn4", "30.00|+0.00%|fn2", "50.00|-30.00%|fn1", "15.00||fn3"];
    check(p, "-c delta A B", &by_value);
    let by_share = ["50.00|-30.00%|fn1", "30.00|+0.00%|fn2", "15.00||fn3", "5.00|+5.00%|fn4", "|+40.00%|fn5"];
    check(p, "-o 0 A B", &by_share);
}

#[test]
fn d2_ratios_of_weights() {
    let p = &examples();
    let ratio = ["5.00|4.000000|fn4", "30.00|2.000000|fn2", "50.00|0.800000|fn1", "|N/A|fn5", "15.00||fn3"];
    check(p, "-c ratio A B", &ratio);
}

#[test]
fn d3_weighted_differences_and_their_formula() {
    let p = &examples();
    let weighted = ["30.00|9000|fn2", "5.00|3500|fn4", "50.00|3000|fn1", "|N/A|fn5", "15.00||fn3"];
    check(p, "-c wdiff:1,2 A B", &weighted);
    let other = [
        "5.00|500|(2000 * 1) - (500 * 3)|fn4",
        "30.00|-3000|(6000 * 1) - (3000 * 3)|fn2",
        "50.00|-11000|(4000 * 1) - (5000 * 3)|fn1",
        "|N/A|(8000 * 1) - (0 * 3)|fn5",
        "15.00|||fn3",
    ];
    check(p, "-c wdiff:3,1 -F A B", &other);
}

#[test]
fn d4_periods_and_formulas() {
    let p = &examples();
    let periods = as_perf(p.root(), &["-p", "-F", "-t", ";", "A", "B"]);
    let periods = cells(&periods, ';');
    assert_eq!(periods[0], ["", "0", "+40.00%", "(8000 * 100 / 20000) - (0 * 100 / 10000)", "8000", "app", "[.] fn5"]);
    assert_eq!(periods[4], ["15.00", "1500", "", "", "", "app", "[.] fn3"]);
}

#[test]
fn d7_only_rows_of_both_sides() {
    let p = &examples();
    check(p, "-b A B", &["58.82|-30.00%|fn1", "5.88|+5.00%|fn4", "35.29|+0.00%|fn2"]);
    check(p, "-b A B C", &["50.00|-30.00%|-30.00%|fn1", "5.00|+5.00%||fn4", "30.00|+0.00%||fn2", "15.00||+5.00%|fn3"]);
}

#[test]
fn d5_three_files_by_function_and_by_module() {
    let p = &examples();
    let g1 = "|||+40.00%|libx|[.] g1".replacen('|', "", 1);
    check(
        p,
        "A B C",
        &[
            "|+40.00%||fn5",
            "50.00|-30.00%|-30.00%|fn1",
            "5.00|+5.00%||fn4",
            "30.00|+0.00%||fn2",
            "15.00||+5.00%|fn3",
            &g1,
            "||+20.00%|fn6",
        ],
    );
    let names = |table: &str| -> Vec<String> {
        cells(table, ';').iter().map(|cells| cells.last().unwrap().trim_start_matches("[.] ").to_owned()).collect()
    };
    let by_second = as_perf(p.root(), &["-o", "2", "-t", ";", "A", "B", "C"]);
    assert_eq!(names(&by_second), ["g1", "fn1", "fn6", "fn3", "fn2", "fn4", "fn5"]);
    check(p, "-s dso A B C", &["100.00|+0.00%|-40.00%|app", "||+40.00%|libx"]);
}

#[test]
fn d6_filters_with_shares_of_the_whole_and_of_what_is_left() {
    let p = &examples();
    check(p, "-S fn1,fn2 A B C", &["50.00|-30.00%|-30.00%|fn1", "30.00|+0.00%||fn2"]);
    let relative = ["62.50|-22.50%|+37.50%|fn1", "37.50|+22.50%||fn2"];
    check(p, "--percentage relative -S fn1,fn2 A B C", &relative);
    let of_app = as_perf(p.root(), &["--percentage", "relative", "-d", "app", "-t", ";", "A", "B", "C"]);
    let of_app = cells(&of_app, ';');
    let value = |name: &str| of_app.iter().find(|cells| cells.last() == Some(&name)).unwrap()[2];
    assert_eq!([value("[.] fn6"), value("[.] fn3"), value("[.] fn1")], ["+33.33%", "+18.33%", "-16.67%"]);
}

#[test]
fn d8_a_file_with_another_event_has_no_values() {
    let programs = examples();
    let spec = EventSpec { config: 1, ..EventSpec::default() };
    programs.write_with(Writer::with_events(Order::Little, vec![spec]), "other", &[("fn1", 10, 100)]);
    check(&programs, "A other", &["50.00||fn1", "30.00||fn2", "15.00||fn3", "5.00||fn4"]);
}

#[test]
fn shares_of_nothing_are_no_numbers() {
    let programs = examples();
    programs.write("weightless", &[("fn1", 3, 0), ("fn2", 30, 0)]);
    programs.write("none", &[]);
    for files in [["weightless", "A"], ["A", "weightless"], ["weightless", "weightless"], ["none", "A"], ["A", "none"]]
    {
        as_perf(programs.root(), &files);
        as_perf(programs.root(), &[&files[..], &["-t", ";"]].concat());
    }
}

#[test]
fn kernel_functions_are_named_by_a_list() {
    let programs = Programs::new();
    let start = 0xffff_ffff_8100_0000;
    for (name, hits) in [("old", [6, 2]), ("new", [3, 9])] {
        let mut writer = Writer::new(Order::Little);
        writer.map_kernel(start, 0x100_0000, "[kernel.kallsyms]_text");
        for (function, samples) in hits.into_iter().enumerate() {
            let address = start + 0x100 * function as u64 + 8;
            for time in 0..samples {
                writer.sample_with(IN_KERNEL, (100, 100), 1000 + time, 100, &[KERNEL, address], &[]);
            }
        }
        programs.write_with(writer, name, &[("fn1", 4, 100)]);
    }
    let list = "ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000000 T do_first\n\
                ffffffff81000100 T do_second\nffffffff81000200 T do_third\nffffffff82000000 T _etext\n";
    std::fs::write(programs.path("kallsyms"), list).unwrap();
    let table = as_perf(programs.root(), &["--kallsyms", "kallsyms", "-t", ";", "old", "new"]);
    let rows: Vec<&str> = cells(&table, ';').iter().map(|cells| *cells.last().unwrap()).collect();
    assert!(rows.contains(&"[k] do_second"), "{table}");
}

#[test]
fn d8_of_equal_differences_the_greater_baseline_comes_first() {
    let programs = Programs::new();
    programs.write("one", &[("fn1", 3, 100), ("fn2", 1, 100)]);
    programs.write("two", &[("fn1", 1, 100), ("fn2", 3, 100)]);
    check(&programs, "-c delta one two", &["25.00|+50.00%|fn2", "75.00|-50.00%|fn1"]);
    check(&programs, "one two", &["75.00|-50.00%|fn1", "25.00|+50.00%|fn2"]);
}

/// Repeatable numbers.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

#[test]
fn many_recordings_print_as_perf_prints_them() {
    const FUNCTIONS: [&str; 7] = ["fn1", "fn2", "fn3", "fn4", "fn5", "fn6", "g1"];
    const OPTIONS: [&str; 12] = [
        "",
        "-c delta",
        "-c ratio",
        "-c wdiff:2,1 -o 2",
        "-o 0",
        "-o 0 -c ratio -p",
        "-o 2 -c delta",
        "-b",
        "-b -F -p",
        "-b -c ratio -t ,",
        "-s comm,symbol",
        "-s cpu,dso -t ,",
    ];
    let programs = Programs::new();
    let mut numbers = Numbers(7);
    for _ in 0..4 {
        for name in ["a", "b", "c"] {
            // Few different counts, so that there are ties.
            let mut hits: Vec<Hits<'_>> = FUNCTIONS.iter().map(|name| (*name, numbers.below(4), 100)).collect();
            hits.push(("fn1", 1, 50 + 50 * numbers.below(2)));
            programs.write(name, &hits);
        }
        for options in OPTIONS {
            let options: Vec<&str> = options.split(' ').filter(|word| !word.is_empty()).collect();
            as_perf(programs.root(), &[&options[..], &["a", "b", "c"]].concat());
        }
    }
}

#[test]
fn functions_of_cpp_have_the_names_of_perf() {
    let programs = Programs::of_cpp(
        "namespace lab { struct Pool { int take(int); }; }\n\
         __attribute__((noipa)) int lab::Pool::take(int x) { return x * 3; }\n\
         template <class T> __attribute__((noipa)) T twice(T x) { return x + x; }\n\
         __attribute__((noipa)) int fib(int n) { return n + twice(n) + static_cast<int>(twice(1.5)); }\n\
         int main() { lab::Pool pool; return fib(1) + pool.take(2); }\n",
    );
    let [take, whole, real, fib] = ["_ZN3lab4Pool4takeEi", "_Z5twiceIiET_S0_", "_Z5twiceIdET_S0_", "_Z3fibi"];
    programs.write("A", &[(take, 40, 100), (whole, 30, 100), (fib, 30, 100)]);
    programs.write("B", &[(take, 10, 100), (real, 60, 100), (fib, 40, 100)]);
    let table = as_perf(programs.root(), &["A", "B"]);
    for name in ["lab::Pool::take", "twice<int>", "twice<double>", "fib"] {
        assert!(table.lines().any(|line| line.trim_end().ends_with(&format!("[.] {name}"))), "{name}\n{table}");
    }
    let chosen = programs.diff(&["A", "B", "-S", "twice<int>"]);
    assert_eq!(chosen["rows"].as_array().map(Vec::len), Some(1), "{chosen}");
}
