//! Names of threads.

use super::tasks::Tasks;
use heatline_profile::Thread;
use rustc_hash::FxHashMap;

/// Characters of a thread's name in Linux.
const LONGEST: usize = 15;

/// The threads under their names, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub threads: Vec<Thread>,
    known: FxHashMap<Thread, u32>,
}

impl Names {
    /// The number of a thread while it runs a program: it is called as the program unless it got a name of its own.
    pub fn number(&mut self, tid: i32, session: Option<usize>, tasks: &Tasks, given: &[(i32, u64, String)]) -> u32 {
        let program = session.and_then(|number| tasks.sessions.get(number));
        let start = program.map_or(0, |program| program.start);
        let end = tasks.session_at(tid, start).1;
        let own = given.iter().rev().find(|(of, at, _)| *of == tid && (start..end).contains(at));
        let comm = match (own, program) {
            (Some((_, _, name)), _) => name.clone(),
            (None, Some(program)) => {
                let base = program.executable.rsplit('/').next().unwrap_or_default();
                base.chars().take(LONGEST).collect()
            }
            (None, None) => String::new(),
        };
        let thread = Thread { pid: tasks.pid(tid), tid, comm };
        *self.known.entry(thread).or_insert_with_key(|thread| {
            self.threads.push(thread.clone());
            self.threads.len() as u32 - 1
        })
    }
}
