//! Debug information in files beside the binary.

use crate::tools::{Disk, fill_declared_files, folder, plain, resolve, run, symbolizer, symbols, write};
use heatline_profile::{Silent, Svma};
use heatline_symbols::{DebugFile, Image, Locate, Nowhere, Reason, Resolution, Storage};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const PROGRAM: &str = "static inline __attribute__((always_inline)) int twice(int n) { return n * 2 + (n >> 3); }\n\
    __attribute__((noinline)) int one(int n) { return twice(n) + twice(n + 1); }\n\
    int main(int argc, char **argv) { return one(argc); }\n";

/// Answers what it is asked with one file, and remembers the questions.
struct Answer {
    file: Option<PathBuf>,
    to: fn(&DebugFile<'_>) -> bool,
    asked: Mutex<Vec<String>>,
}

impl Answer {
    fn new(file: Option<PathBuf>, to: fn(&DebugFile<'_>) -> bool) -> Answer {
        Answer { file, to, asked: Mutex::default() }
    }
}

impl Locate for Answer {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        self.asked.lock().expect("one thread").push(format!("{wanted:?}"));
        self.file.as_ref().filter(|_| (self.to)(wanted)).map(|file| Disk::open(file))
    }
}

fn build(name: &str, options: &str) -> PathBuf {
    let folder = folder(&format!("separate-{name}"));
    write(&folder, "program.c", PROGRAM);
    run(&folder, &format!("gcc -O2 -g {options} program.c -o whole"));
    run(&folder, "objcopy --only-keep-debug whole apart.debug");
    run(&folder, "objcopy --strip-all --add-gnu-debuglink=apart.debug whole stripped");
    folder
}

/// An address in the call inlined into `one`.
fn inlined_call(folder: &Path) -> u64 {
    let whole = folder.join("whole");
    let one = symbols(&whole).into_iter().find(|s| s.name == "one").expect("a symbol");
    let deep = |address: &u64| plain(&resolve(&whole, &[*address]), 0).len() == 2;
    (one.start..one.start + one.size).find(deep).expect("an inlined call")
}

fn resolve_with(binary: &Path, locate: &dyn Locate, address: u64) -> Resolution {
    let image = Image::open(Disk::open(binary), locate).expect("it opens");
    image.resolve(&[Svma(address)], &Silent).expect("it resolves")
}

#[test]
fn separate_files_are_found_by_build_id() {
    let folder = build("id", "-Wl,--build-id=sha1");
    let address = inlined_call(&folder);
    let locate = Answer::new(Some(folder.join("apart.debug")), |wanted| matches!(wanted, DebugFile::BuildId(_)));
    let found = resolve_with(&folder.join("stripped"), &locate, address);
    assert_eq!(plain(&found, 0), plain(&resolve(&folder.join("whole"), &[address]), 0));
    assert!(found.problems.is_empty() && plain(&found, 0).len() == 2);
}

#[test]
fn separate_files_are_found_by_link_and_checksum() {
    let folder = build("link", "-Wl,--build-id=none");
    let address = inlined_call(&folder);
    let is_link = |wanted: &DebugFile<'_>| matches!(wanted, DebugFile::DebugLink { name: "apart.debug", .. });
    let locate = Answer::new(Some(folder.join("apart.debug")), is_link);
    let found = resolve_with(&folder.join("stripped"), &locate, address);
    assert_eq!(plain(&found, 0), plain(&resolve(&folder.join("whole"), &[address]), 0));
    // Another file of that name is not believed.
    let locate = Answer::new(Some(folder.join("whole")), is_link);
    let found = resolve_with(&folder.join("stripped"), &locate, address);
    assert_eq!(found.unresolved(0), Some(&Reason::MissingDebugFile("apart.debug".to_owned())));
    let problem = found.problems.iter().next().expect("a problem");
    assert_eq!(problem.kind, "debug-file-mismatch");
    assert!(problem.message.contains("expected CRC"), "{}", problem.message);
}

#[test]
fn a_separate_file_of_another_build_is_not_believed() {
    let folder = build("mismatch", "-Wl,--build-id=0x1111");
    let other = build("mismatch-other", "-Wl,--build-id=0x2222");
    let address = inlined_call(&folder);
    let locate = Answer::new(Some(other.join("apart.debug")), |_| true);
    let found = resolve_with(&folder.join("stripped"), &locate, address);
    assert_eq!(found.unresolved(0), Some(&Reason::MissingDebugFile("apart.debug".to_owned())));
    let messages: Vec<_> = found.problems.iter().map(|p| p.message.clone()).collect();
    assert_eq!(messages, ["separate debug file: expected build id 1111, found 2222"]);
}

#[test]
fn a_missing_separate_file_is_named() {
    let folder = build("missing", "-Wl,--build-id=0xabcd");
    let locate = Answer::new(None, |_| true);
    let found = resolve_with(&folder.join("stripped"), &locate, inlined_call(&folder));
    let reason = found.unresolved(0).map(ToString::to_string);
    assert_eq!(reason.as_deref(), Some("debug info is in apart.debug, which was not found"));
    let asked = locate.asked.lock().expect("one thread").clone();
    assert_eq!(asked[0], "BuildId(BuildId(abcd))");
    assert!(asked[1].starts_with("DebugLink { name: \"apart.debug\""), "{asked:?}");
    // A binary with its own debug information asks for nothing.
    let locate = Answer::new(None, |_| true);
    Image::open(Disk::open(&folder.join("whole")), &locate).expect("it opens");
    assert!(locate.asked.lock().expect("one thread").is_empty());
    assert!(Image::open(Disk::open(&folder.join("whole")), &Nowhere).is_ok());
}

/// Two units, so that each asks for its own file.
fn split(name: &str, command: &str) -> PathBuf {
    let folder = folder(&format!("split-{name}"));
    write(&folder, "program.c", PROGRAM);
    let second = PROGRAM.replace("one", "other").replace("main", "second");
    write(&folder, "second.c", &second);
    run(&folder, &format!("{command} -O2 -gsplit-dwarf -c program.c -o program.o"));
    run(&folder, &format!("{command} -O2 -gsplit-dwarf -c second.c -o second.o"));
    run(&folder, "gcc program.o second.o -o whole");
    folder
}

/// Finds split units by the recorded folder and name, or in the package beside the binary.
struct Split<'a> {
    folder: &'a Path,
    package: bool,
}

