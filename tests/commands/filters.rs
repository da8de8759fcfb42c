//! Filters: what the header says of them, and what is said where they select nothing.

use super::lab::{heatline, perf};
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").canonicalize().unwrap()
}

/// What is printed of the example, and what is said on standard error.
#[track_caller]
fn run(arguments: &[&str]) -> (String, String) {
    let output = heatline(&example(), arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    (String::from_utf8(output.stdout).unwrap(), errors)
}

/// The first and the last moment that perf has a sample of, in nanoseconds.
fn recorded_span() -> (u64, u64) {
    let script = ["script", "--ns", "-F", "time", "-i", "perf.data"];
    let output = perf().args(script).current_dir(example()).output().expect("perf");
    let text = String::from_utf8(output.stdout).unwrap();
    let time = |line: &str| line.trim().trim_end_matches(':').replace('.', "").parse::<u64>().ok();
    let times: Vec<u64> = text.lines().filter_map(time).collect();
    (*times.iter().min().unwrap(), *times.iter().max().unwrap())
}

#[test]
fn a_time_outside_of_the_recording_is_answered_with_when_samples_were_taken() {
    let (first, last) = recorded_span();
    let seconds = |microseconds: u64| format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    let (first, last) = (seconds(first / 1000), seconds(last.div_ceil(1000)));
    for command in ["report", "annotate", "dump"] {
        let (_, errors) = run(&[command, "perf.data", "--time", "5,6"]);
        assert!(
            errors.contains(&format!("nothing was recorded then; the recording is from {first} to {last} s")),
            "{errors}"
        );
    }
    let (text, errors) = run(&["report", "perf.data", "--time", &format!("{first},{last}")]);
    assert!(text.contains("1\u{202f}320 samples") && errors.is_empty(), "{text}{errors}");
}

#[test]
fn parts_that_cannot_be_are_told_what_is_wrong() {
    for (time, message) in [
        ("50%-10%", "--time 50%-10%: the end lies before the start; write the smaller percentage first"),
        ("50%-110%", "--time 50%-110%: the recording ends at 100 %"),
        ("1%-2%,9%-3%", "--time 1%-2%,9%-3%: 9%-3%: the end lies before the start"),
    ] {
        let output = heatline(&example(), &["report", "perf.data", "--time", time]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.contains(message), "{errors}");
    }
}

#[test]
fn the_header_says_what_is_selected_and_what_shares_are_of() {
    for (options, only, base) in [
        (
            &["--time", "0%-100%"][..],
            "only samples of --time 0%-100%: 1\u{202f}320 samples\n",
            "of all samples of --time 0%-100%;",
        ),
        (
            &["--comm", "neighbours"],
            "only samples of --comm neighbours: 1\u{202f}320 samples\n",
            "of all samples, selected or not;",
        ),
        (
            &["--dso", "libm.so.6", "--symbol", "a,b"],
            "only rows of --dso libm.so.6 --symbol a,b\n",
            "of all samples, selected or not;",
        ),
        (
            &["--dso", "libm.so.6", "--percentage", "relative"],
            "only rows of --dso libm.so.6\n",
            "of what the filters leave;",
        ),
    ] {
        let (text, _) = run(&[&["report", "perf.data"], options].concat());
        assert!(text.contains(only) && text.contains(&format!("percentages are {base}")), "{text}");
    }
    let (text, _) = run(&["report", "perf.data"]);
    assert!(!text.contains("only samples") && !text.contains("only rows"), "{text}");
}

#[test]
fn a_filter_that_names_what_there_is_not_is_told_what_there_is() {
    for (option, value, message) in [
        ("--comm", "nosuch", "no thread with samples has this name; there is only neighbours"),
        ("--pid", "1", "no process with samples has this number; there is only "),
        ("--tid", "1", "no thread with samples has this number; there are "),
        ("--dso", "libm.so", "no module with cost has this name or path; did you mean libm.so.6"),
        ("--symbol", "serach", "no function with cost has this name; did you mean search?; there are 2"),
        ("--symbol", "nothing_like_it", "no function with cost has this name; there are 2"),
    ] {
        for format in ["table", "json", "csv"] {
            let (text, errors) = run(&["report", "perf.data", option, value, "--format", format]);
            assert!(errors.contains(&format!("warning: {option} {value}: {message}")), "{errors}");
            assert_eq!(text.contains("nothing is selected"), format == "table", "{text}");
        }
    }
    let (_, errors) = run(&["report", "perf.data", "--symbol", "search", "--symbol", "buidl"]);
    assert!(
        errors.contains("--symbol buidl")
            && errors.contains("did you mean build?")
            && !errors.contains("--symbol search"),
        "{errors}"
    );
    let (_, errors) = run(&["dump", "perf.data", "--tid", "1"]);
    assert!(errors.contains("no record is what --time, --cpu, --pid, --tid and --comm ask for"), "{errors}");
    let output = heatline(&example(), &["export", "perf.data", "--to", "firefox", "-o", "never", "--comm", "nosuch"]);
    assert!(
        output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("there is only neighbours")
    );
}
