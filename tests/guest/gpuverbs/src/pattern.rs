// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The bytes that transfers carry: a function of a seed and nothing else, so
//! that whoever reads the memory from outside can compute them again.
//!
//! Definition (all arithmetic on 64 bits, wrapping):
//!
//! ```text
//! state = seed ^ 0x9E3779B97F4A7C15, or 0x9E3779B97F4A7C15 if that is 0
//! for every 8 bytes (xorshift64*):
//!     state ^= state >> 12;  state ^= state << 25;  state ^= state >> 27
//!     bytes = state * 0x2545F4914F6CDD1D, little-endian
//! ```
//!
//! The last word is cut where the length ends. A shorter pattern is therefore a
//! prefix of a longer one of the same seed.

use crate::random::Random;

/// What buffers hold before anything good is put into them.
pub const POISON: u8 = 0xA5;

pub struct Pattern {
    words: Random,
}

impl Pattern {
    pub fn new(seed: u64) -> Self {
        Self {
            words: Random::new(seed),
        }
    }

    /// The pattern's next bytes. Unless it is the last piece, `out` must be a
    /// multiple of 8 bytes long, because a cut word is not continued.
    pub fn fill(&mut self, out: &mut [u8]) {
        for piece in out.chunks_mut(8) {
            let word = self.words.word().to_le_bytes();
            piece.copy_from_slice(&word[..piece.len()]);
        }
    }

    /// The first `length` bytes of a seed's pattern.
    pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Self::new(seed).fill(&mut bytes);
        bytes
    }
}

/// Where two runs of bytes of the same length part.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub at: usize,
    pub expected: u8,
    pub found: u8,
    /// How many bytes differ in all.
    pub count: usize,
}

pub fn difference(expected: &[u8], found: &[u8]) -> Option<Difference> {
    assert_eq!(expected.len(), found.len());
    let mut differing = expected
        .iter()
        .zip(found)
        .enumerate()
        .filter(|(_, (expected, found))| expected != found);
    let (at, (&expected, &found)) = differing.next()?;
    Some(Difference {
        at,
        expected,
        found,
        count: 1 + differing.count(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition above, once more and as literally as possible.
    fn by_definition(seed: u64, length: usize) -> Vec<u8> {
        let mut state = seed ^ 0x9E37_79B9_7F4A_7C15;
        if state == 0 {
            state = 0x9E37_79B9_7F4A_7C15;
        }
        let mut bytes = Vec::new();
        while bytes.len() < length {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let word = u128::from(state) * 0x2545_F491_4F6C_DD1D;
            for shift in (0..64).step_by(8) {
                bytes.push((word >> shift) as u8);
            }
        }
        bytes.truncate(length);
        bytes
    }

    #[test]
    fn follows_its_definition() {
        for seed in [0, 1, 2, 7, 0x9E37_79B9_7F4A_7C15, u64::MAX] {
            for length in [0, 1, 7, 8, 9, 4096, 65537] {
                assert_eq!(Pattern::bytes(seed, length), by_definition(seed, length));
            }
        }
    }

    #[test]
    fn known_values_do_not_change() {
        let known = 0x24b8_9d23_169e_484a_102a_ceb9_af8e_2597_u128;
        assert_eq!(Pattern::bytes(1, 16), known.to_le_bytes());
    }

    #[test]
    fn shorter_is_a_prefix_of_longer() {
        let long = Pattern::bytes(42, 3 * 1024 * 1024 + 17);
        for length in [1, 8, 13, 65536, 3 * 1024 * 1024] {
            assert_eq!(Pattern::bytes(42, length), long[..length]);
        }
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let mut pieces = vec![0; 1000];
        let mut pattern = Pattern::new(5);
        let (first, rest) = pieces.split_at_mut(512);
        pattern.fill(first);
        pattern.fill(rest);
        assert_eq!(pieces, Pattern::bytes(5, 1000));
    }

    #[test]
    fn seeds_and_poison_are_told_apart() {
        let length = 65536;
        let mut seen: Vec<Vec<u8>> = vec![vec![POISON; length]];
        for seed in 0..32 {
            seen.push(Pattern::bytes(seed, length));
        }
        for (index, one) in seen.iter().enumerate() {
            for other in &seen[..index] {
                let differing = difference(one, other).map_or(0, |d| d.count);
                // One byte in 256 is the same by chance.
                assert!(differing > length * 98 / 100, "{differing} of {length}");
            }
        }
    }

    #[test]
    fn differences_are_found() {
        assert_eq!(difference(b"", b""), None);
        assert_eq!(difference(b"same", b"same"), None);
        assert_eq!(
            difference(b"abcdef", b"abXdeY"),
            Some(Difference {
                at: 2,
                expected: b'c',
                found: b'X',
                count: 2
            })
        );
    }
}
