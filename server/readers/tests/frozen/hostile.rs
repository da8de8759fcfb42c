//! Archives that nobody froze: cut, changed, forged.

use crate::{profile, read, symbolization};
use heatline_profile::{Profile, ProfileKind, Silent, Symbolization};
use heatline_readers::{Input, ReadOptions, frozen};
use std::io::{Cursor, Read, Write};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

type Members = Vec<(String, Vec<u8>)>;

/// The members of an archive, in their order.
pub fn members(archive: &[u8]) -> Members {
    let mut archive = ZipArchive::new(Cursor::new(archive)).unwrap();
    let count = archive.len();
    let member = |number| {
        let mut member = archive.by_index(number).unwrap();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        (member.name().unwrap().into_owned(), bytes)
    };
    (0..count).map(member).collect()
}

/// An archive with right checksums, whatever is in it.
fn archive(members: &Members) -> Vec<u8> {
    archive_by(members, CompressionMethod::Stored)
}

fn archive_by(members: &Members, method: CompressionMethod) -> Vec<u8> {
    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        out.start_file(name.as_str(), SimpleFileOptions::default().compression_method(method)).unwrap();
        out.write_all(bytes).unwrap();
    }
    out.finish().unwrap().into_inner()
}

fn frozen_profile() -> Vec<u8> {
    frozen::freeze(&profile(), &symbolization()).unwrap()
}

#[track_caller]
fn refused(bytes: &[u8], expected: &str) {
    let message = read(bytes).expect_err("refused").to_string();
    assert!(message.contains(expected), "{message}");
}

/// The message for the usual archive with something done to its members.
#[track_caller]
fn refused_with(change: impl FnOnce(&mut Members), expected: &str) {
    let mut all = members(&frozen_profile());
    change(&mut all);
    refused(&archive(&all), expected);
}

/// Repeatable numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn no_part_of_a_file_is_taken_for_the_whole() {
    let whole = frozen_profile();
    for length in 0..whole.len() {
        assert!(read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn changed_bytes_are_noticed_or_do_not_matter() {
    let whole = frozen_profile();
    let expected = format!("{:?}", read(&whole).unwrap());
    let mut random = Random(1);
    for _ in 0..1000 {
        let mut changed = whole.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(changed.len());
            changed[at] ^= 1 << random.below(8);
        }
        if let Ok(profile) = read(&changed) {
            assert_eq!(format!("{profile:?}"), expected);
        }
    }
}

/// Where checksums hold, the tables themselves are all that stands between a forger and the program.
#[test]
fn no_tables_make_the_reader_panic() {
    let all = members(&frozen_profile());
    let mut random = Random(2);
    let mut readable = 0;
    for _ in 0..1500 {
        let mut forged = all.clone();
        let tables = &mut forged[1].1;
        for _ in 0..=random.below(4) {
            let at = random.below(tables.len());
            match random.below(4) {
                0 => tables[at] = 0xff,
                1 => tables[at] = random.below(256) as u8,
                2 => drop(tables.remove(at)),
                _ => tables.insert(at, random.below(256) as u8),
            }
        }
        readable += usize::from(read(&archive(&forged)).is_ok());
    }
    assert!(readable > 20, "forgeries that are well-formed are read: {readable}");
    for length in 0..all[1].1.len() {
        let mut cut = all.clone();
        cut[1].1.truncate(length);
        assert!(read(&archive(&cut)).is_err(), "{length} bytes of tables");
    }
}

#[test]
fn a_missing_member_is_named() {
    refused_with(|all| drop(all.remove(1)), "no member tables");
    refused_with(|all| drop(all.remove(3)), "no member sources/0-main.c");
    // The manifest makes an archive a profile.
    refused_with(|all| drop(all.remove(0)), "not a profile");
}

#[test]
fn another_version_or_format_says_so() {
    let replace = |all: &mut Members, from: &str, to: &str| {
        let manifest = String::from_utf8(all[0].1.clone()).unwrap();
        all[0].1 = manifest.replace(from, to).into_bytes();
    };
    refused_with(|all| replace(all, "\"version\": 1", "\"version\": 2"), "of version 2, expected 1");
    refused_with(|all| replace(all, "heatline-frozen-profile", "other"), "expected format");
    refused_with(|all| all[0].1.truncate(20), "heatline.json");
    refused_with(|all| replace(all, "/src/main.c", "/src/other.c"), "the text of no file");
}

#[test]
fn names_that_lead_out_of_the_archive_are_refused() {
    for name in ["../../etc/passwd", "/etc/passwd", "C:\\boot.ini", "sources/../../x", "a\\..\\b"] {
        refused_with(|all| all.push((name.into(), b"x".to_vec())), "a member named");
    }
}

#[test]
fn members_may_be_packed_anew_in_any_order() {
    let whole = frozen_profile();
    let mut members = members(&whole);
    members.reverse();
    let expected = format!("{:#?}", read(&whole).unwrap());
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let again = archive_by(&members, method);
        assert_eq!(format!("{:#?}", read(&again).unwrap()), expected);
        let stream = Input::Stream(&mut again.as_slice());
        let streamed = heatline_readers::read(stream, &ReadOptions::default(), &Silent).unwrap();
        assert_eq!(format!("{streamed:#?}"), expected);
    }
    // What makes a file suspect does so in any order.
    let mut doubtful = members.clone();
    doubtful.insert(0, ("../a".into(), Vec::new()));
    refused(&archive(&doubtful), "\"../a\"");
    members.retain(|(name, _)| name != "heatline.json");
    refused(&archive(&members), "a zip archive that heatline freeze did not write");
}

