//! Feature sections as a dump shows them.

use super::recording::{Scratch, perf, record, run};
use super::writer::{Order, Writer};
use expect_test::expect;
use heatline_profile::Silent;
use heatline_readers::perf_data::RecordSink;
use heatline_readers::{Input, ReadOptions};
use serde_json::Value;
use std::io::Cursor;
use std::sync::{Arc, Mutex};

/// The feature sections of a file, as JSON, one a line.
fn features(bytes: &[u8]) -> Vec<String> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let sink = RecordSink::new(|_| ()).with_features(move |feature| {
        lines.lock().unwrap().push(serde_json::to_string(feature).unwrap());
    });
    let options = ReadOptions { records: Some(sink), ..ReadOptions::default() };
    heatline_readers::read(Input::File(&mut Cursor::new(bytes)), &options, &Silent).unwrap();
    seen.lock().unwrap().clone()
}

fn counted(writer: &Writer, text: &str) -> Vec<u8> {
    let size = (text.len() + 1).next_multiple_of(64);
    let mut bytes = [writer.u32(size as u32).to_vec(), text.as_bytes().to_vec()].concat();
    bytes.resize(4 + size, 0);
    bytes
}

#[test]
fn facts_of_the_recording_are_shown_in_both_byte_orders() {
    for order in [Order::Little, Order::Big] {
        let mut writer = Writer::new(order);
        writer.round();
        let writer = writer;
        let texts = |count: u32, texts: &[&str]| {
            let texts = texts.iter().flat_map(|text| counted(&writer, text));
            writer.u32(count).into_iter().chain(texts).collect::<Vec<_>>()
        };
        let clock = writer.words(&[1_000, 7]);
        let sections = [
            (3, counted(&writer, "box")),
            (7, [writer.u32(8), writer.u32(6)].concat()),
            (11, texts(2, &["perf", "record"])),
            (21, writer.words(&[10, 20])),
            (23, writer.words(&[1])),
            (29, [writer.u32(1).to_vec(), writer.u32(4).to_vec(), clock].concat()),
            (30, texts(1, &["cpu_core", "0-3"])),
        ];
        let lines = features(&writer.file(&sections));
        expect![[r#"
            {"name":"HOSTNAME","offset":368,"text":"box","size":68}
            {"name":"NRCPUS","offset":436,"available":8,"online":6,"size":8}
            {"name":"CMDLINE","offset":444,"arguments":["perf","record"],"size":140}
            {"name":"SAMPLE_TIME","offset":584,"first":10,"last":20,"size":16}
            {"name":"CLOCKID","offset":600,"resolution_ns":1,"size":8}
            {"name":"CLOCK_DATA","offset":608,"version":1,"clock":4,"wall_clock_ns":1000,"clock_ns":7,"size":24}
            {"name":"HYBRID_TOPOLOGY","offset":632,"units":["cpu_core: 0-3"],"size":140}"#]]
        .assert_eq(&lines.join("\n"));
    }
}

#[test]
fn recorded_facts_are_those_that_perf_shows() {
    let scratch = Scratch::new("features");
    let data = record(&scratch, &["-e", "cpu-clock:u", "-F", "100", "-k", "CLOCK_MONOTONIC"]);
    let shown = run(perf(&scratch).args(["report", "-f", "--header-only", "-I", "-i"]).arg(&data));
    let fact = |label: &str| {
        let line = shown.lines().find_map(|line| line.strip_prefix(&format!("# {label} : ")));
        line.unwrap_or_else(|| panic!("no {label} in {shown}")).trim().to_owned()
    };
    let lines = features(&std::fs::read(&data).unwrap());
    let all: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| all.iter().find(|feature| feature["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(of("HOSTNAME")["text"], fact("hostname"));
    assert_eq!(of("OSRELEASE")["text"], fact("os release"));
    assert_eq!(of("ARCH")["text"], fact("arch"));
    assert_eq!(of("CPUID")["text"], fact("cpuid"));
    assert_eq!(of("NRCPUS")["online"].to_string(), fact("nrcpus online"));
    assert_eq!(of("NRCPUS")["available"].to_string(), fact("nrcpus avail"));
    let arguments: Vec<&str> =
        of("CMDLINE")["arguments"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    assert_eq!(arguments.join(" "), fact("cmdline"));
    let seconds = |time: &Value| {
        let time = time.as_u64().unwrap();
        format!("{}.{:06}", time / 1_000_000_000, time % 1_000_000_000 / 1000)
    };
    assert_eq!(seconds(&of("SAMPLE_TIME")["first"]), fact("time of first sample"));
    assert_eq!(seconds(&of("SAMPLE_TIME")["last"]), fact("time of last sample"));
    assert_eq!(of("CLOCK_DATA")["clock"], 1);
    let texts = |name: &str, field: &str| -> Vec<String> {
        let all = of(name)[field].as_array().unwrap_or_else(|| panic!("no {field} of {name}"));
        all.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let facts = |label: &str| -> Vec<String> {
        let of_label =
            |line: &str| Some(line.strip_prefix(&format!("# {label}"))?.trim_start_matches([' ', ':']).to_owned());
        shown.lines().filter_map(of_label).collect()
    };
    assert_eq!(texts("CPU_TOPOLOGY", "packages"), facts("sibling sockets"));
    assert_eq!(texts("CPU_TOPOLOGY", "cores"), facts("sibling threads"));
    assert_eq!(texts("CPU_TOPOLOGY", "dies"), facts("sibling dies"));
    let places = facts("CPU ");
    let place = |text: &String| {
        text.replace(": Core ID", ": core").replace(", Die ID", " die").replace(", Socket ID", " package")
    };
    let places: Vec<String> = places.iter().filter(|text| text.contains("Core ID")).map(place).collect();
    assert_eq!(texts("CPU_TOPOLOGY", "processors"), places);
    assert_eq!(texts("PMU_MAPPINGS", "units").join(", "), facts("pmu mappings").join(", "));
    let node = &facts("node0 cpu list")[0];
    assert!(texts("NUMA_TOPOLOGY", "nodes")[0].ends_with(&format!("processors {node}")));
    let caches = facts(" L");
    for (ours, perf) in texts("CACHE", "caches").iter().zip(&caches) {
        let words = |text: &str| text.split([' ', ',']).filter(|w| !w.is_empty()).take(4).collect::<Vec<_>>().join(" ");
        assert_eq!(words(ours), words(&format!("L{perf}")));
    }
    assert_eq!(texts("CACHE", "caches").len(), caches.len());
    let memory = texts("MEM_TOPOLOGY", "nodes");
    let blocks: Vec<&str> = memory.iter().map(|node| node.rsplit(' ').next().unwrap()).collect();
    let theirs = facts("   0 [");
    assert!(theirs[0].ends_with(blocks[0]), "{memory:?} {theirs:?}");
    let ids = run(perf(&scratch).args(["buildid-list", "-i"]).arg(&data));
    assert_eq!(texts("BUILD_ID", "build_ids"), ids.lines().collect::<Vec<_>>());
    assert!(texts("EVENT_DESC", "events")[0].starts_with("cpu-clock:u: ids "));
}
