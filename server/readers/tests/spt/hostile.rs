//! Hostile input: nothing makes the reader panic, hang or take more memory than the file warrants.

use crate::{list, list_with, read_bytes, with_prefix};
use heatline_profile::Silent;
use heatline_readers::spt::Options;

const FILE: &str = "
    81 00 00 00 48 00 00 00  01 01 00 10 00 00  82 00 02 00 00 00 00 00 00 00  41 02 00 10 00 00 10 10 00 00
    82 00 09 00 00 00 00 00 00 00  10 02 10 10 00 00 25 10 00 00 00 10 00 00 30 10 00 00
    42 03 04 10 00 00 2a 10 00 00 55 10 00 00
    81 00 00 00 1e 00 00 00  02 02 00 10 00 00 00 10 00 00 82 00 ff ff ff ff ff ff ff ff 03 01 00 20 00 00";

#[test]
fn a_file_cut_anywhere_gives_a_prefix_of_its_records() {
    let file = with_prefix(FILE);
    let (whole, _) = list(&file);
    for len in 0..file.len() {
        let Ok((part, summary)) = list_with(&file[..len], &Options::default(), &Silent) else {
            assert!(len < 0x60, "cut at {len:#x}");
            continue;
        };
        assert!(whole.records.starts_with(&part.records), "cut at {len:#x}: {:?}", part.records);
        assert!(summary.truncated || len == 0x60 || len == 0xac, "cut at {len:#x}");
    }
}

/// Numbers that look random and are the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn changed_bytes_never_bring_the_reader_down() {
    let file = with_prefix(FILE);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let mut changed = file.clone();
        for _ in 0..1 + numbers.below(6) {
            // The signature and the version stay, or nothing would be read.
            let at = 8 + numbers.below(changed.len() - 8);
            match numbers.below(4) {
                0 => changed[at] = numbers.below(256) as u8,
                1 => changed[at] = [0, 1, 0x10, 0x42, 0x7f, 0x80, 0x81, 0x82, 0xff][numbers.below(9)],
                2 => changed.truncate(at.max(32)),
                _ => changed.insert(at, numbers.below(256) as u8),
            }
        }
        if let Ok(profile) = read_bytes(&changed) {
            assert!(profile.stacks.len() <= changed.len());
            assert!(profile.arcs.len() * 8 <= changed.len());
        }
    }
}

#[test]
fn millions_of_damages_take_no_memory_worth_mentioning() {
    let mut file = with_prefix("81 00 00 00 04 00 10 00");
    let repeat = [0x82, 0, 1, 0, 0, 0, 0, 0, 0, 0];
    file.extend(repeat.iter().cycle().take(0x10_0000));
    let profile = read_bytes(&file).unwrap();
    assert_eq!(profile.problems.iter().filter(|problem| problem.kind == "repeat-replaced").count(), 1);
}
