//! The ways to instrument and to record, and recordings that are incomplete, against `uftrace report`.

use super::lab::{heatline, report};
use super::uftrace::{JUMPED, MIXED, THROWING, Traced, check, is_near, ours};
use serde_json::Value;
use std::path::Path;

/// Forks three times, and calls into a library that it loads.
const FAMILY: &str = "#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long sink;
__attribute__((noipa)) void spin(long n) {
    for (long i = 0; i < n; i++)
        sink += i;
}
__attribute__((noipa)) void child(void) {
    spin(3000);
    usleep(1500);
}
__attribute__((noipa)) pid_t start(void) {
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    return pid;
}
__attribute__((noipa)) void load(void) {
    void *library = dlopen(\"./plug.so\", RTLD_NOW);
    long (*plugin)(long) = (long (*)(long))dlsym(library, \"plugin\");
    sink += plugin(2000);
    dlclose(library);
}
int main(void) {
    for (int i = 0; i < 3; i++)
        waitpid(start(), 0, 0);
    load();
    spin(500);
    return 0;
}
";

const PLUGIN: &str = "volatile long plugged;
__attribute__((noipa)) void inner(long n) {
    for (long i = 0; i < n; i++)
        plugged += i;
}
__attribute__((noipa)) long plugin(long n) {
    for (int i = 0; i < 3; i++)
        inner(n);
    return plugged;
}
";

/// A function that never returns in a forked process is forgotten by uftrace, which gives the fork in the child the time
/// since an unrelated switch, and sometimes a nameless call.
const FORKED: [&str; 4] = ["<0>", "fork", "main", "start"];

/// Room for instructions that the recorder puts in while the program starts.
const PATCHABLE: &str = "-fpatchable-function-entry=5";

#[test]
fn functions_that_are_patched_at_start_are_measured_too() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &[PATCHABLE]);
    traced.compile("throwing.cpp", THROWING, "throwing", &[PATCHABLE]);
    for (name, options) in [("counted", &["-P", "."][..]), ("quiet", &["-P", ".", "--no-event"])] {
        check(&traced, &traced.record(&format!("{name}.data"), options, &["./mixed"]), &JUMPED);
        check(&traced, &traced.record(&format!("{name}-thrown.data"), options, &["./throwing"]), &[]);
    }
}

#[test]
fn forked_processes_and_libraries_loaded_later_are_measured() {
    let traced = Traced::new();
    traced.compile("plug.c", PLUGIN, "plug.so", &["-pg", "-shared", "-fPIC"]);
    traced.compile("family.c", FAMILY, "family", &["-pg"]);
    traced.compile("family.c", FAMILY, "patched", &[PATCHABLE]);
    traced.compile("family.c", FAMILY, "entered", &["-finstrument-functions"]);
    for (name, options, program) in [
        ("counted", &[][..], "./family"),
        ("quiet", &["--no-event"], "./family"),
        ("patched", &["-P", "."], "./patched"),
        ("entered", &[], "./entered"),
    ] {
        let recording = traced.record(&format!("{name}.data"), options, &[program]);
        check(&traced, &recording, &FORKED);
        let document = report(&recording, &[]);
        let rows = document["rows"].as_array().unwrap();
        let inner = rows.iter().find(|row| row["function"].as_str().is_some_and(|name| name.starts_with("inner")));
        assert_eq!((&inner.unwrap()["module"], &inner.unwrap()["line"]), (&"plug.so".into(), &2.into()), "{name}");
        // The pointer came from the library's table of symbols; one line of `load` calls by pointer.
        let lines = report(&recording, &["--by", "line"]);
        let calling = 1 + FAMILY.lines().position(|line| line.contains("plugin(2000)")).unwrap() as u64;
        let row =
            lines["rows"].as_array().unwrap().iter().find(|row| row["line"] == calling && row["module"] != "plug.so");
        assert_eq!(row.expect("a line that calls")["calls"], 1, "{name}");
        let processes = report(&recording, &["--by", "process"]);
        assert_eq!(processes["rows"].as_array().unwrap().len(), 4, "{name}");
    }
}

