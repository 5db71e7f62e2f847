// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The bytes that are moved, and their comparison.

const PAGE: usize = 4096;
/// The byte of which a buffer consists before data arrives.
const POISON: u8 = 0xdb;

/// Returns LENGTH random bytes, which are the same for the same seed. The generator is `SplitMix64`, which starts with
/// the FNV-1a hash of the seed.
pub fn pattern(length: usize, seed: &str) -> Vec<u8> {
    let hashed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut state = seed.bytes().fold(0xcbf2_9ce4_8422_2325, hashed);
    let mut data = Vec::with_capacity(length + 8);
    while data.len() < length {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        data.extend((mixed ^ (mixed >> 31)).to_le_bytes());
    }
    data.truncate(length);
    data
}

/// Returns the bytes that a buffer contains before data arrives.
pub fn poison(length: usize) -> Vec<u8> {
    vec![POISON; length]
}

/// Returns a text about the difference of the bytes; None for equal bytes.
pub fn difference(expected: &[u8], found: &[u8]) -> Option<String> {
    let first = expected.iter().zip(found).position(|(one, other)| one != other)?;
    let what = if found.iter().all(|byte| *byte == POISON) {
        "nothing arrived".to_owned()
    } else {
        let pages = expected.chunks(PAGE).zip(found.chunks(PAGE));
        let wrong = pages.filter(|(one, other)| one != other).count();
        format!("wrong bytes in {wrong} of {} pages of 4 KiB", expected.len().div_ceil(PAGE))
    };
    Some(format!("{what}, the first at offset {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_depends_on_its_seed() {
        assert_eq!(pattern(5000, "1 to"), pattern(5000, "1 to"));
        assert_ne!(pattern(5000, "1 to"), pattern(5000, "1 from"));
        assert_eq!(pattern(13, "x"), pattern(16, "x")[..13]);
        assert!(pattern(0, "x").is_empty());
        let data = pattern(1 << 16, "x");
        let counts = data.iter().fold([0; 256], |mut counts: [u32; 256], byte| {
            counts[usize::from(*byte)] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (150..400).contains(count)), "{counts:?}");
    }

    #[test]
    fn differences_have_a_place() {
        let expected = pattern(10_000, "x");
        let mut found = expected.clone();
        assert_eq!(difference(&expected, &found), None);
        found[9_999] ^= 1;
        found[8_192] ^= 1;
        let text = "wrong bytes in 1 of 3 pages of 4 KiB, the first at offset 8192";
        assert_eq!(difference(&expected, &found).as_deref(), Some(text));
        let text = "nothing arrived, the first at offset 0";
        assert_eq!(difference(&expected, &poison(10_000)).as_deref(), Some(text));
    }
}
