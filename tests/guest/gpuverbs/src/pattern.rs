// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Pseudorandom numbers that depend only on a seed. Transfers move these numbers as bytes, and the
//! host computes the same bytes to compare.
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
//! If the length is not a multiple of 8, only the first bytes of the last word are used. A short
//! pattern is therefore the beginning of a longer pattern with the same seed.

use std::io::{self, Write};

use anyhow::{Context, Result};

use crate::value::size;

const START: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 0x2545_F491_4F6C_DD1D;

pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        // xorshift never leaves the state 0, so the state must not begin with 0.
        let state = match seed ^ START {
            0 => START,
            state => state,
        };
        Self { state }
    }

    /// Returns the sequence with number `stream` for this seed. Two different numbers give
    /// unrelated sequences, even if they are close to each other.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut random = Self::new(seed ^ stream.wrapping_add(1).wrapping_mul(START));
        random.word();
        random
    }

    pub fn word(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(MULTIPLIER)
    }

    /// Returns a number below `limit`, which must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The lower bits of a word are less random, so they are not used.
        (self.word() >> 11) % limit
    }

    /// Returns an index into a slice of this length, which must not be 0.
    pub fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// Returns true with probability 1 / `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Returns a random element of `choices`. The weights are the relative frequencies of the
    /// elements.
    pub fn weighted<'a, T>(&mut self, choices: &'a [(u64, T)]) -> &'a T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return choice;
            }
            left -= weight;
        }
        unreachable!("below the sum of all weights")
    }
}

/// Returns the first `length` bytes of a seed's pattern.
pub fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut words = Random::new(seed);
    let mut bytes = vec![0; length];
    for piece in bytes.chunks_mut(8) {
        piece.copy_from_slice(&words.word().to_le_bytes()[..piece.len()]);
    }
    bytes
}

/// Writes the bytes of a pattern to standard output, and nothing else
#[derive(clap::Args)]
pub struct Emit {
    /// Seed of the pattern
    #[arg(long)]
    seed: u64,
    #[arg(long, value_parser = size)]
    length: u64,
}

impl Emit {
    pub fn run(self) -> Result<()> {
        io::stdout()
            .write_all(&bytes(self.seed, self.length as usize))
            .context("writing the pattern")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_do_not_change() {
        let known = 0x24b8_9d23_169e_484a_102a_ceb9_af8e_2597_u128;
        assert_eq!(bytes(1, 16), known.to_le_bytes());
    }
}
