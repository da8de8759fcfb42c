//! Every function, file, line, column and inlined frame of 100 000 random addresses, as llvm-symbolizer-19 has them.

use crate::tools::{
    Plain, Random, Symbol, fill_declared_files, folder, plain, resolve, run, section, symbolizer, symbols, write,
};
use std::path::Path;

const ADDRESSES: usize = 100_000;

const CPP: &str = include_str!("sources/templates.cpp");
const RUST: &str = include_str!("sources/inlining.rs");

/// Why an answer may differ from llvm-symbolizer's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// It takes the outermost function's name from the symbol table: another name of the same function (constructors
    /// have several), or that of a part that was split off (`f.cold`). Debug information says the function.
    NameOfSymbol,
    /// Only it guesses a file from the symbol table's file entries where debug information covers nothing.
    FileOfSymbol,
}

fn difference(ours: &[Plain], theirs: &[Plain], aliases: &[&Symbol]) -> Result<Option<Kind>, String> {
    if ours == theirs {
        return Ok(None);
    }
    let unequal = || Err(format!("found {ours:#?}\nexpected {theirs:#?}"));
    if ours.len() != theirs.len() {
        return unequal();
    }
    let (Some((our_last, our_rest)), Some((their_last, their_rest))) = (ours.split_last(), theirs.split_last()) else {
        return unequal();
    };
    if our_rest != their_rest {
        return unequal();
    }
    if our_last.file.is_empty()
        && our_last.line == 0
        && their_last.line == 0
        && our_last.function == their_last.function
    {
        return Ok(Some(Kind::FileOfSymbol));
    }
    let same_place = Plain { function: our_last.function.clone(), ..their_last.clone() } == *our_last;
    let names_it = |alias: &&&Symbol| plain_name(&alias.name) == plain_name(&our_last.function);
    if same_place
        && (plain_name(&our_last.function) == plain_name(&their_last.function) || aliases.iter().any(|a| names_it(&a)))
    {
        return Ok(Some(Kind::NameOfSymbol));
    }
    unequal()
}

/// Without the suffix of a part or clone, and with all kinds of constructors and destructors as one.
fn plain_name(name: &str) -> String {
    let name = name.split('.').next().unwrap_or(name);
    let mut out = name.to_owned();
    for (kind, others) in [("C1", ["C2", "C3", "C4", "C5"]), ("D1", ["D0", "D2", "D4", "D5"])] {
        for other in others {
            out = out.replace(&format!("{other}E"), &format!("{kind}E"));
        }
    }
    out
}

#[track_caller]
fn check(binary: &Path) -> Vec<Vec<Plain>> {
    let (start, size) = section(binary, ".text");
    let mut random = Random(0x5eed);
    let addresses: Vec<u64> = (0..ADDRESSES).map(|_| start + random.below(size)).collect();
    let resolution = resolve(binary, &addresses);
    assert_eq!(resolution.problems.iter().count(), 0, "{:?}", resolution.problems);
    let mut theirs = symbolizer(binary, &addresses);
    let mut symbols = symbols(binary);
    symbols.sort_by_key(|s| s.start);
    let mut kinds = std::collections::BTreeMap::new();
    let mut unequal = Vec::new();
    for (i, (address, theirs)) in addresses.iter().zip(&mut theirs).enumerate() {
        let ours = plain(&resolution, i);
        fill_declared_files(theirs, &ours);
        let near = symbols.partition_point(|s| s.start <= *address);
        let aliases: Vec<_> =
            symbols[near.saturating_sub(40)..near].iter().filter(|s| address - s.start < s.size).collect();
        match difference(&ours, theirs, &aliases) {
            Ok(None) => {}
            Ok(Some(kind)) => *kinds.entry(format!("{kind:?}")).or_insert(0usize) += 1,
            Err(text) => unequal.push(format!("{address:#x}: {text}")),
        }
    }
    assert!(unequal.is_empty(), "{} of {ADDRESSES}, kinds {kinds:?}; first {}", unequal.len(), unequal[0]);
    theirs
}

/// Real code has frames inlined into frames; a comparison without them would prove nothing.
fn deepest(answers: &[Vec<Plain>]) -> usize {
    answers.iter().map(Vec::len).max().unwrap_or(0)
}

#[test]
fn templates_of_gcc() {
    let folder = folder("templates-gcc");
    write(&folder, "src/templates.cpp", CPP);
    run(&folder, "g++ -std=c++17 -O2 -g src/templates.cpp -o templates");
    assert!(deepest(&check(&folder.join("templates"))) > 8);
}

#[test]
fn templates_of_clang_linked_by_lld_as_pie() {
    let folder = folder("templates-lld");
    write(&folder, "src/templates.cpp", CPP);
    run(&folder, "clang++-19 -std=c++17 -O2 -g -fuse-ld=lld -fPIE -pie src/templates.cpp -o templates");
    let answers = check(&folder.join("templates"));
    assert!(deepest(&answers) > 8);
    assert!(answers.iter().flatten().any(|frame| frame.line == 0 && !frame.file.is_empty()), "no line 0 was met");
}

#[test]
fn templates_of_clang_in_dwarf_4_linked_by_mold() {
    let folder = folder("templates-mold");
    write(&folder, "src/templates.cpp", CPP);
    run(&folder, "clang++-19 -std=c++17 -O2 -gdwarf-4 -fuse-ld=mold src/templates.cpp -o templates");
    assert!(deepest(&check(&folder.join("templates"))) > 8);
}

#[test]
fn deep_inlining_of_rust() {
    let folder = folder("inlining-rust");
    write(&folder, "inlining.rs", RUST);
    run(&folder, "rustc --edition 2021 -C opt-level=3 -C debuginfo=2 inlining.rs -o inlining");
    assert!(deepest(&check(&folder.join("inlining"))) > 8);
}
