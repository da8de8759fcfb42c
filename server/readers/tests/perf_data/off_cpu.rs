//! Time off the processors: from switch records, and from the scheduler's tracepoint with the stacks that were left.

use super::writer::{EventSpec, IN_KERNEL, Order, SAMPLE_TYPE, USER, Writer};
use heatline_profile::{Profile, Silent, Unit};
use heatline_readers::{Input, ReadOptions};
use std::io::Cursor;

const P: (u32, u32) = (100, 100);
const Q: (u32, u32) = (200, 200);

fn read(writer: &Writer, options: &ReadOptions) -> Profile {
    heatline_readers::read(Input::File(&mut Cursor::new(writer.file(&[]))), options, &Silent).unwrap()
}

/// The rows of an event: samples, weight, thread and innermost address, in order.
fn rows(profile: &Profile, event: &str) -> Vec<(u64, u64, i32, u64)> {
    let Some(event) = profile.find_event(event) else { return Vec::new() };
    let rows = profile.rows.iter().filter(|row| row.event == event).map(|row| {
        let address = profile.stacks.node(row.stack).address.recorded().0;
        (row.tally.samples, row.tally.weight.0, profile.thread(row.thread.unwrap()).tid, address)
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by_key(|row| (row.2, row.3));
    rows
}

fn begin(mut writer: Writer) -> Writer {
    for task in [P, Q] {
        writer.comm(task.0, task.1, "app", 0, 0);
        writer.mmap(task.0, [0x1000, 0x1000, 0], "/usr/bin/app", 1, 0);
    }
    writer
}

/// Two threads; the second leaves before it was ever sampled.
fn switching(with_switches: bool) -> Writer {
    let mut writer = begin(Writer::new(Order::Little));
    let switch = |writer: &mut Writer, task, out, time| {
        if with_switches {
            writer.switch(task, out, time);
        }
    };
    writer.sample(P, 10, 7, &[USER, 0x1010, 0x1100]);
    switch(&mut writer, P, true, 20);
    switch(&mut writer, P, false, 50);
    writer.sample(P, 60, 7, &[USER, 0x1020, 0x1100]);
    switch(&mut writer, P, true, 70);
    writer.round();
    switch(&mut writer, Q, true, 30);
    switch(&mut writer, Q, false, 45);
    writer.sample(Q, 90, 7, &[USER, 0x1030]);
    writer.round();
    writer
}

#[test]
fn time_between_switches_belongs_to_the_last_sample_before() {
    let profile = read(&switching(true), &ReadOptions::default());
    // The last wait ends with the recording.
    assert_eq!(rows(&profile, "off-cpu"), [(1, 30, 100, 0x10), (1, 20, 100, 0x20), (1, 15, 200, 0)]);
    let event = profile.event(profile.find_event("off-cpu").unwrap());
    assert_eq!((event.unit, event.precise, event.has_stacks), (Unit::Nanoseconds, false, true));
    let application = [(1, 7, 100, 0x10), (1, 7, 100, 0x20), (1, 7, 200, 0x30)];
    assert_eq!(rows(&profile, "application"), application);
    let elapsed = [(2, 37, 100, 0x10), (2, 27, 100, 0x20), (1, 15, 200, 0), (1, 7, 200, 0x30)];
    assert_eq!(rows(&profile, "elapsed"), elapsed);
}

#[test]
fn costs_on_the_processor_stay_as_they_are_and_without_switches_there_is_nothing_else() {
    let (with, without) = [true, false].map(|with| read(&switching(with), &ReadOptions::default())).into();
    assert_eq!(rows(&with, "cpu-clock"), rows(&without, "cpu-clock"));
    assert_eq!((with.samples(), with.default_event()), (without.samples(), without.default_event()));
    let names = |profile: &Profile| profile.events.iter().map(|event| event.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&without), ["cpu-clock"]);
    assert_eq!(names(&with), ["cpu-clock", "off-cpu", "elapsed", "application"]);
}

#[test]
fn chosen_times_cut_waits_and_chosen_processors_leave_none() {
    let options = ReadOptions { time: Some((40, 65).into()), ..ReadOptions::default() };
    let profile = read(&switching(true), &options);
    assert_eq!(rows(&profile, "off-cpu").iter().map(|row| row.1).sum::<u64>(), 10 + 5);
    let options = ReadOptions { cpus: Some(vec![0, 1, 2, 3]), ..ReadOptions::default() };
    assert_eq!(rows(&read(&switching(true), &options), "off-cpu"), []);
}

/// What a sample of the tracepoint holds: eight bytes of common fields, then who leaves and who takes over.
fn raw(writer: &Writer, next: u32) -> Vec<u8> {
    let mut bytes = vec![0; 56];
    bytes.extend([writer.u32(next), writer.u32(120)].concat());
    [writer.u32(bytes.len() as u32).to_vec(), bytes, vec![0; 4]].concat()
}

#[test]
fn the_schedulers_tracepoint_tells_the_stack_that_was_left() {
    for order in [Order::Little, Order::Big] {
        const TRACEPOINT: u32 = 2;
        const RAW: u64 = 1 << 10;
        let event = EventSpec { kind: TRACEPOINT, sample_type: SAMPLE_TYPE | RAW, ..EventSpec::default() };
        let mut writer = begin(Writer::with_events(order, vec![event]));
        let name = [writer.words(&[2, 0]), b"sched:sched_switch\0\0\0\0\0\0".to_vec()].concat();
        writer.record(78, 0, &name);
        for (task, time, address, next) in [(P, 10, 0x1010, 200), (Q, 15, 0x1020, 100), (P, 40, 0x1030, 0)] {
            let raw = raw(&writer, next);
            writer.sample_with(IN_KERNEL, task, time, 1, &[USER, address], &raw);
        }
        writer.round();
        let profile = read(&writer, &ReadOptions::default());
        assert_eq!(rows(&profile, "off-cpu"), [(1, 5, 100, 0x10), (1, 25, 200, 0x20)]);
        assert!(profile.event(profile.find_event("off-cpu").unwrap()).precise);
        // No event measured time on processors.
        assert!(profile.find_event("elapsed").is_none());
    }
}
