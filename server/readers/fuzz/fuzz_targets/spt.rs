//! Any bytes behind the magic of an SPT file: reading, printing and writing again must not panic, and what was read
//! must survive being written.
#![no_main]

use heatline_profile::Silent;
use heatline_readers::spt::{self, DumpFormat, Options, Views};
use heatline_readers::{Input, ReadOptions};
use libfuzzer_sys::{Corpus, fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::io::{self, Cursor};

/// Signature and version; the mutator keeps them, or most inputs would end there.
const MAGIC: [u8; 8] = *b":TPS\x01\0\0\0";

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, _seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if let Some(magic) = data.get_mut(..MAGIC.len()) {
        magic.copy_from_slice(&MAGIC);
    }
    size.max(MAGIC.len().min(max_size))
});

fuzz_target!(|data: &[u8]| -> Corpus {
    for format in [DumpFormat::Text, DumpFormat::Json] {
        let file = Input::File(&mut Cursor::new(data));
        let _ = spt::dump(file, &mut io::sink(), Views::ALL, format, &Options::default(), &Silent);
    }
    let Ok(profile) = read(data) else { return Corpus::Reject };
    let mut written = Vec::new();
    if spt::write_profile(&profile, &mut written).is_ok() {
        let again = read(&written).expect("what was written can be read");
        assert_eq!(again.rows, profile.rows);
        assert_eq!(again.arcs, profile.arcs);
    }
    Corpus::Keep
});

fn read(data: &[u8]) -> Result<heatline_profile::Profile, spt::SptError> {
    spt::read(Input::File(&mut Cursor::new(data)), &ReadOptions::default(), &Silent)
}
