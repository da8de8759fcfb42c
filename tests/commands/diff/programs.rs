//! Programs with functions to be sampled, recordings that are written by hand, and both commands run on them.

use crate::lab::{heatline, perf};
use crate::writer::{EventSpec, IN_USER, Order, SAMPLE_TYPE, USER, Writer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the program and the library lie in the process of a recording that is written by hand.
const BASES: [(&str, u64); 2] = [("app", 0x5500_0000_0000), ("libx", 0x7f00_0000_0000)];

/// How many samples of a function, and the weight of each.
pub type Hits<'a> = (&'a str, u64, u64);

/// A folder with a program `app` of functions fn1 to fn6 and a library `libx` of g1.
pub struct Programs {
    folder: TempDir,
    addresses: BTreeMap<String, u64>,
}

impl Programs {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let function =
            |name: &str| format!("__attribute__((noipa)) int {name}(int x) {{ return x * x + {}; }}\n", name.len());
        let app: String = (1..=6).map(|n| function(&format!("fn{n}"))).collect();
        std::fs::write(folder.path().join("app.c"), app + "int main(void) { return fn1(2); }\n").expect("a file");
        std::fs::write(folder.path().join("x.c"), function("g1")).expect("a file");
        Programs::build(folder, "gcc", "app.c")
    }

    /// The same folder with C++ of which `app` is built; its functions are known by the linker's names.
    pub fn of_cpp(app: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("app.cpp"), app).expect("a file");
        std::fs::write(folder.path().join("x.c"), "int g1(int x) { return x; }\n").expect("a file");
        Programs::build(folder, "g++", "app.cpp")
    }

    fn build(folder: TempDir, compiler: &str, app: &str) -> Self {
        let mut programs = Programs { folder, addresses: BTreeMap::new() };
        // The library says of its source that it lies in the folder above, as those of distributions do.
        let elsewhere = format!("-ffile-prefix-map={}=..", programs.root().display());
        programs.run(Command::new(compiler).args(["-O1", "-g", app, "-o", "app"]));
        programs.run(Command::new("gcc").args(["-O1", "-g", "-shared", "-fPIC", &elsewhere, "x.c", "-o", "libx"]));
        for (file, base) in BASES {
            for line in programs.run(Command::new("nm").arg(file)).lines() {
                if let [address, "T" | "W", name] = line.split(' ').collect::<Vec<_>>()[..] {
                    let address = base + u64::from_str_radix(address, 16).expect("hex");
                    programs.addresses.insert(name.to_owned(), address);
                }
            }
        }
        programs
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, command: &mut Command) -> String {
        let output = command.current_dir(self.folder.path()).output().expect("an installed program");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Writes a recording with these samples; those of the library are of another process.
    pub fn write(&self, name: &str, hits: &[Hits<'_>]) {
        self.write_with(Writer::new(Order::Little), name, hits);
    }

    /// The same into a file that is begun already.
    pub fn write_with(&self, mut writer: Writer, name: &str, hits: &[Hits<'_>]) {
        for (pid, comm) in [(100, "app"), (200, "other")] {
            writer.comm(pid, pid, comm, 0, 1);
            for (file, base) in BASES {
                let path = self.path(file);
                writer.mmap(pid, [base, 0x10000, 0], path.to_str().expect("a plain path"), 1, 2);
            }
        }
        let mut time = 1000;
        for &(function, samples, weight) in hits {
            let pid = if function == "g1" { 200 } else { 100 };
            let address = self.addresses[function] + 1;
            for _ in 0..samples {
                writer.sample((pid, pid), time, weight, &[USER, address]);
                time += 1;
            }
        }
        std::fs::write(self.path(name), writer.file(&[])).expect("a file");
    }

    /// Writes a recording with stacks and with the last branches of each sample: `main` called the function.
    pub fn write_branches(&self, name: &str, hits: &[Hits<'_>]) {
        const BRANCH_STACK: u64 = 1 << 11;
        const ANY: u64 = 1 << 3;
        let sample_type = SAMPLE_TYPE | BRANCH_STACK;
        let event = EventSpec { sample_type, branch_sample_type: ANY, ..EventSpec::default() };
        let mut writer = Writer::with_events(Order::Little, vec![event]);
        let (file, base) = BASES[0];
        writer.comm(100, 100, "app", 0, 1);
        writer.mmap(100, [base, 0x10000, 0], self.path(file).to_str().expect("a plain path"), 1, 2);
        let call = self.addresses["main"] + 1;
        for &(function, samples, weight) in hits {
            let start = self.addresses[function];
            // How many there are, then source, target and flags of each.
            let branches = writer.words(&[2, call, start, 0, call - 1, call, 0]);
            for time in 0..samples {
                let chain = [USER, start + 1, call + 4];
                writer.sample_with(IN_USER, (100, 100), 1000 + time, weight, &chain, &branches);
            }
        }
        std::fs::write(self.path(name), writer.file(&[])).expect("a file");
    }

    /// A, B and C of the worked examples.
    pub fn write_examples(&self) {
        self.write("A", &[("fn1", 50, 100), ("fn2", 30, 100), ("fn3", 15, 100), ("fn4", 5, 100)]);
        self.write("B", &[("fn1", 40, 100), ("fn2", 60, 100), ("fn4", 20, 100), ("fn5", 80, 100)]);
        self.write("C", &[("fn1", 10, 100), ("fn3", 10, 100), ("fn6", 20, 50), ("g1", 20, 100)]);
    }

    /// The JSON of a comparison, which must succeed or end because of its limit.
    #[track_caller]
    pub fn diff(&self, arguments: &[&str]) -> Value {
        let output = heatline(self.root(), &[&["diff", "--format", "json"], arguments].concat());
        assert!(output.status.code() <= Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// What `heatline diff --perf` prints, which must be what `perf diff` prints.
#[track_caller]
pub fn as_perf(folder: &Path, arguments: &[&str]) -> String {
    let output = heatline(folder, &[&["diff", "--perf", "-f"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let ours = String::from_utf8(output.stdout).expect("text");
    let mut command = perf();
    let output = command.args(["diff", "-f"]).args(arguments).current_dir(folder).output().expect("perf is installed");
    let theirs = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(ours, theirs, "{arguments:?}");
    ours
}

/// The rows of a table that perf prints with this separator, as cells.
pub fn cells(table: &str, separator: char) -> Vec<Vec<&str>> {
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    rows.map(|line| line.split(separator).map(str::trim).collect()).collect()
}
