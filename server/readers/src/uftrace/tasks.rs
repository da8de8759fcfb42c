//! The member `task.txt`: which sessions (one per executed program), processes and threads there were.
//!
//! ```text
//! SESS timestamp=11545.007875021 pid=3159 sid=23fdd0aa29d2f7ee exename="/bin/app"
//! TASK timestamp=11545.014193496 tid=3159 pid=3159
//! FORK timestamp=11669.516785559 pid=6359 ppid=6355
//! DLOP timestamp=11669.600000000 tid=3159 sid=23fdd0aa29d2f7ee base=7f0012340000 libname="/lib/plugin.so"
//! ```

use rustc_hash::FxHashMap;

/// More threads, sessions and loaded libraries than this are not told apart.
const MOST_LINES: usize = 1 << 18;

/// Longer chains of parents are not followed.
const MOST_ANCESTORS: usize = 64;

/// One executed program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Session {
    pub pid: i32,
    pub start: u64,
    pub id: String,
    pub executable: String,
}

/// A library that was loaded after a program had started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Loaded {
    pub session: String,
    pub base: u64,
    pub path: String,
}

/// A thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Task {
    /// The process it belongs to.
    pub pid: i32,
    /// The process that it was forked from.
    pub parent: Option<i32>,
    pub start: u64,
}

/// All that `task.txt` says.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// By process, then by start.
    pub sessions: Vec<Session>,
    pub loaded: Vec<Loaded>,
    pub tasks: FxHashMap<i32, Task>,
    /// Lines that say nothing we know.
    pub strange_lines: u64,
    /// Lines beyond [`MOST_LINES`].
    pub dropped_lines: u64,
}

impl Tasks {
    pub fn parse(bytes: &[u8]) -> Tasks {
        let mut tasks = Tasks::default();
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let known = tasks.tasks.len() + tasks.sessions.len() + tasks.loaded.len();
            if known >= MOST_LINES {
                tasks.dropped_lines += 1;
            } else if tasks.line(&String::from_utf8_lossy(line)).is_none() {
                tasks.strange_lines += 1;
            }
        }
        tasks.sessions.sort_by_key(|session| (session.pid, session.start));
        tasks
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let start = timestamp(field(rest, "timestamp")?)?;
        let number = |name: &str| field(rest, name)?.parse::<i32>().ok();
        match kind {
            "TASK" => {
                let (tid, pid) = (number("tid")?, number("pid")?);
                // After an exec the same thread says again that it is there.
                let task = self.tasks.entry(tid).or_insert(Task { pid, parent: None, start });
                task.pid = pid;
            }
            "FORK" => {
                let (pid, parent) = (number("pid")?, number("ppid")?);
                self.tasks.insert(pid, Task { pid, parent: Some(parent), start });
            }
            "SESS" => self.sessions.push(Session {
                pid: number("pid").or_else(|| number("tid"))?,
                start,
                id: field(rest, "sid")?.to_owned(),
                executable: quoted(rest, "exename")?,
            }),
            "DLOP" => self.loaded.push(Loaded {
                session: field(rest, "sid")?.to_owned(),
                base: u64::from_str_radix(field(rest, "base")?, 16).ok()?,
                path: quoted(rest, "libname")?,
            }),
            _ => return None,
        }
        Some(())
    }

    /// The process of a thread; a thread that was not announced is a process of its own.
    pub fn pid(&self, tid: i32) -> i32 {
        self.tasks.get(&tid).map_or(tid, |task| task.pid)
    }

    /// The process that the process of a thread was forked from.
    pub fn parent(&self, tid: i32) -> Option<i32> {
        self.tasks.get(&tid)?.parent.filter(|&parent| parent != tid)
    }

    /// The number of the session that a thread belongs to at a time, and until when.
    pub fn session_at(&self, tid: i32, time: u64) -> (Option<usize>, u64) {
        let (mut pid, mut until) = (self.pid(tid), u64::MAX);
        let mut before = time;
        for _ in 0..MOST_ANCESTORS {
            let first = self.sessions.partition_point(|session| session.pid < pid);
            let after = self.sessions.partition_point(|session| (session.pid, session.start) <= (pid, before));
            if let Some(next) = self.sessions.get(after).filter(|next| next.pid == pid && next.start > time) {
                until = until.min(next.start);
            }
            if after > first {
                return (Some(after - 1), until);
            }
            // A forked process goes on in the program of its parent until it executes one itself.
            let Some(task) = self.tasks.get(&pid).filter(|task| task.parent.is_some()) else { break };
            before = before.min(task.start.max(1));
            pid = task.parent.unwrap_or(pid);
        }
        // With one session only, times that do not fit are no reason to know nothing.
        (self.sessions.first().filter(|_| self.sessions.len() == 1).map(|_| 0), until)
    }
}

/// The value behind `name=` up to the next space.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The value between quotes behind `name=`.
fn quoted(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("{name}=\""))?;
    Some(rest.rsplit_once('"').map_or(rest, |(text, _)| text).to_owned())
}

/// `seconds.nanoseconds`.
fn timestamp(text: &str) -> Option<u64> {
    let (seconds, nanoseconds) = text.split_once('.')?;
    let whole: u64 = seconds.parse().ok()?;
    let part: u64 = nanoseconds.parse().ok().filter(|part| *part < 1_000_000_000)?;
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "SESS timestamp=1.000000005 pid=10 sid=aa exename=\"/bin/with space\"\n\
        TASK timestamp=1.000000006 tid=10 pid=10\n\
        TASK timestamp=1.000000007 tid=11 pid=10\n\
        FORK timestamp=2.000000000 pid=20 ppid=10\n\
        SESS timestamp=3.000000000 pid=10 sid=bb exename=\"/bin/b\"\n\
        SESS timestamp=4.000000000 pid=20 sid=cc exename=\"/bin/c\"\n\
        DLOP timestamp=4.5 tid=20 sid=cc base=7f00 libname=\"/lib/p.so\"\nwhat is this";

    #[test]
    fn threads_and_forked_processes_find_their_program() {
        let tasks = Tasks::parse(TEXT.as_bytes());
        let at = |tid, seconds: u64| {
            let (session, until) = tasks.session_at(tid, seconds * 1_000_000_000);
            (session.map(|number| tasks.sessions[number].id.as_str()), until)
        };
        assert_eq!(at(11, 2), (Some("aa"), 3_000_000_000));
        assert_eq!(at(10, 3), (Some("bb"), u64::MAX));
        // Its parent executes another program at 3, the child at 4 only.
        assert_eq!(at(20, 3), (Some("aa"), 4_000_000_000));
        assert_eq!(at(20, 5), (Some("cc"), u64::MAX));
        assert_eq!(at(99, 5).0, None);
        assert_eq!((tasks.strange_lines, tasks.loaded.len()), (1, 1));
        assert_eq!(tasks.sessions[0].executable, "/bin/with space");
    }
}
