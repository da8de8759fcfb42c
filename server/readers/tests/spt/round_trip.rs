//! The writer against the reader.

use crate::{costs, list, read_bytes};
use heatline_profile::{Event, PdbId, Profile, ProfileKind, Unit};
use heatline_readers::spt::{
    self, Description, Elements, LengthReading, Op, ProgramData, RecordData, SegmentData, Signature, WriteError,
};
use proptest::prelude::*;

fn program() -> impl Strategy<Value = ProgramData> {
    ("[a-zäß.\\\\]{0,12}", any::<[u8; 16]>(), any::<u32>())
        .prop_map(|(name, guid, age)| ProgramData { id: PdbId { guid, age }, name })
}

fn elements() -> impl Strategy<Value = Elements> {
    let rva = || prop_oneof![0_u32..64, any::<u32>()];
    let sample = prop::sample::select(Op::ALL.to_vec()).prop_filter("a sample", |op| op.is_sample());
    prop_oneof![
        (sample, prop::collection::vec(rva(), 0..=255)).prop_map(|(op, rvas)| Elements::Samples(op, rvas)),
        prop::collection::vec((rva(), rva()), 0..=255).prop_map(Elements::Arcs),
        prop::collection::vec(rva(), 0..=255).prop_map(Elements::Stack),
    ]
}

fn record() -> impl Strategy<Value = RecordData> {
    (prop_oneof![Just(1), 1_u64..10, Just(u64::MAX), 1..u64::MAX], elements())
        .prop_map(|(hits, elements)| RecordData { hits, elements })
}

fn description() -> impl Strategy<Value = Description> {
    (
        prop::collection::vec(program(), 1..5),
        prop::collection::vec((0_u16..5, prop::collection::vec(record(), 0..6)), 1..6),
        prop::sample::select(LengthReading::ALL.to_vec()),
        any::<bool>(),
        0_u16..100,
    )
        .prop_map(|(programs, segments, reading, read, capacity)| {
            let count = programs.len() as u16;
            let segment = |(program, records)| SegmentData { program: program % count, records };
            Description {
                signature: if read { Signature::Read } else { Signature::Stored },
                reading,
                string_capacity: capacity,
                program_capacity: capacity,
                segments: segments.into_iter().map(segment).collect(),
                programs,
            }
        })
}

/// What the reader should list of a description.
fn expected(description: &Description) -> Vec<String> {
    let mut lines = Vec::new();
    for segment in &description.segments {
        for record in &segment.records {
            let line = |name: &str| format!("#{} {name} x{}", segment.program, record.hits);
            lines.push(match &record.elements {
                Elements::Samples(op, rvas) => rvas.iter().fold(line(op.name()), |l, rva| format!("{l} {rva:#x}")),
                Elements::Stack(rvas) => rvas.iter().fold(line("ETW_CALLSTACK"), |l, rva| format!("{l} {rva:#x}")),
                Elements::Arcs(arcs) => arcs.iter().fold(line("LBR"), |l, (a, b)| format!("{l} {a:#x}->{b:#x}")),
            });
        }
    }
    lines
}

fn written(description: &Description) -> Vec<u8> {
    let mut file = Vec::new();
    spt::write(description, &mut file).unwrap();
    file
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn what_is_written_is_read(description in description()) {
        let (listing, summary) = list(&written(&description));
        prop_assert_eq!(listing.records, expected(&description));
        let preamble = listing.preamble.unwrap();
        prop_assert_eq!(preamble.header.signature, description.signature);
        let programs: Vec<_> =
            preamble.programs.into_iter().map(|p| ProgramData { id: p.id, name: p.name }).collect();
        prop_assert_eq!(programs, description.programs);
        prop_assert!(!summary.assumed && !summary.truncated);
        prop_assert_eq!(summary.segments, description.segments.len() as u64);
    }

    #[test]
    fn a_profile_survives_writing_and_reading(description in description()) {
        let profile = read_bytes(&written(&description)).unwrap();
        let mut file = Vec::new();
        let left_out = spt::write_profile(&profile, &mut file).unwrap();
        prop_assert!(left_out.is_empty());
        let again = read_bytes(&file).unwrap();
        prop_assert_eq!(costs(&again), costs(&profile));
        prop_assert_eq!(&again.modules, &profile.modules);
        prop_assert_eq!(&again.events, &profile.events);
        prop_assert_eq!(&again.rows, &profile.rows);
        prop_assert_eq!(&again.arcs, &profile.arcs);
        prop_assert_eq!(again.stacks.nodes(), profile.stacks.nodes());
    }
}

#[test]
fn many_elements_are_split_over_records() {
    let rvas: Vec<u32> = (0..600).collect();
    let records = vec![RecordData { hits: 3, elements: Elements::Samples(Op::EtwInstr, rvas) }];
    let programs = vec![ProgramData { id: PdbId { guid: [1; 16], age: 1 }, name: "m.exe".into() }];
    let segments = vec![SegmentData { program: 0, records }];
    let (listing, _) = list(&written(&Description { programs, segments, ..Description::default() }));
    assert_eq!(listing.records.len(), 3);
    assert!(listing.records.iter().all(|record| record.starts_with("#0 ETW_INSTR x3")));
}

#[test]
fn a_profile_without_image_bases_cannot_be_written() {
    let mut profile = Profile::new(ProfileKind::PerfData);
    profile.events.push(Event::new("cycles", Unit::Events));
    let error = spt::write_profile(&profile, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, WriteError::NoBinary));
}
