//! PDBs with address maps (OMAP), as tools leave them that move code about after linking.
//!
//! No such tool is at hand, so the PDB of lld is given maps by hand: the two halves of the code change places. The frames
//! of an address are then those that llvm-symbolizer gives for where it was before, by the PDB as lld wrote it.

use crate::pdb::{CODEVIEW, TO_PDB, build, code, frames, open, resolve, symbolizer};

const BLOCK: usize = 4096;
/// The stream of the debug information.
const DBI: usize = 3;
/// Places in the list of further streams at the end of it.
const OMAP_TO_SOURCE: usize = 3;
const OMAP_FROM_SOURCE: usize = 4;
const SECTIONS: usize = 5;
const ORIGINAL_SECTIONS: usize = 10;

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The streams of a multi-stream file.
fn streams(file: &[u8]) -> Vec<Vec<u8>> {
    let size = word(file, 32) as usize;
    let gather = |blocks: &[u32], length: usize| {
        let all: Vec<u8> = blocks
            .iter()
            .flat_map(|&block| &file[block as usize * size..(block as usize + 1) * size])
            .copied()
            .collect();
        all[..length].to_vec()
    };
    let list = |bytes: &[u8], at: usize, count: usize| (0..count).map(|i| word(bytes, at + 4 * i)).collect::<Vec<_>>();
    let length = word(file, 44) as usize;
    let map = word(file, 52) as usize * size;
    let directory = gather(&list(file, map, length.div_ceil(size)), length);
    let count = word(&directory, 0) as usize;
    let mut at = 4 + 4 * count;
    let lengths =
        list(&directory, 4, count).into_iter().map(|length| if length == u32::MAX { 0 } else { length as usize });
    lengths
        .map(|length| {
            let blocks = list(&directory, at, length.div_ceil(size));
            at += 4 * blocks.len();
            gather(&blocks, length)
        })
        .collect()
}

/// A multi-stream file of these streams.
fn file_of(streams: &[Vec<u8>]) -> Vec<u8> {
    // The superblock and the two maps of free blocks, which readers need not believe.
    let mut file = vec![0; 3 * BLOCK];
    let mut append = |bytes: &[u8]| {
        let blocks: Vec<u32> = bytes
            .chunks(BLOCK)
            .map(|chunk| {
                let block = file.len() / BLOCK;
                file.extend_from_slice(chunk);
                file.resize((block + 1) * BLOCK, 0);
                block as u32
            })
            .collect();
        blocks
    };
    let blocks: Vec<u32> = streams.iter().flat_map(|stream| append(stream)).collect();
    let lengths: Vec<u32> = streams.iter().map(|stream| stream.len() as u32).collect();
    let directory = [words(&[streams.len() as u32]), words(&lengths), words(&blocks)].concat();
    let of_directory = append(&directory);
    let map = append(&words(&of_directory));
    let count = (file.len() / BLOCK) as u32;
    file[..32].copy_from_slice(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    let head = words(&[BLOCK as u32, 1, count, directory.len() as u32, 0, map[0]]);
    file[32..32 + head.len()].copy_from_slice(&head);
    file
}

/// Adds streams under places in the list of further streams.
fn add_streams(streams: &mut Vec<Vec<u8>>, added: Vec<(usize, Vec<u8>)>) {
    let dbi = &streams[DBI];
    let sizes: usize = [24, 28, 32, 36, 40, 52].iter().map(|&at| word(dbi, at) as usize).sum();
    let start = 64 + sizes;
    let mut list: Vec<u16> = dbi[start..].chunks_exact(2).map(|chunk| half(chunk, 0)).collect();
    list.resize(list.len().max(11), u16::MAX);
    for (place, stream) in added {
        list[place] = streams.len() as u16;
        streams.push(stream);
    }
    let dbi = &mut streams[DBI];
    dbi.truncate(start);
    dbi.extend(list.iter().flat_map(|number| number.to_le_bytes()));
    dbi[48..52].copy_from_slice(&(2 * list.len() as u32).to_le_bytes());
}

/// The stream at a place of the list of further streams.
fn further(streams: &[Vec<u8>], place: usize) -> Vec<u8> {
    let dbi = &streams[DBI];
    let start = dbi.len() - word(dbi, 48) as usize;
    streams[usize::from(half(dbi, start + 2 * place))].clone()
}

/// Addresses from which on all are moved: pairs of where something was and where it is.
fn map(pairs: &[(u64, u64)]) -> Vec<u8> {
    words(&pairs.iter().flat_map(|&(from, to)| [from as u32, to as u32]).collect::<Vec<_>>())
}

#[test]
fn code_that_was_moved_after_linking_has_the_lines_it_had_before() {
    let folder = build("omap", "x86_64-pc-windows-msvc", CODEVIEW, TO_PDB);
    let rvas = code(&folder);
    let before = symbolizer(&folder.join("start.exe"), &rvas);
    let (start, end) = (rvas[0], rvas[rvas.len() - 1] + 1);
    // Where a function begins, about in the middle.
    let outermost = |i: usize| before[i].last().map(|frame| frame.0.clone());
    let begins = |&i: &usize| outermost(i).is_some() && outermost(i) != outermost(i - 1);
    let middle = (rvas.len() / 3..rvas.len()).find(begins).expect("a function") as u64;
    let second = end - start - middle;

    let path = folder.join("start.pdb");
    let mut streams = streams(&std::fs::read(&path).unwrap());
    let sections = further(&streams, SECTIONS);
    let to_source = map(&[(start, start + middle), (start + second, start), (end, 0)]);
    let from_source = map(&[(start, start + second), (start + middle, start), (end, 0)]);
    let added = vec![(OMAP_TO_SOURCE, to_source), (OMAP_FROM_SOURCE, from_source), (ORIGINAL_SECTIONS, sections)];
    add_streams(&mut streams, added);
    std::fs::write(&path, file_of(&streams)).unwrap();

    let resolution = resolve(&open(&folder), &rvas);
    let mut moved = 0;
    for (i, rva) in rvas.iter().enumerate() {
        let offset = rva - start;
        let was = if offset < second { offset + middle } else { offset - second } as usize;
        let ours = frames(&resolution, i);
        // Of two rows at one address llvm takes the first, which covers nothing; a byte later it takes the other.
        if before.get(was + 1) != Some(&ours) {
            assert_eq!(ours, before[was], "at {rva:#x}, which was at {:#x}", start + was as u64);
        }
        moved += usize::from(!ours.is_empty() && before[i] != ours);
    }
    assert!(moved > 100, "only {moved} addresses mean something else than before");
}
