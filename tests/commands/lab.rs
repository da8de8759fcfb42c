//! Programs that the tests compile and record, and the product run on them.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Two source files and a header: recursion over two functions, inlining from the header, a library, threads and a
/// child process.
const SOURCES: [(&str, &str); 4] = [
    (
        "step.h",
        "static inline __attribute__((always_inline)) unsigned step(unsigned hash, unsigned value) {
    hash ^= value;
    hash *= 16777619u;
    return hash ^ (hash >> 13);
}
static inline __attribute__((always_inline)) unsigned twice(unsigned hash, unsigned value) {
    hash = step(hash, value);
    return step(hash, value + 1);
}
unsigned library_work(unsigned hash, unsigned count);
",
    ),
    (
        "library.c",
        "#include \"step.h\"
static __attribute__((noipa)) unsigned helper(unsigned hash) {
    for (unsigned i = 0; i < 500; i++)
        hash = twice(hash, i);
    return hash;
}
__attribute__((noipa)) unsigned library_work(unsigned hash, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        hash = step(hash, i);
    return helper(hash);
}
",
    ),
    (
        "other.c",
        "#include \"step.h\"
__attribute__((noipa)) unsigned odd(unsigned depth, unsigned hash);
static __attribute__((noipa)) unsigned helper(unsigned hash) {
    for (unsigned i = 0; i < 300; i++)
        hash = step(hash, i);
    return hash;
}
__attribute__((noipa)) unsigned even(unsigned depth, unsigned hash) {
    if (depth == 0)
        return helper(hash);
    hash = odd(depth - 1, hash);
    for (unsigned i = 0; i < 200; i++)
        hash = step(hash, i);
    return hash;
}
__attribute__((noipa)) unsigned odd(unsigned depth, unsigned hash) {
    hash = even(depth - 1, hash);
    return twice(hash, depth);
}
",
    ),
    (
        "main.c",
        "#define _GNU_SOURCE
#include \"step.h\"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
unsigned even(unsigned depth, unsigned hash);
volatile unsigned sink;
static __attribute__((noipa)) unsigned touch(unsigned hash) {
    char *pool = malloc(1 << 20);
    memset(pool, (int)hash, 1 << 20);
    hash += (unsigned char)pool[hash & 0xfffff];
    free(pool);
    return hash;
}
static __attribute__((noipa)) unsigned busy(unsigned hash, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        hash = step(hash, i);
        if ((hash & 1023) == 7)
            hash += 3;
    }
    return hash;
}
static __attribute__((noipa)) unsigned round_once(unsigned hash) {
    hash = busy(hash, 3000);
    hash = even(6, hash);
    hash = library_work(hash, 2000);
    return touch(hash);
}
static void *worker(void *name) {
    unsigned hash = 1;
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 1500; i++)
        hash = round_once(hash);
    sink = hash;
    return 0;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, worker, \"first\");
    pthread_create(&threads[1], 0, worker, \"second\");
    pid_t child = fork();
    if (child == 0) {
        sink = busy(7, 20000000);
        _exit(0);
    }
    waitpid(child, 0, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
",
    ),
];

/// A folder with the compiled program `app` and `liblibrary.so`.
pub struct Lab {
    folder: TempDir,
}

impl Lab {
    pub fn new() -> Self {
        let lab = Lab { folder: tempfile::tempdir().expect("a folder") };
        for (name, text) in SOURCES {
            std::fs::write(lab.path(name), text).expect("a source file");
        }
        let flags = ["-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id"];
        lab.run(Command::new("gcc").args(flags).args(["-shared", "-fPIC", "library.c", "-o", "liblibrary.so"]));
        let rest = ["main.c", "other.c", "-o", "app", "-L.", "-llibrary", "-Wl,-rpath,$ORIGIN", "-pthread"];
        lab.run(Command::new("gcc").args(flags).args(rest));
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Records the program with these options of `perf record`.
    pub fn record(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let mut perf = perf();
        perf.args(["record", "-q", "-N", "-o"]).arg(&path).args(options).arg("--").arg(self.path("app"));
        self.run(&mut perf);
        path
    }

    /// Runs a program in the folder and insists on its success.
    pub fn run(&self, command: &mut Command) -> String {
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

/// `perf`, in a language that can be parsed.
pub fn perf() -> Command {
    let mut perf = Command::new("perf");
    perf.env("LC_ALL", "C").env("PAGER", "cat").env("DEBUGINFOD_URLS", "");
    perf
}

/// The product, run in a folder.
pub fn heatline(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heatline"))
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("HOME", folder)
        .output()
        .expect("the built binary")
}

/// What `heatline report --format json` says of a recording.
pub fn report(profile: &Path, arguments: &[&str]) -> Value {
    let folder = profile.parent().expect("a folder");
    let name = profile.file_name().expect("a name").to_str().expect("a plain name");
    let all = [&["report", name, "--format", "json"], arguments].concat();
    let output = heatline(folder, &all);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{all:?}: {errors}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A comparison of exclusive costs, which needs no callers, has the costs that the report has, which reads them all.
#[track_caller]
pub fn check_compared(profile: &Path) {
    let name = profile.file_name().expect("a name").to_str().expect("a plain name");
    for by in ["function", "line", "module"] {
        let rows = |document: &Value, cost: &str| -> Vec<(String, u64)> {
            let place = |row: &Value| ["module", "function", "file", "line"].map(|key| row[key].to_string()).join(" ");
            let rows = document["rows"].as_array().expect("rows").iter();
            let costs = rows.map(|row| (place(row), row[cost]["weight"].as_u64().expect("a weight")));
            let mut costs: Vec<(String, u64)> = costs.filter(|(_, weight)| *weight > 0).collect();
            costs.sort();
            costs
        };
        let output =
            heatline(profile.parent().expect("a folder"), &["diff", name, name, "--by", by, "--format", "json"]);
        let compared: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let expected = rows(&report(profile, &["--by", by]), "exclusive");
        assert!(!expected.is_empty());
        assert_eq!(rows(&compared, "baseline"), expected, "by {by}");
    }
}
