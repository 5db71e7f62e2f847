// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tells apart builds of modules, and whole files from cut ones. The directory of the cache keeps others from writing,
//! so a checksum without a secret is enough. It must be the same in each version of this program.

/// Returns the checksum of some bytes by FNV-1a with 128 bits, as 32 hexadecimal digits.
pub fn checksum(data: &[u8]) -> String {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let sum = data.iter().fold(START, |sum, byte| (sum ^ u128::from(*byte)).wrapping_mul(PRIME));
    format!("{sum:032x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values are those of the algorithm's authors.
    #[test]
    fn the_algorithm_is_fnv_1a() {
        assert_eq!(checksum(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(checksum(b"a"), "d228cb696f1a8caf78912b704e4a8964");
        assert_eq!(checksum(b"foobar"), "343e1662793c64bf6f0d3597ba446f18");
    }
}
