//! Recordings made by the tests, of a small program that does a bit of everything.

use heatline_profile::{Module, Profile, Silent};
use heatline_readers::{Binaries, BinaryBytes, Folder, Input, ReadOptions, ReadSeek};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Threads with names, deep and recursive calls, a child that runs the program anew, page faults, system calls.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

volatile unsigned long sink;

__attribute__((noinline)) unsigned long spin(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) sum += (i * 2654435761u) ^ (sum >> 3);
    sink += sum;
    return sum;
}
__attribute__((noinline)) unsigned long recurse(int depth, unsigned long n) {
    unsigned long here = spin(n);
    if (depth == 0) return here;
    return here + recurse(depth - 1, n) + 1;
}
__attribute__((noinline)) unsigned long touch(void) {
    unsigned char *pages = mmap(0, 512 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 0;
    for (int i = 0; i < 512; i++) { pages[i * 4096] = i; sum += pages[i * 4096]; }
    munmap(pages, 512 * 4096);
    return sum;
}
__attribute__((noinline)) unsigned long call_kernel(int n) {
    unsigned long sum = 0;
    char buffer[256];
    for (int i = 0; i < n; i++) {
        FILE *file = fopen("/proc/self/stat", "r");
        if (file) { sum += fread(buffer, 1, sizeof buffer, file); fclose(file); }
    }
    return sum;
}
static void *work(void *argument) {
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", (long)argument);
    pthread_setname_np(pthread_self(), name);
    sink += recurse(6, 2000000 * (1 + (long)argument));
    return 0;
}
int main(int count, char **arguments) {
    int again = count > 1 && !strcmp(arguments[1], "again");
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
    sink += recurse(20, 600000) + touch() + call_kernel(400);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (!again) {
        if (fork() == 0) { sink += spin(20000000); execl(arguments[0], arguments[0], "again", (char *)0); _exit(1); }
        wait(0);
        sink += spin(20000000);
    }
    return 0;
}
"#;

/// A folder that is removed in the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("heatline-readers-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles the program.
pub fn program(scratch: &Scratch) -> PathBuf {
    let (source, binary) = (scratch.path("busy.c"), scratch.path("busy"));
    std::fs::write(&source, PROGRAM).unwrap();
    let flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id", "-pthread"];
    run(Command::new("gcc").args(flags).arg("-o").arg(&binary).arg(&source));
    binary
}

/// Records the program with these options of `perf record`.
pub fn record(scratch: &Scratch, options: &[&str]) -> PathBuf {
    record_arguments(scratch, options, &[])
}

/// As [`record`], with arguments for the program: with `again` it starts no child.
pub fn record_arguments(scratch: &Scratch, options: &[&str], arguments: &[&str]) -> PathBuf {
    let program = program(scratch);
    let data = scratch.path("perf.data");
    run(perf(scratch)
        .args(["record", "-q", "-N", "-o"])
        .arg(&data)
        .args(options)
        .arg("--")
        .arg(program)
        .args(arguments));
    data
}

/// As [`record`], through a pipe into a file.
pub fn record_pipe(scratch: &Scratch, options: &[&str]) -> PathBuf {
    let program = program(scratch);
    let data = scratch.path("perf.data");
    let file = File::create(&data).unwrap();
    let mut command = perf(scratch);
    command.args(["record", "-q", "-N", "-o", "-"]).args(options).arg("--").arg(program).stdout(file);
    assert!(command.status().unwrap().success());
    data
}

/// perf, with a home of its own so that it leaves nothing behind.
pub fn perf(scratch: &Scratch) -> Command {
    let mut command = Command::new("perf");
    command.env("HOME", &scratch.0).env("LC_ALL", "C.UTF-8").env("PAGER", "cat").env("DEBUGINFOD_URLS", "");
    command.stdin(Stdio::null());
    command
}

/// Runs a command that must succeed and gives what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Reads a recording with our reader.
pub fn read(path: &Path) -> Profile {
    read_with(path, &ReadOptions::default())
}

/// The binaries at the paths that the recording names.
#[derive(Debug)]
pub struct OnDiskBinaries;

struct Bytes(Vec<u8>);

impl Binaries for OnDiskBinaries {
    fn open(&self, module: &Module) -> Option<Arc<dyn BinaryBytes>> {
        Some(Arc::new(Bytes(std::fs::read(&module.path).ok()?)))
    }
}

impl BinaryBytes for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        let part = self.0.get(position as usize..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A directory on disk.
struct OnDisk<'a>(&'a Path);

impl Folder for OnDisk<'_> {
    fn names(&self) -> io::Result<Vec<String>> {
        std::fs::read_dir(self.0)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn ReadSeek + '_>> {
        Ok(Box::new(File::open(self.0.join(name))?))
    }
}

pub fn read_with(path: &Path, options: &ReadOptions) -> Profile {
    if path.is_dir() {
        return heatline_readers::read(Input::Folder(&OnDisk(path)), options, &Silent).unwrap();
    }
    let mut file = File::open(path).unwrap();
    heatline_readers::read(Input::File(&mut file), options, &Silent).unwrap()
}

/// The bytes of a small recording with chains, two events, a fork and threads, made once.
pub fn small() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let scratch = Scratch::new("small");
        let data = record(&scratch, &["-e", "cpu-clock:u,page-faults:u", "-F", "400", "-g"]);
        std::fs::read(data).unwrap()
    })
}
