//! What records come to.

use super::writer::{Members, Records, map, recording, switches};
use super::{calls, counts, problems, read, read_with, recorded, times};
use heatline_profile::{CallStats, Identity, ProfileKind};
use heatline_readers::{ReadOptions, recognise_folder};

const MAIN: u64 = 0x100;
const A: u64 = 0x200;
const B: u64 = 0x300;
const FORK: u64 = 0x400;

/// Worked example V1. Intervals: 10 [main], 20 [main, A], 5 [main, A] waiting, 30 [main, A, B], 15 [main, A, B] waiting,
/// 8 [main, A, A], 12 [main].
fn worked_example() -> Members {
    let records = Records::new().enter(1000, MAIN).enter(1010, A).enter(1035, B).leave(1080, B).enter(1080, A);
    let records = records.leave(1088, A).leave(1088, A).leave(1100, MAIN);
    let mut members = recording(&[(10, records)]);
    let waits = [(1030, 10, true), (1035, 10, false), (1065, 10, true), (1080, 10, false)];
    members.0.insert("perf-cpu0.dat".into(), switches(&waits));
    members
}

#[test]
fn the_worked_example_has_its_four_times() {
    let profile = read(&worked_example());
    let expected = [(MAIN, [100, 22, 80, 22]), (A, [78, 33, 58, 28]), (B, [45, 45, 30, 30])];
    assert_eq!(times(&profile).into_iter().collect::<Vec<_>>(), expected);
    let total = |name: &str| profile.totals()[profile.find_event(name).unwrap().0 as usize].weight.0;
    assert_eq!(["elapsed", "application", "waiting", "calls"].map(total), [100, 80, 20, 4]);
    assert_eq!(calls(&profile)[&A], CallStats { calls: 2, total_ns: 86, shortest_ns: 8, longest_ns: 78 });
    assert_eq!((profile.kind, profile.samples(), problems(&profile)), (ProfileKind::Uftrace, 4, vec![]));
    assert_eq!(profile.recording.duration_ns, Some(100));
}

#[test]
fn the_recording_says_what_it_is() {
    let members = worked_example();
    assert_eq!(recognise_folder(&members).unwrap(), Some(ProfileKind::Uftrace));
    let profile = read(&members);
    assert_eq!(profile.recording.recorder.as_deref(), Some("uftrace v0.13"));
    assert_eq!(profile.recording.os_release.as_deref(), Some("6.1.0"));
    assert_eq!((profile.threads[0].pid, profile.threads[0].tid, profile.threads[0].comm.as_str()), (10, 10, "app"));
    assert_eq!(profile.modules[0].path, "/bin/app");
    assert!(matches!(&profile.modules[0].identity, Some(Identity::BuildId(id)) if id.to_string() == "00ff"));
}

#[test]
fn only_the_chosen_time_counts() {
    let options = ReadOptions { time: Some((1005, 1033).into()), ..ReadOptions::default() };
    let profile = read_with(&worked_example(), &options).unwrap();
    assert_eq!(times(&profile).into_iter().collect::<Vec<_>>(), [(MAIN, [28, 5, 25, 5]), (A, [23, 23, 20, 20])]);
    let options = ReadOptions { cpus: Some(vec![0]), ..ReadOptions::default() };
    assert!(read_with(&worked_example(), &options).unwrap_err().to_string().contains("--cpu"));
}

#[test]
fn without_scheduling_there_is_no_application_time() {
    let mut members = worked_example();
    members.0.remove("perf-cpu0.dat");
    let profile = read(&members);
    assert_eq!(times(&profile)[&A], [78, 33, 0, 0]);
    assert!(profile.find_event("application").is_none() && profile.find_event("waiting").is_none());
    assert_eq!(problems(&profile), [("missing-file", 1)]);
}

#[test]
fn arguments_values_and_events_are_skipped() {
    // What looks like a record but fits neither time nor stack is none.
    let trap = Records::new().enter(5, A).bytes;
    let text = [&9u16.to_le_bytes()[..], b"some text"].concat();
    let records = Records::new().enter(10, MAIN).with(&[1; 24]).enter(20, A).with(&trap).leave(30, A).with(&text);
    let records = records.raw(31, 3, 0, 0, 100_001).with(&[&24u16.to_le_bytes()[..], &[7; 24]].concat());
    let records = records.raw(32, 3, 0, 0, 1_000_000).leave(50, MAIN).with(&[0; 8]);
    let profile = read(&recording(&[(10, records)]));
    assert_eq!(times(&profile).into_iter().collect::<Vec<_>>(), [(MAIN, [40, 30, 40, 30]), (A, [10, 10, 10, 10])]);
    assert_eq!(problems(&profile), []);
}

#[test]
fn calls_that_never_returned_end_with_the_last_that_is_known() {
    let records = Records::new().enter(10, MAIN).enter(20, A).enter(25, B).leave(29, B);
    let mut members = recording(&[(10, records)]);
    members.0.insert("perf-cpu0.dat".into(), switches(&[(40, 10, true)]));
    let profile = read(&members);
    assert_eq!(times(&profile)[&MAIN], [30, 10, 30, 10]);
    assert_eq!(calls(&profile)[&A], CallStats { calls: 1, total_ns: 20, shortest_ns: 20, longest_ns: 20 });
}

