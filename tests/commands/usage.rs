//! Formats, errors and exit status.

use super::lab::{heatline, report};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart/perf.data").canonicalize().unwrap()
}

/// Runs, insists on exit status 2 and on one line of error, and returns that line.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "no profile").unwrap();
    let output = heatline(folder.path(), arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty());
    errors
}

#[track_caller]
fn refused_in_one_line(arguments: &[&str], part: &str) {
    let errors = refused(arguments);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(part), "{errors}");
}

#[test]
fn what_cannot_be_used_is_said_in_one_line() {
    let path = example();
    let path = path.to_str().unwrap();
    refused_in_one_line(&["report", "absent"], "absent: No such file");
    refused_in_one_line(
        &["report", "text"],
        "expected a perf.data, SPT, pprof or .heatline file or a uftrace folder, found text that begins 'no profile';",
    );
    refused_in_one_line(&["report", "."], "no profile in this folder");
    refused_in_one_line(&["report", path, "--metric", "nonsense"], "this profile has: cpu-clock");
    refused_in_one_line(&["report", path, "--time", "5"], "expected A,B in seconds");
    refused_in_one_line(&["resolve", "text", "0x10"], "text");
    refused_in_one_line(&["resolve", path, "zzz"], "perf.data");
    assert!(refused(&["report"]).contains("Usage"));
    assert!(refused(&["frobnicate"]).contains("unrecognized subcommand"));
}

#[test]
fn a_cut_recording_gives_what_it_holds_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(example()).unwrap();
    let cut = folder.path().join("cut.data");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let document = report(&cut, &[]);
    let samples = document["profile"]["samples"].as_u64().unwrap();
    assert!(samples > 100 && samples < report(&example(), &[])["profile"]["samples"].as_u64().unwrap());
    let problems = document["problems"].as_array().unwrap();
    let cut_off = problems.iter().find(|problem| problem["kind"] == "truncated").expect("it says so");
    assert!(cut_off["offset"].as_u64().unwrap() <= whole.len() as u64 / 2);
    let output = heatline(folder.path(), &["report", "cut.data"]);
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("heatline: warning: "));
}

#[test]
fn another_build_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(example(), folder.path().join("perf.data")).unwrap();
    let mut binary = std::fs::read(example().with_file_name("neighbours")).unwrap();
    // The build id's note: name size 4, description size 20, type 3, "GNU".
    let note = [4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0];
    let at = binary.windows(note.len()).position(|bytes| bytes == note).expect("a build id") + note.len();
    binary[at] ^= 0xff;
    std::fs::write(folder.path().join("neighbours"), binary).unwrap();
    let profile = folder.path().join("perf.data");
    let document = report(&profile, &["--by", "line"]);
    let of_binary = document["coverage"]["by_module"].as_array().unwrap();
    let of_binary = of_binary.iter().find(|module| module["module"] == "neighbours").unwrap();
    assert_eq!(of_binary["none"], 1.0);
    let reason = of_binary["reason"].as_str().unwrap();
    assert!(reason.contains("build id differs: expected ") && reason.contains(", found "), "{reason}");
    assert_eq!(document["problems"][0]["kind"], "build-id-mismatch");
    let allowed = report(&profile, &["--by", "line", "--allow-mismatch"]);
    assert!(allowed["coverage"]["line"].as_f64().unwrap() > 0.9);
    assert_eq!(allowed["problems"][0]["kind"], "build-id-mismatch");
}

#[test]
fn a_binary_that_is_nowhere_is_named_with_where_was_looked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(example(), folder.path().join("perf.data")).unwrap();
    let output = heatline(folder.path(), &["report", "perf.data", "--coverage"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("binary not found")).unwrap();
    assert!(row.contains("neighbours") && row.contains("--debug-dir"), "{row}");
    let found = report(
        &folder.path().join("perf.data"),
        &["--debug-dir", example().parent().unwrap().to_str().unwrap(), "--by", "line"],
    );
    assert!(found["coverage"]["line"].as_f64().unwrap() > 0.9);
}

#[test]
fn the_same_profile_twice_counts_twice() {
    let path = example();
    let name = path.to_str().unwrap();
    let once = report(&path, &[]);
    let twice = report(&path, &[name]);
    let total = |document: &serde_json::Value| document["metrics"][0]["total"].as_u64().unwrap();
    assert_eq!(total(&twice), 2 * total(&once));
    assert_eq!(twice["rows"][0]["exclusive"]["percent"], once["rows"][0]["exclusive"]["percent"]);
}

