//! What is there is shown, what is missing is named.

use super::writer::{Members, Records, kernel_header, kernel_pages, recording, switches};
use super::{problems, read, read_with};
use heatline_profile::RecordedFileId;
use heatline_readers::{ReadOptions, recognise_folder};
use std::num::NonZeroU32;

const MAIN: u64 = 0x100;
const A: u64 = 0x200;

/// Two threads with calls, waits and arguments.
fn whole() -> Members {
    let busy = |offset: u64| {
        let mut records = Records::new().enter(offset, MAIN);
        for round in 0..12 {
            let time = offset + 10 * round;
            records =
                records.enter(time + 1, A).with(&[1; 16]).enter(time + 2, A).leave(time + 3, A).leave(time + 7, A);
        }
        records.leave(offset + 300, MAIN)
    };
    let mut members = recording(&[(10, busy(1000)), (11, busy(1050))]);
    members.0.insert("perf-cpu0.dat".into(), switches(&[(1004, 10, true), (1006, 10, false), (1100, 11, true)]));
    let system_call = |n: u64| [(1050 + 20 * n, 10, true, 1 << 63, 0), (1059 + 20 * n, 10, false, 1 << 63, 0)];
    let moments: Vec<_> = (0..8).flat_map(system_call).collect();
    let mut pages = kernel_pages(&moments);
    // What lies behind the events of a page says nothing.
    pages.truncate(600);
    members.0.insert("kernel-cpu0.dat".into(), pages);
    for (name, text) in [
        ("kernel_header", String::from_utf8(kernel_header()).unwrap()),
        ("extern.dat", "# moments\n0.000001003 begin\n\n0.000001200 end\n0.5\n".into()),
        ("app.sym", "# path name: /bin/app\n0000000000000100 T main\n0000000000000200 T a\n".into()),
        ("app.dbg", "# path name: /bin/app\nF: 100 main\nL: 7 app.c\nR: @retval\nF: 200 a\nL: 3 app.c\n".into()),
    ] {
        members.0.insert(name.into(), text.into_bytes());
    }
    members.0.get_mut("info").unwrap()[16] |= 4;
    members
}

/// Elapsed time of all functions; reading must not fail where anything is left.
fn elapsed(members: &Members) -> Option<u64> {
    let profile = read_with(members, &ReadOptions::default()).ok()?;
    Some(profile.totals().first()?.weight.0)
}

#[test]
fn every_cut_of_every_file_leaves_what_comes_before() {
    let members = whole();
    let all = elapsed(&members).unwrap();
    for (name, bytes) in &members.0 {
        for length in 0..bytes.len() {
            let mut cut = members.clone();
            cut.0.insert(name.clone(), bytes[..length].to_vec());
            let profile =
                read_with(&cut, &ReadOptions::default()).unwrap_or_else(|error| panic!("{name} {length}: {error}"));
            assert!(profile.totals()[0].weight.0 <= all, "{name} {length}");
            // A cut inside of arguments is not seen, since nobody says how long they are.
            if name == "11.dat" && length % 16 != 0 && length < 16 {
                assert!(problems(&profile).iter().any(|(kind, _)| *kind == "truncated"), "{name} {length}");
            }
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    for (missing, named) in [
        ("info", "info"),
        ("task.txt", "task.txt"),
        ("sid-aa.map", "sid-aa.map"),
        ("10.dat", "10.dat"),
        ("perf-cpu0.dat", "perf-cpu<n>.dat"),
        ("kernel_header", "kernel_header"),
        ("kernel-cpu0.dat", "kernel-cpu<n>.dat"),
    ] {
        let mut members = whole();
        members.0.remove(missing);
        assert!(recognise_folder(&members).unwrap().is_some(), "{missing}");
        let profile = read(&members);
        assert!(profile.totals()[0].weight.0 > 0, "{missing}");
        let told = profile.problems.iter().any(|problem| problem.message.contains(named));
        assert!(told, "{missing}: {:?}", profile.problems);
    }
    let mut members = whole();
    members.0.retain(|name, _| !name.ends_with(".dat"));
    assert!(read_with(&members, &ReadOptions::default()).unwrap_err().to_string().contains("uftrace record"));
}

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

#[test]
fn no_change_of_bytes_does_harm() {
    let members = whole();
    let names: Vec<&String> = members.0.keys().collect();
    let mut numbers = Numbers(1);
    let mut shown = 0;
    for _ in 0..2000 {
        let mut changed = members.clone();
        let bytes = changed.0.get_mut(names[numbers.next(names.len())]).unwrap();
        for _ in 0..=numbers.next(4) {
            let at = numbers.next(bytes.len());
            match numbers.next(4) {
                0 if !bytes.is_empty() => bytes[at] = numbers.next(256) as u8,
                1 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.next(8),
                2 if !bytes.is_empty() => drop(bytes.drain(at..(at + numbers.next(24)).min(bytes.len()))),
                _ => {
                    let noise: Vec<u8> = (0..numbers.next(24)).map(|_| numbers.next(256) as u8).collect();
                    bytes.splice(at..at, noise);
                }
            }
        }
        shown += u64::from(elapsed(&changed).is_some_and(|ns| ns > 0));
    }
    // Hardly any change leaves nothing to show.
    assert!(shown > 1800, "{shown}");
}

#[test]
fn a_record_that_is_none_is_skipped_and_the_rest_is_read() {
    let members = whole();
    let mut damaged = members.clone();
    let bytes = damaged.0.get_mut("10.dat").unwrap();
    bytes[16 * 30..16 * 30 + 24].fill(0xff);
    let (before, after) = (elapsed(&members).unwrap(), elapsed(&damaged).unwrap());
    assert!(after > before * 8 / 10, "{after} of {before}");
    assert!(problems(&read(&damaged)).iter().any(|(kind, _)| *kind == "damaged-record"));
}

#[test]
fn messages_of_other_programs_are_counted() {
    assert!(problems(&read(&whole())).contains(&("skipped-messages", 2)));
}

/// Of two images with one name each has its own names and places, which its members say in their first lines.
#[test]
fn names_and_places_are_those_of_the_image() {
    let said = |members: &Members| {
        let profile = read(members);
        let said = profile.symbolization.as_ref()?;
        let file = |id: RecordedFileId| said.files[id.0 as usize].path.as_str();
        let function = said.functions.iter().find(|function| &*function.name == "main")?;
        Some(format!("{}:{}", function.file.map_or("?", file), function.line.map_or(0, NonZeroU32::get)))
    };
    let mut members = whole();
    assert_eq!(said(&members).as_deref(), Some("app.c:7"));
    let with_sizes = "# path name: /bin/app\n0000000000000100 00000020 T main\n0000000000000200 00000020 T a\n";
    members.0.insert("app.sym".into(), with_sizes.into());
    assert_eq!(said(&members).as_deref(), Some("app.c:7"));
    let of_another = "# path name: /bin/other/app\n0000000000000100 T other\n";
    members.0.insert("app-00fe.sym".into(), of_another.into());
    assert_eq!(said(&members).as_deref(), Some("app.c:7"));
    let another_build = "# path name: /bin/app\n# build-id: 0102\nF: 100 main\nL: 70 app.c\n";
    members.0.insert("app.dbg".into(), another_build.into());
    assert_eq!(said(&members).as_deref(), Some("?:0"));
    let with_number = "# path name: /bin/app\n# build-id: 00ff\nF: 100 main\nL: 8 sub/app.c\n";
    members.0.insert("app-00ff.dbg".into(), with_number.into());
    assert_eq!(said(&members).as_deref(), Some("sub/app.c:8"));
}
