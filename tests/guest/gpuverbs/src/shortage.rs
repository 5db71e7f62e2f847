// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A shortage of memory in the kernel, in the middle of what this thread asks
//! it for: one allocation of a number that is chosen fails.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

/// Of a kernel with fault injection (`CONFIG_FAULT_INJECTION`).
const FILE: &str = "/proc/thread-self/fail-nth";

pub struct Shortage {
    file: File,
}

impl Shortage {
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(FILE)?;
        Ok(Self { file })
    }

    /// Runs `act` with the `nth` allocation from now on failing. Whether it
    /// came to that comes back, too.
    pub fn at<T>(&self, nth: u64, act: impl FnOnce() -> T) -> io::Result<(T, bool)> {
        self.file.write_all_at(nth.to_string().as_bytes(), 0)?;
        let result = act();
        let mut text = [0; 20];
        let length = self.file.read_at(&mut text, 0);
        self.file.write_all_at(b"0", 0)?;
        Ok((result, is_zero(&text[..length?])))
    }
}

/// The file counts down: 0 when the allocation has failed.
fn is_zero(text: &[u8]) -> bool {
    text.trim_ascii() == b"0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_down() {
        assert!(is_zero(b"0\n"));
        assert!(!is_zero(b"10\n"));
        assert!(!is_zero(b""));
    }
}