#[test]
fn tables_are_for_people_and_csv_for_programs() {
    let path = example();
    let folder = path.parent().unwrap();
    let run = |arguments: &[&str]| {
        let output = heatline(folder, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let table = run(&["report", "perf.data", "--limit", "3"]);
    assert!(table.contains("percentages are of all samples; "));
    assert!(table.lines().last().unwrap().starts_with("… "));
    let csv = run(&["report", "perf.data", "--by", "line", "--format", "csv"]);
    assert!(csv.starts_with("module,function,file,line,exclusive_weight,exclusive_percent,exclusive_samples,"));
    let document = report(&path, &["--by", "line"]);
    assert_eq!(csv.lines().count() - 1, document["rows"].as_array().unwrap().len());
    let by_event = report(&path, &["--by", "event"]);
    assert_eq!(by_event["rows"][0]["event"], "cpu-clock");
    let by_thread = report(&path, &["--by", "thread"]);
    assert!(by_thread["rows"][0]["comm"].is_string() && by_thread["rows"][0]["tid"].is_number());
}

/// Worked example V9: of an event without samples there is no percentage anywhere.
#[test]
fn nothing_has_no_percentage() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["record", "-q", "-N", "-e", "cpu-clock,alignment-faults", "-o", "perf.data", "--", "true"];
    let recorded = super::lab::perf().args(options).current_dir(folder.path()).output().expect("perf");
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let output = heatline(folder.path(), &["report", "perf.data", "--metric", "alignment-faults"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("no samples of alignment-faults") && !text.contains('%'),
        "{text}"
    );
}

#[test]
fn resolve_answers_in_order_and_says_why_not() {
    let path = example();
    let output = heatline(path.parent().unwrap(), &["resolve", "neighbours", "0x9", "0x1", "--format", "json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["address"].as_str().unwrap()).collect::<Vec<_>>(), ["0x9", "0x1"]);
    assert_eq!(lines[0]["reason"], "outside every section");
    assert_eq!(lines[0]["frames"], serde_json::json!([]));
}

#[test]
fn the_settings_file_beside_the_profile_is_read_and_the_command_line_wins() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["perf.data", "neighbours"] {
        std::fs::copy(example().with_file_name(name), folder.path().join(name)).unwrap();
    }
    let profile = folder.path().join("perf.data");
    let functions = |arguments: &[&str]| {
        let document = report(&profile, arguments);
        let rows = document["rows"].as_array().unwrap().clone();
        rows.iter().filter(|row| row["inlined"] == true).count()
    };
    assert!(functions(&[]) > 0);
    std::fs::write(folder.path().join("heatline.toml"), "inline = false\nmetric = \"cpu-clock\"\nodd = 1\n").unwrap();
    assert_eq!(functions(&[]), 0);
    let output = heatline(folder.path(), &["report", "perf.data"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("odd"));
    std::fs::write(folder.path().join("heatline.toml"), "search.debugDirs = [\"elsewhere\"]\nnonsense").unwrap();
    assert!(functions(&[]) > 0);
}

/// The lines of a dump of the example with these options, the file being read or written into standard input.
fn dump(through_a_pipe: bool, options: &[&str]) -> Vec<Value> {
    let profile = example();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_heatline"));
    command.args(["dump", "--format", "json"]).args(options);
    match through_a_pipe {
        true => command.arg("-").stdin(std::fs::File::open(&profile).expect("the example")),
        false => command.arg(&profile),
    };
    let output = command.output().expect("the built binary");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

#[test]
fn a_dump_of_standard_input_has_the_records_of_the_file() {
    // Names of events come behind the records.
    let record = |mut line: Value| {
        let mut record = line.get_mut("perf")?.take();
        record.as_object_mut()?.remove("event");
        Some(record)
    };
    let records = |lines: Vec<Value>| lines.into_iter().filter_map(record).collect::<Vec<_>>();
    let (piped, file) = (records(dump(true, &[])), records(dump(false, &[])));
    assert!(file.len() > 100);
    assert!(piped == file, "{} records and {} differ", piped.len(), file.len());
}

#[test]
fn a_dump_of_some_threads_has_the_records_that_name_them() {
    let samples = |lines: &[Value]| -> Vec<Value> {
        lines.iter().map(|line| line["perf"].clone()).filter(|record| record["type"] == "SAMPLE").collect()
    };
    let all = samples(&dump(false, &[]));
    let tid = all[all.len() / 2]["tid"].as_i64().expect("a thread");
    let wanted: Vec<Value> = all.iter().filter(|record| record["tid"] == tid).cloned().collect();
    assert!(wanted.len() < all.len());
    assert_eq!(samples(&dump(false, &["--tid", &tid.to_string()])), wanted);
}