/// A line that calls what the class of an object says, and a function with two lines that call by pointer.
const POINTERS: &str = "volatile long sink;
struct Shape {
    virtual long area(long n);
    virtual ~Shape() {}
};
struct Disk : Shape {
    long area(long n) override;
};
__attribute__((noipa)) void spin(long n) {
    for (long i = 0; i < n; i++)
        sink = sink + i;
}
__attribute__((noipa)) long Shape::area(long n) {
    spin(n);
    return sink;
}
__attribute__((noipa)) long Disk::area(long n) {
    spin(2 * n);
    return sink;
}
__attribute__((noipa)) void all(Shape **shapes, int count) {
    for (int i = 0; i < count; i++)
        sink = shapes[i]->area(20000);
}
__attribute__((noipa)) void twice(void (*function)(long)) {
    function(3000);
    function(5000);
}
int main() {
    Shape shape;
    Disk disk;
    Shape *shapes[] = {&shape, &disk, &disk};
    all(shapes, 3);
    twice(spin);
    return 0;
}
";

#[test]
fn a_call_by_pointer_is_on_the_only_line_that_makes_one() {
    let traced = Traced::new();
    traced.compile("pointers.cpp", POINTERS, "pointers", &["-pg"]);
    let recording = traced.record("uftrace.data", &["--no-event"], &["./pointers"]);
    let functions = report(&recording, &[]);
    let elapsed = |name: &str| {
        let rows = functions["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["function"].as_str().is_some_and(|function| function.starts_with(name)));
        row.unwrap()["elapsed"]["inclusive"]["ns"].as_u64().unwrap()
    };
    let lines = report(&recording, &["--by", "line"]);
    let line = 1 + POINTERS.lines().position(|line| line.contains("->area(")).unwrap() as u64;
    let row = lines["rows"].as_array().unwrap().iter().find(|row| row["line"] == line).expect("a line that calls");
    assert_eq!(row["calls"], 3);
    assert_eq!(row["elapsed"]["inclusive"]["ns"], elapsed("Shape::area") + elapsed("Disk::area"));
    let output = heatline(traced.folder.path(), &["annotate", "uftrace.data"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("calls spin(long) on lines 26, 27: 2 calls from all of them"), "{text}");
    assert_eq!(text.matches("on the first line of twice(").count(), 1, "{text}");
    // Their time is where the note says, and is told once.
    let first = 1 + POINTERS.lines().position(|line| line.contains(" twice(")).unwrap() as u64;
    let row = lines["rows"].as_array().unwrap().iter().find(|row| row["line"] == first).expect("the first line");
    assert_eq!(row["elapsed"]["inclusive"]["ns"], elapsed("twice"));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("warning"), "{output:?}");
    let output = heatline(traced.folder.path(), &["report", "uftrace.data", "--time", "0,1"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nonly what --time 0,1 selects\n"), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("--time 0,1: nothing was recorded then; the recording is from "), "{errors}");
    for (by, is_told) in [("line", true), ("function", false)] {
        let output = heatline(traced.folder.path(), &["report", "uftrace.data", "--by", by]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(errors.contains("is on none of them, but on its own first line (2 times)"), is_told, "{errors}");
    }
    // Of the two lines of `twice` nothing tells which made which call.
    let problem = &lines["problems"][0];
    assert_eq!((&problem["kind"], &problem["count"]), (&"ambiguous-call-lines".into(), &2.into()), "{lines}");
}

/// The file of the only thread.
fn thread_file(recording: &Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(recording).unwrap().map(|entry| entry.unwrap().path());
    let is_thread = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.strip_suffix(".dat").is_some_and(|tid| tid.parse::<u32>().is_ok())
    };
    files.find(is_thread).expect("a thread")
}

fn kinds(document: &Value) -> Vec<&str> {
    document["problems"].as_array().unwrap().iter().map(|problem| problem["kind"].as_str().unwrap()).collect()
}

/// What the machine had time to write of a recording: what is left is what uftrace finds.
#[test]
fn a_recording_that_was_cut_off_shows_what_was_written() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    let recording = traced.record("uftrace.data", &["--no-event"], &["./throwing"]);
    let file = thread_file(&recording);
    let bytes = std::fs::read(&file).unwrap();
    for part in 2..9 {
        let length = bytes.len() / 16 * part / 10 * 16;
        std::fs::write(&file, &bytes[..length]).unwrap();
        let theirs = traced.theirs("uftrace.data");
        let ours = ours(&report(&recording, &[]));
        for (name, theirs) in &theirs {
            let is_near = is_near(ours[name].elapsed, theirs.total, 1.0);
            assert!(is_near && ours[name].calls == theirs.calls, "{name}: {:?} {theirs:?}", ours[name]);
        }
        assert_eq!(ours["main"].calls, 1);
        // Half of a record behind is told and changes nothing.
        std::fs::write(&file, &bytes[..length + 8]).unwrap();
        let document = report(&recording, &[]);
        assert_eq!(kinds(&document), ["truncated"]);
        assert_eq!(self::ours(&document)["main"].elapsed, ours["main"].elapsed);
    }
}

/// The recorder writes `info` last, and what it knows of scheduling late.
#[test]
fn a_recorder_that_was_killed_leaves_elapsed_times() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    let recording = traced.record("uftrace.data", &[], &["./throwing"]);
    let before = ours(&report(&recording, &[]));
    std::fs::remove_file(recording.join("info")).unwrap();
    for entry in std::fs::read_dir(&recording).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("perf-cpu") {
            std::fs::write(path, "").unwrap();
        }
    }
    let document = report(&recording, &[]);
    let after = ours(&document);
    assert_eq!(after["rest"].calls, before["rest"].calls);
    assert_eq!(after["rest"].elapsed, before["rest"].elapsed);
    // Nothing says that the threads never waited.
    assert!(
        document["rows"][0].get("application").is_none() && kinds(&document).contains(&"missing-file"),
        "{document}"
    );
}