#[test]
fn a_jump_leaves_the_functions_between() {
    // main enters A, A enters A; a jump back into main, which enters B.
    let records = Records::new().enter(10, MAIN).enter(20, A).enter(30, A).jump(1).enter(50, B).leave(55, B);
    let profile = read(&recording(&[(10, records.leave(60, MAIN))]));
    let expected = [(MAIN, [50, 15, 50, 15]), (A, [30, 30, 30, 30]), (B, [5, 5, 5, 5])];
    assert_eq!(times(&profile).into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(counts(&profile).into_iter().collect::<Vec<_>>(), [(MAIN, 1), (A, 2), (B, 1)]);
}

#[test]
fn nothing_is_said_of_the_time_in_which_records_were_lost() {
    let records = Records::new().enter(10, MAIN).enter(20, A).lost(7).jump(1).enter(100, B).leave(110, B);
    let profile = read(&recording(&[(10, records.leave(120, MAIN))]));
    // From 20 to 100 nobody knows; main was there before and after.
    assert_eq!(times(&profile)[&MAIN], [30, 20, 30, 20]);
    assert_eq!(times(&profile)[&B], [10, 10, 10, 10]);
    assert_eq!(problems(&profile), [("lost-samples", 7)]);
}

#[test]
fn a_forked_process_goes_on_where_its_parent_was() {
    let parent =
        Records::new().enter(10, MAIN).enter(20, A).enter(30, FORK).leave(40, FORK).leave(90, A).leave(99, MAIN);
    let child = Records::at_depth(3).leave(45, FORK).enter(50, B).leave(60, B).leave(65, A).leave(70, MAIN);
    let mut members = recording(&[(10, parent), (20, child)]);
    let tasks = "SESS timestamp=0.000000001 pid=10 sid=aa exename=\"/bin/app\"\n\
        TASK timestamp=0.000000002 tid=10 pid=10\nFORK timestamp=0.000000044 pid=20 ppid=10\n";
    members.0.insert("task.txt".into(), tasks.into());
    let profile = read(&members);
    assert_eq!(times(&profile)[&MAIN], [89 + 25, 19 + 5, 89 + 25, 19 + 5]);
    assert_eq!(times(&profile)[&B], [10, 10, 10, 10]);
    assert_eq!(counts(&profile)[&MAIN], 2);
    let threads: Vec<_> = profile.threads.iter().map(|thread| (thread.pid, thread.tid)).collect();
    assert_eq!((threads, problems(&profile)), (vec![(10, 10), (20, 20)], vec![]));
}

#[test]
fn callers_that_nobody_told_of_are_unknown() {
    let records = Records::at_depth(2).leave(45, A).enter(50, B).leave(60, B).leave(65, MAIN);
    let profile = read(&recording(&[(10, records)]));
    assert_eq!((times(&profile)[&B], counts(&profile)[&A]), ([10, 10, 10, 10], 1));
    assert_eq!(problems(&profile), [("unmatched-calls", 1)]);
}

#[test]
fn another_program_in_the_same_process_has_its_own_functions() {
    let records = Records::new().enter(10, MAIN).enter(20, A).jump(0).enter(100, MAIN).leave(130, MAIN);
    let mut members = recording(&[(10, records)]);
    let tasks = "SESS timestamp=0.000000001 pid=10 sid=aa exename=\"/bin/app\"\n\
        TASK timestamp=0.000000002 tid=10 pid=10\n\
        SESS timestamp=0.000000090 pid=10 sid=bb exename=\"/usr/bin/other\"\nTASK timestamp=0.000000091 tid=10 pid=10\n";
    members.0.insert("task.txt".into(), tasks.into());
    members.0.insert("sid-bb.map".into(), map("/usr/bin/other", recorded(0)));
    let profile = read(&members);
    let module = |path: &str| profile.modules.iter().position(|module| module.path == path).unwrap();
    let elapsed = profile.find_event("elapsed").unwrap();
    let of = |path: &str| -> u64 {
        let in_module = |stack| profile.stacks.node(stack).module.0 as usize == module(path);
        let rows = profile.rows.iter().filter(|row| row.event == elapsed && in_module(row.stack));
        rows.map(|row| row.tally.weight.0).sum()
    };
    assert_eq!((of("/bin/app"), of("/usr/bin/other")), (10, 30));
    let names: Vec<_> = profile.threads.iter().map(|thread| thread.comm.as_str()).collect();
    assert_eq!(names, ["app", "other"]);
}

/// More switches than are held at once, over two threads and processors.
#[test]
fn windows_of_time_do_not_show() {
    const WAITS: u64 = 150_000;
    let busy = |offset: u64| {
        let mut records = Records::new().enter(offset, MAIN);
        for round in 0..WAITS / 1000 {
            records = records.enter(offset + round * 20_000 + 5, A).leave(offset + round * 20_000 + 1005, A);
        }
        records.leave(offset + WAITS * 20, MAIN)
    };
    let mut members = recording(&[(10, busy(100)), (11, busy(107))]);
    for (processor, tid, offset) in [(0, 10, 100), (1, 11, 107)] {
        let waits = (0..WAITS).flat_map(|n| [(offset + n * 20 + 2, tid, true), (offset + n * 20 + 4, tid, false)]);
        let waits: Vec<_> = waits.collect();
        members.0.insert(format!("perf-cpu{processor}.dat"), switches(&waits));
    }
    let profile = read(&members);
    assert_eq!(times(&profile)[&MAIN][..3], [2 * WAITS * 20, 2 * (WAITS * 20 - WAITS), 2 * WAITS * 18]);
    assert_eq!((counts(&profile)[&A], problems(&profile)), (2 * WAITS / 1000, vec![]));
}
