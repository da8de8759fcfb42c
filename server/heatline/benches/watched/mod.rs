//! Programs that are run and watched.

#[path = "../../../readers/benches/memory/mod.rs"]
mod memory;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How a run of a program went.
pub struct Run {
    pub time: Duration,
    /// The most memory it had, in MiB.
    pub memory: f64,
    /// Whether it came to its end before it was stopped.
    #[allow(dead_code)] // Nobody asks who has no end of patience.
    pub finished: bool,
}

/// Runs a program and watches its memory; stops it when patience ends.
pub fn run(mut command: Command, patience: Option<Duration>) -> Run {
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("an installed program");
    let status = format!("/proc/{}/status", child.id());
    let mut memory = 0.0f64;
    loop {
        memory = memory.max(memory::peak(&status));
        if child.try_wait().expect("a child").is_some() {
            return Run { time: start.elapsed(), memory, finished: true };
        }
        if patience.is_some_and(|patience| start.elapsed() > patience) {
            let _ = child.kill();
            let _ = child.wait();
            return Run { time: start.elapsed(), memory, finished: false };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
