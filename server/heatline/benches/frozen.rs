//! Freezing a recording of 90 MB, and opening what was frozen.
//!
//! `cargo bench -p heatline --bench frozen`. The recording is generated over this package's own binary. Freezing is
//! `heatline freeze` against `heatline report` of the same file, whole processes. Opening is what the language server
//! takes from being asked to open the frozen file to showing it; a whole `heatline report` of it is told besides.

#![allow(clippy::disallowed_methods, clippy::print_stdout)] // It starts processes and prints results.

#[path = "../../../tests/protocol/client.rs"]
mod client;
#[path = "../../readers/benches/generate/mod.rs"]
mod generate;

use client::Client;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Measurements; the fastest counts, as it is the least disturbed.
const RUNS: usize = 7;

/// About 90 MB.
const SAMPLES: u64 = 562_500;

/// What opening a frozen profile may take.
const OPENING: Duration = Duration::from_millis(50);

/// What freezing may add to loading.
const FREEZING: Duration = Duration::from_millis(250);

fn main() {
    let folder = std::env::temp_dir().join(format!("heatline-frozen-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (live, frozen) = (folder.join("perf.data"), folder.join("a.heatline"));
    let text = generate::text_of(Path::new(env!("CARGO_BIN_EXE_heatline"))).expect("an ELF binary");
    let plan = generate::Plan { samples: SAMPLES, texts: vec![text.clone(), text], ..generate::Plan::default() };
    generate::write(&live, &plan).expect("room for the file");
    let freeze = || run(heatline("freeze").arg(&live).arg("-o").arg(&frozen));
    let report = |profile: &Path| run(heatline("report").args(["--limit", "20"]).arg(profile));
    let freezing = fastest(freeze);
    let loading = fastest(|| report(&live));
    let reporting = fastest(|| report(&frozen));
    let opening = fastest(|| open(&folder.join("empty"), &frozen));
    let size = |path: &Path| std::fs::metadata(path).map_or(0.0, |metadata| metadata.len() as f64 / 1e6);
    println!("recording {:.0} MB, frozen {:.1} MB", size(&live), size(&frozen));
    println!("report of the recording:   {:6.0} ms", millis(loading));
    println!("report of the frozen file: {:6.0} ms", millis(reporting));
    println!("opening it:                {:6.0} ms, wanted at most {:.0}", millis(opening), millis(OPENING));
    let added = freezing.saturating_sub(loading);
    println!(
        "freezing:                  {:6.0} ms, of which {:.0} are not loading, wanted at most {:.0}",
        millis(freezing),
        millis(added),
        millis(FREEZING)
    );
    let _ = std::fs::remove_dir_all(folder);
}

fn heatline(command: &str) -> Command {
    let mut heatline = Command::new(env!("CARGO_BIN_EXE_heatline"));
    heatline.arg(command).stdout(Stdio::null()).stderr(Stdio::null());
    heatline
}

/// How long a server that shows nothing yet takes to show a profile.
fn open(root: &Path, profile: &Path) -> Duration {
    std::fs::create_dir_all(root).expect("a folder");
    let mut client = Client::start(root, &[]);
    client.initialize(root, json!({}));
    client.notify("initialized", json!({}));
    client.status("idle");
    let start = Instant::now();
    let arguments = json!({ "command": "heatline.server.open", "arguments": [profile] });
    client.call("workspace/executeCommand", arguments);
    client.status("ready");
    let time = start.elapsed();
    client.end();
    time
}

fn run(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.status().expect("the built binary");
    assert!(status.success(), "{command:?}");
    start.elapsed()
}

fn fastest(work: impl Fn() -> Duration) -> Duration {
    (0..RUNS).map(|_| work()).min().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
