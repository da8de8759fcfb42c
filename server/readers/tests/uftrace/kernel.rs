//! Functions of the kernel on the stacks of the programs that called it.

use super::writer::{
    KernelMoment, Members, Records, kernel_event, kernel_header, kernel_page, kernel_pages, recording, switches,
};
use super::{calls, counts, problems, read, times};
use heatline_profile::{CallStats, ModuleKind};

const MAIN: u64 = 0x100;
const WRITE: u64 = 0x200;
const SYS_WRITE: u64 = 0xffff_ffff_8100_0000;
const VFS_WRITE: u64 = 0xffff_ffff_8100_1000;
const SCHEDULE: u64 = 0xffff_ffff_8100_2000;

/// main 1000–2000 calls write 1100–1900, which enters the kernel 1150–1850, there vfs_write 1200–1800, there schedule
/// 1300–1600, of which the thread is away 1400–1500. Functions before and after those of the program do not count.
fn moments() -> Vec<KernelMoment> {
    vec![
        (900, 10, true, SYS_WRITE, 0),
        (950, 10, false, SYS_WRITE, 0),
        (1150, 10, true, SYS_WRITE, 0),
        (1200, 10, true, VFS_WRITE, 1),
        (1300, 10, true, SCHEDULE, 2),
        (1600, 10, false, SCHEDULE, 2),
        (1800, 10, false, VFS_WRITE, 1),
        (1850, 10, false, SYS_WRITE, 0),
        (2100, 10, true, SYS_WRITE, 0),
    ]
}

pub fn with_kernel(moments: &[KernelMoment]) -> Members {
    let records = Records::new().enter(1000, MAIN).enter(1100, WRITE).leave(1900, WRITE).leave(2000, MAIN);
    let mut members = recording(&[(10, records)]);
    members.0.insert("perf-cpu0.dat".into(), switches(&[(1400, 10, true), (1500, 10, false)]));
    members.0.insert("kernel_header".into(), kernel_header());
    members.0.insert("kernel-cpu0.dat".into(), kernel_pages(moments));
    members
}

#[test]
fn functions_of_the_kernel_lie_above_the_function_that_called_it() {
    let profile = read(&with_kernel(&moments()));
    let expected = [
        (MAIN, [1000, 200, 900, 200]),
        (WRITE, [800, 100, 700, 100]),
        (SYS_WRITE, [700, 100, 600, 100]),
        (VFS_WRITE, [600, 300, 500, 300]),
        (SCHEDULE, [300, 300, 200, 200]),
    ];
    assert_eq!(times(&profile).into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(calls(&profile)[&VFS_WRITE], CallStats { calls: 1, total_ns: 600, shortest_ns: 600, longest_ns: 600 });
    assert_eq!(counts(&profile)[&SYS_WRITE], 1);
    let kernel = profile.modules.iter().find(|module| module.kind == ModuleKind::Kernel).unwrap();
    assert_eq!((kernel.path.as_str(), problems(&profile)), ("[kernel.kallsyms]", vec![]));
}

#[test]
fn a_thread_that_changes_processors_keeps_its_stack() {
    let mut members = with_kernel(&moments()[..5]);
    members.0.insert("kernel-cpu1.dat".into(), kernel_pages(&moments()[5..]));
    assert_eq!(times(&read(&members)), times(&read(&with_kernel(&moments()))));
}

/// Calls over many pages, with pauses that do not fit into an event.
#[test]
fn pages_and_long_pauses_do_not_show() {
    const ROUNDS: u64 = 2000;
    const PAUSE: u64 = 400_000_000;
    let round = |n: u64| [(1000 + n * PAUSE, 10, true, SYS_WRITE, 0), (1100 + n * PAUSE, 10, false, SYS_WRITE, 0)];
    let moments: Vec<KernelMoment> = (0..ROUNDS).flat_map(round).collect();
    let records = Records::new().enter(500, MAIN).leave(ROUNDS * PAUSE, MAIN);
    let mut members = with_kernel(&moments);
    members.0.insert("10.dat".into(), records.bytes);
    members.0.insert("perf-cpu0.dat".into(), Vec::new());
    let profile = read(&members);
    assert_eq!((counts(&profile)[&SYS_WRITE], times(&profile)[&SYS_WRITE][0]), (ROUNDS, ROUNDS * 100));
    assert!(members.0["kernel-cpu0.dat"].len() > 10 * 4096);
}

#[test]
fn returns_that_are_missing_end_with_what_comes_next() {
    let mut some = moments();
    some.retain(|moment| moment.2 || moment.3 == SCHEDULE);
    let profile = read(&with_kernel(&some));
    // The kernel is left at the latest when the program goes on.
    assert_eq!(times(&profile)[&SYS_WRITE], [750, 50, 650, 50]);
    assert_eq!(times(&profile)[&WRITE], [800, 50, 700, 50]);
    let mut some = moments();
    some.retain(|moment| !moment.2 || moment.3 == SCHEDULE);
    let profile = read(&with_kernel(&some));
    assert_eq!((times(&profile)[&SCHEDULE], problems(&profile)), ([300, 300, 200, 200], vec![("unmatched-calls", 1)]));
}

#[test]
fn what_the_kernel_lost_and_what_is_no_function_is_counted() {
    let mut wakeup = 300u32.to_le_bytes().to_vec();
    wakeup.extend(10i32.to_le_bytes());
    wakeup.extend(11i32.to_le_bytes());
    let mut events = kernel_event(0, &wakeup);
    // Taken back, then nothing more.
    events.extend((29u32 | 7 << 5).to_le_bytes());
    events.extend(12u32.to_le_bytes());
    events.extend([0xff; 8]);
    events.extend(kernel_event(3, &wakeup));
    let mut page = kernel_page(1150, 3 << 30, &events);
    let behind = 16 + events.len();
    page[behind..behind + 8].copy_from_slice(&17u64.to_le_bytes());
    let mut members = with_kernel(&moments());
    members.0.get_mut("kernel-cpu0.dat").unwrap().extend(page);
    assert_eq!(problems(&read(&members)), [("lost-samples", 17), ("skipped-events", 2)]);
}

#[test]
fn without_the_header_the_kernel_is_not_shown_and_that_is_told() {
    for header in [None, Some(Vec::new()), Some(b"PAGE_SIZE: 4096\n".to_vec())] {
        let mut members = with_kernel(&moments());
        match header {
            Some(header) => members.0.insert("kernel_header".into(), header),
            None => members.0.remove("kernel_header"),
        };
        let profile = read(&members);
        assert_eq!(times(&profile)[&WRITE], [800, 800, 700, 700]);
        assert!(profile.problems.iter().any(|problem| problem.message.contains("kernel_header")));
    }
}