impl Locate for Split<'_> {
    fn locate(&self, wanted: &DebugFile<'_>) -> Option<Arc<dyn Storage>> {
        match wanted {
            DebugFile::Dwo { folder, name, .. } if !self.package => {
                let path = Path::new(folder.expect("a compilation folder")).join(name);
                path.exists().then(|| Disk::open(&path))
            }
            DebugFile::Package if self.package => Some(Disk::open(&self.folder.join("whole.dwp"))),
            _ => None,
        }
    }
}

#[track_caller]
fn check_split(folder: &Path, locate: &dyn Locate) -> Resolution {
    let whole = folder.join("whole");
    let wanted = ["one", "main", "other", "second"];
    let functions: Vec<_> = symbols(&whole).into_iter().filter(|s| wanted.contains(&s.name.as_str())).collect();
    let addresses: Vec<u64> = functions.iter().flat_map(|s| s.start..s.start + s.size).collect();
    let image = Image::open(Disk::open(&whole), locate).expect("it opens");
    let svmas: Vec<_> = addresses.iter().map(|a| Svma(*a)).collect();
    let resolution = image.resolve_with(&svmas, locate, &Silent).expect("it resolves");
    let mut theirs = symbolizer(&whole, &addresses);
    assert!(theirs.iter().any(|frames| frames.len() == 2));
    for (i, theirs) in theirs.iter_mut().enumerate() {
        let ours = plain(&resolution, i);
        fill_declared_files(theirs, &ours);
        assert_eq!(&ours, theirs, "at {:#x}", addresses[i]);
    }
    resolution
}

#[test]
fn split_units_are_read_from_their_files() {
    let compilers = ["clang-19 -gdwarf-5", "clang-19 -gdwarf-4", "gcc -gdwarf-5", "gcc -gdwarf-4"];
    for (i, command) in compilers.iter().enumerate() {
        let folder = split(&i.to_string(), command);
        let resolution = check_split(&folder, &Split { folder: &folder, package: false });
        assert!(resolution.problems.is_empty(), "{command}: {:?}", resolution.problems);
    }
}

#[test]
fn split_units_are_read_from_a_package() {
    for (i, command) in ["clang-19 -gdwarf-5", "clang-19 -gdwarf-4"].iter().enumerate() {
        let folder = split(&format!("package-{i}"), command);
        run(&folder, "llvm-dwp-19 -e whole -o whole.dwp");
        let resolution = check_split(&folder, &Split { folder: &folder, package: true });
        assert!(resolution.problems.is_empty(), "{command}: {:?}", resolution.problems);
    }
}

#[test]
fn a_missing_split_file_is_named_and_lines_stay() {
    let folder = split("missing", "clang-19 -gdwarf-5");
    let whole = folder.join("whole");
    let one = symbols(&whole).into_iter().find(|s| s.name == "one").expect("a symbol");
    let resolution = resolve(&whole, &[one.start]);
    let frames = plain(&resolution, 0);
    assert_eq!((frames.len(), frames[0].function.as_str(), frames[0].line), (1, "one", 2));
    let messages: Vec<_> = resolution.problems.iter().map(|p| p.message.clone()).collect();
    assert_eq!(messages, ["program.dwo holds functions and inlined calls and was not found"]);
}