#[test]
fn the_two_recordings_that_the_recorder_keeps_are_compared_and_what_ails_both_is_said_once() {
    let traced = Traced::new();
    traced.compile("throwing.cpp", THROWING, "throwing", &["-pg"]);
    // The second recording renames the first.
    for _ in 0..2 {
        let recording = traced.record("uftrace.data", &[], &["./throwing"]);
        std::fs::remove_file(recording.join("info")).unwrap();
    }
    let folder = traced.record("other.data", &[], &["./throwing"]).parent().unwrap().to_owned();
    let output = heatline(&folder, &["diff", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let paths = document["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap());
    assert_eq!(paths.collect::<Vec<_>>(), ["uftrace.data.old", "uftrace.data"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    let about_info: Vec<&str> = errors.lines().filter(|line| line.contains("info cannot be read")).collect();
    assert_eq!(about_info.len(), 1, "{errors}");
    assert!(about_info[0].starts_with("heatline: warning: both recordings: "), "{errors}");
    // Of times per unit of work nothing tells how sure they are.
    let output = heatline(&folder, &["diff", "--work", "1,2", "--format", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = document["rows"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["status"] == "both") {
        let (new, weight) = (&row["new"][0], |side: &Value| side["weight"].as_f64().unwrap());
        let expected = weight(new) / weight(&row["baseline"]) / 2.0;
        let per_work = new["per_work"].as_object().unwrap();
        assert!((per_work["ratio"].as_f64().unwrap() - expected).abs() < 1e-9 && per_work.len() == 1, "{row}");
    }
    let output = heatline(&folder, &["diff", "uftrace.data", "other.data"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.starts_with("heatline: warning: uftrace.data: ") && !errors.contains("both"), "{errors}");
}

/// Calls that the recorder lost are missing, as they are in uftrace, and their number is told.
#[test]
fn lost_records_are_counted_and_the_calls_around_them_kept() {
    let traced = Traced::new();
    traced.compile("mixed.c", MIXED, "mixed", &["-pg"]);
    let recording = traced.record("uftrace.data", &["--no-event", "-F", "fib", "-D", "30"], &["./mixed"]);
    let file = thread_file(&recording);
    let mut bytes = std::fs::read(&file).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
    // A call and its return in the middle, as one record that says that two were lost.
    let middle = bytes.len() / 32 * 16;
    let is_leaf = |at: &usize| {
        word(*at) & 3 == 0 && word(*at + 16) & 3 == 1 && word(*at) >> 6 & 0x3ff == word(*at + 16) >> 6 & 0x3ff
    };
    let leaf = (middle..bytes.len() - 32).step_by(16).find(is_leaf).expect("a function that calls none");
    let lost = [0u64.to_le_bytes(), (2u64 | 5 << 3 | 2 << 16).to_le_bytes()].concat();
    bytes.splice(leaf..leaf + 32, lost);
    std::fs::write(&file, bytes).unwrap();
    let theirs = traced.theirs("uftrace.data");
    let document = report(&recording, &[]);
    assert_eq!(ours(&document)["fib"].calls, theirs["fib"].calls);
    let lost = document["problems"].as_array().unwrap().iter().find(|problem| problem["kind"] == "lost-samples");
    assert_eq!(lost.expect("a problem")["count"], 2);
}
