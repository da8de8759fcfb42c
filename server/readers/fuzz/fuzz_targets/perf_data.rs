//! Any bytes as a perf.data file, in either byte order, as file and as pipe in any pieces: reading must not panic or
//! hang, and a pipe must give the same as the file it was stored in.
#![no_main]

use heatline_profile::{Profile, Silent};
use heatline_readers::perf_data::RecordSink;
use heatline_readers::{Input, ReadError, ReadOptions, read};
use libfuzzer_sys::fuzz_target;
use std::io::{self, Cursor, Read};

fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else { return };
    let magic: &[u8] = if first & 1 == 0 { b"PERFILE2" } else { b"2ELIFREP" };
    let mut bytes = magic.to_vec();
    if first & 2 != 0 {
        // The size of a stream's header.
        bytes.extend(if first & 1 == 0 { 16u64.to_le_bytes() } else { 16u64.to_be_bytes() });
    }
    bytes.extend(rest);
    // What a dump shows is put together too.
    let records = RecordSink::new(|_| ()).with_features(|_| ());
    let options = ReadOptions { records: Some(records), ..ReadOptions::default() };
    let stored = read(Input::File(&mut Cursor::new(&bytes)), &options, &Silent);
    if first & 2 != 0 {
        let mut pieces = Pieces { bytes: &bytes, size: usize::from(first >> 2) + 1 };
        let streamed = read(Input::Stream(&mut pieces), &ReadOptions::default(), &Silent);
        assert_eq!(sums(&stored), sums(&streamed));
    }
});

fn sums(result: &Result<Profile, ReadError>) -> Option<Vec<(u64, u64)>> {
    let totals = result.as_ref().ok()?.totals();
    Some(totals.iter().map(|total| (total.samples, total.weight.0)).collect())
}

struct Pieces<'a> {
    bytes: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.size.min(buffer.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}
