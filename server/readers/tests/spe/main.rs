//! Arm SPE: the decoder against worked examples and against everything that bytes can do to it, recordings in
//! perf.data against worked examples and against perf.
#![allow(clippy::disallowed_methods)] // Tests compare with programs, which read files.

mod decoder;
#[path = "../../../../fixtures/spe/forge.rs"]
mod forge;
mod oracle;
mod recordings;

/// The bytes that `hex` spells, in pairs of digits with spaces between.
fn bytes(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hex")).collect()
}

const E1: &str = "b0 d4 06 40 00 00 00 00 80 65 e8 03 00 00 49 00 52 16 00 98 22 00 99 07 00 b2 38 12 ff f7 ff ff 00 00 \
    b3 38 12 2a 81 00 00 00 80 9a 01 00 43 08 71 88 13 00 00 00 00 00 00";
const E2: &str = "b0 dc 06 40 00 00 00 00 80 65 e8 03 00 00 49 01 52 16 00 98 09 00 99 02 00 b2 40 12 ff f7 ff ff 00 00 \
    9a 01 00 43 00 71 70 17 00 00 00 00 00 00";
const E3: &str = "b0 f0 06 40 00 00 00 00 80 65 e8 03 00 00 4a 01 42 82 98 14 00 99 03 00 b1 08 07 40 00 00 00 00 80 \
    71 58 1b 00 00 00 00 00 00";
const E4: &str = "b0 d8 06 40 00 00 00 00 80 48 00 42 02 98 03 00 01";
const E5: &str = "b0 d4 06 40 00 00 00 00 80 65 e8 03 00 00 49 14 62 2e 07 00 00 98 9c 01 99 0b 00 \
    b2 80 12 ff f7 00 00 00 f0 9a 1e 00 53 0d 00 71 28 23 00 00 00 00 00 00";
const E6: &str = "b0 56 34 12 10 00 80 ff c0 65 00 00 00 00 49 0e 52 16 00 98 05 00 b2 78 56 34 12 00 00 ff 00 \
    71 1c 25 00 00 00 00 00 00";