#[test]
fn two_members_of_one_name_are_refused() {
    let mut all = members(&frozen_profile());
    all.push(("tablez".into(), all[1].1.clone()));
    let mut bytes = archive(&all);
    while let Some(at) = bytes.windows(6).position(|window| window == b"tablez") {
        bytes[at + 5] = b's';
    }
    refused(&bytes, "same name");
}

#[test]
fn a_bomb_is_refused_by_its_growth_and_by_its_size() {
    let mut all = members(&frozen_profile());
    all[1].1 = vec![0; 8 << 20];
    refused(&archive_by(&all, CompressionMethod::Deflated), "grow to more than");
    // Claims in the directory are not believed either.
    let bytes = frozen_profile();
    let size = (members(&bytes)[1].1.len() as u32).to_le_bytes();
    let claim = |claimed: u32| {
        let mut bytes = bytes.clone();
        while let Some(at) = bytes.windows(4).position(|window| window == size) {
            bytes[at..at + 4].copy_from_slice(&claimed.to_le_bytes());
        }
        bytes
    };
    refused(&claim(0x7fff_ffff), "expected at most");
    refused(&claim(3), "tables");
    refused(&claim(60_000), "tables");
}

#[test]
fn a_wrong_checksum_is_noticed() {
    let mut bytes = frozen_profile();
    let text = b"int main() { return 0; }\n";
    // Short texts are stored as literal blocks; whichever way, some byte of the member changes.
    let at = bytes.windows(16).position(|window| window == b"sources/0-main.c").unwrap() + 16 + text.len() / 2;
    bytes[at] ^= 1;
    refused(&bytes, "sources/0-main.c");
}

#[test]
fn tables_of_which_a_byte_becomes_much_memory_are_refused() {
    let mut empty = Profile::new(ProfileKind::Spt);
    empty.recording.command_line = Vec::new();
    let mut all = members(&frozen::freeze(&empty, &Symbolization::default()).unwrap());
    let tables = &mut all[1].1;
    // The command line is followed by the number of samples and the problems, of which there are none.
    assert_eq!(tables.split_off(tables.len() - 3), [0, 0, 0]);
    let words = 24_000_000u32;
    let count = [0, 7, 14].map(|shift| (words >> shift) as u8 | 0x80);
    tables.extend(count);
    tables.push((words >> 21) as u8);
    tables.resize(tables.len() + words as usize + 2, 0);
    refused(&archive(&all), "take at most 512 MiB of memory");
}

#[test]
fn a_text_that_is_not_the_one_of_the_manifest_is_left_out_and_told() {
    let mut all = members(&frozen_profile());
    all[3].1 = b"int main() { return 1; }\n".to_vec();
    let profile = read(&archive(&all)).unwrap();
    let files = &profile.symbolization.as_ref().unwrap().files;
    assert_eq!((files[0].text.as_deref(), files[1].text.as_deref()), (None, Some("größer\n")));
    let problem = profile.problems.iter().find(|problem| problem.kind == "damaged-source").unwrap();
    assert!(problem.message.starts_with("/src/main.c: "), "{}", problem.message);
}
