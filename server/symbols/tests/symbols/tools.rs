//! Building binaries, and asking llvm-symbolizer about them.

use heatline_profile::{Silent, Svma};
use heatline_symbols::{Image, Nowhere, Resolution, Storage};
use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A file on disk, read in parts as in the product.
pub struct Disk(fs::File);

impl Disk {
    pub fn open(path: &Path) -> Arc<dyn Storage> {
        Arc::new(Disk(fs::File::open(path).expect("the file is there")))
    }
}

impl Storage for Disk {
    fn len(&self) -> u64 {
        self.0.metadata().map_or(0, |m| m.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

pub fn open(path: &Path) -> Image {
    Image::open(Disk::open(path), &Nowhere).expect("the binary opens")
}

pub fn resolve(path: &Path, addresses: &[u64]) -> Resolution {
    let addresses: Vec<_> = addresses.iter().map(|a| Svma(*a)).collect();
    open(path).resolve(&addresses, &Silent).expect("the addresses resolve")
}

/// An empty folder of its own for a test.
pub fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

pub fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("in a folder")).expect("a folder");
    fs::write(path, text).expect("a source file");
}

/// Runs `command`, words separated by spaces, in `folder`, and gives what it prints.
#[track_caller]
pub fn run(folder: &Path, command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = words.next().expect("a program");
    let output = Command::new(program).args(words).current_dir(folder).output();
    let output = output.unwrap_or_else(|e| panic!("{program} is needed: {e}"));
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// One frame, comparable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plain {
    /// The linkage name, or the plain one where there is no other.
    pub function: String,
    pub file: String,
    /// 0 for none, as for the column.
    pub line: u64,
    pub column: u64,
    /// Where the function is declared.
    pub declared: (String, u64),
}

/// Our frames of the `i`-th address.
pub fn plain(resolution: &Resolution, i: usize) -> Vec<Plain> {
    let frame = |frame: &heatline_symbols::Frame| {
        let function = frame.function.map(|id| resolution.function(id));
        Plain {
            function: function.map_or(String::new(), |f| f.linkage_name.as_ref().unwrap_or(&f.name).to_string()),
            file: frame.file.map_or(String::new(), |id| resolution.file(id).path.clone()),
            line: frame.line.map_or(0, |n| n.get().into()),
            column: frame.column.map_or(0, |n| n.get().into()),
            declared: (
                function.and_then(|f| f.file).map_or(String::new(), |id| resolution.file(id).path.clone()),
                function.and_then(|f| f.line).map_or(0, |n| n.get().into()),
            ),
        }
    };
    resolution.frames(i).iter().map(frame).collect()
}

/// llvm-symbolizer's frames of each address; frames of which it knows nothing are left out.
pub fn symbolizer(binary: &Path, addresses: &[u64]) -> Vec<Vec<Plain>> {
    let mut child = Command::new("llvm-symbolizer-19")
        .arg(format!("--obj={}", binary.display()))
        .args(["--output-style=JSON", "--inlines", "--no-demangle", "--functions=linkage"])
        .env("DEBUGINFOD_URLS", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer-19 is needed");
    let text: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let mut input = child.stdin.take().expect("piped");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).expect("it reads all"));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("all written");
    let text = String::from_utf8_lossy(&output.stdout);
    let answers: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).map(symbolizer_line).collect();
    assert_eq!(answers.len(), addresses.len());
    answers
}

fn symbolizer_line(line: &str) -> Vec<Plain> {
    let json: serde_json::Value = serde_json::from_str(line).expect("JSON");
    let frames = json["Symbol"].as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().filter(|s| *s != "??").unwrap_or_default().to_owned();
    let frame = |frame: &serde_json::Value| Plain {
        function: text(&frame["FunctionName"]),
        file: text(&frame["FileName"]),
        line: frame["Line"].as_u64().unwrap_or(0),
        // A column of no line says nothing.
        column: frame["Column"].as_u64().filter(|_| frame["Line"] != 0).unwrap_or(0),
        declared: (text(&frame["StartFileName"]), frame["StartLine"].as_u64().unwrap_or(0)),
    };
    frames.iter().map(frame).filter(|f| !f.function.is_empty() || !f.file.is_empty()).collect()
}

/// llvm-symbolizer does not read the file of a declaration where it is the same constant for all entries of a kind
/// (`DW_FORM_implicit_const`, as gcc writes it): ours is put there, so that all else can be compared.
pub fn fill_declared_files(theirs: &mut [Plain], ours: &[Plain]) {
    for (theirs, ours) in theirs.iter_mut().zip(ours) {
        if theirs.declared.0.is_empty() {
            theirs.declared.0.clone_from(&ours.declared.0);
        }
    }
}

/// Random numbers that are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A function symbol of `nm`.
#[derive(Clone, Debug)]
pub struct Symbol {
    pub start: u64,
    pub size: u64,
    pub name: String,
}

pub fn symbols(binary: &Path) -> Vec<Symbol> {
    let text = run(Path::new("/"), &format!("llvm-nm-19 --print-size --defined-only {}", binary.display()));
    let parse = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [start, size, kind, name] = words.as_slice() else { return None };
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        matches!(*kind, "t" | "T" | "w" | "W" | "i").then_some(())?;
        Some(Symbol { start: hex(start)?, size: hex(size)?, name: (*name).to_owned() })
    };
    text.lines().filter_map(parse).collect()
}

/// Address and size of a section, from `readelf`.
pub fn section(binary: &Path, name: &str) -> (u64, u64) {
    let text = run(Path::new("/"), &format!("readelf -SW {}", binary.display()));
    for line in text.lines() {
        let words: Vec<_> = line.split(']').nth(1).unwrap_or("").split_whitespace().collect();
        if words.first() == Some(&name) {
            let hex = |word: &str| u64::from_str_radix(word, 16).expect("hex");
            return (hex(words[2]), hex(words[4]));
        }
    }
    panic!("no section {name} in {}", binary.display())
}
