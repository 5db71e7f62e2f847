// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The one limit for all inputs of a call. A sparse file, or an archive within an archive, has a million times as many
//! bytes as it takes on the disk. So each byte on the disk, and each byte of a pipe, allows a number of bytes, and each
//! reader of a log asks here before it goes on.
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::time::{Duration, Instant};

use memchr::memchr_iter;

/// Bytes that are allowed in any case.
const FREE: i64 = 64 << 20;
/// Bytes that a byte on the disk allows.
const TIMES: i64 = 200;
/// A line costs as much time as this number of bytes.
const LINE: i64 = 64;
const LONGEST: Duration = Duration::from_secs(600);

pub struct Budget {
    left: Cell<i64>,
    is_pipe: Cell<bool>,
    end: Instant,
}

impl Budget {
    pub fn new() -> Rc<Self> {
        Self::of(FREE, LONGEST)
    }

    fn of(bytes: i64, time: Duration) -> Rc<Self> {
        Rc::new(Self { left: Cell::new(bytes), is_pipe: Cell::new(true), end: Instant::now() + time })
    }

    /// Allows the bytes of another file, which takes `on_disk` bytes. Pipes, and some file systems, say 0.
    pub fn open(&self, on_disk: u64) {
        self.is_pipe.set(on_disk == 0);
        self.add(i64::try_from(on_disk).unwrap_or(i64::MAX).saturating_mul(TIMES));
    }

    fn add(&self, bytes: i64) {
        self.left.set(self.left.get().saturating_add(bytes));
    }

    fn take(&self, part: &[u8], is_outer: bool) -> io::Result<()> {
        let bytes = i64::try_from(part.len()).unwrap_or(i64::MAX);
        if is_outer && self.is_pipe.get() {
            self.add(bytes.saturating_mul(TIMES));
        }
        let lines = i64::try_from(memchr_iter(b'\n', part).count()).unwrap_or(i64::MAX);
        self.add(-bytes.saturating_add(lines.saturating_mul(LINE)));
        if self.left.get() < 0 {
            return Err(io::Error::other("it has far more bytes than it takes on the disk"));
        }
        if Instant::now() > self.end {
            return Err(io::Error::other("reading took more than ten minutes"));
        }
        Ok(())
    }
}

/// A reader whose bytes count.
pub struct Metered<R> {
    reader: R,
    budget: Rc<Budget>,
    /// The bytes are those of a file itself, and not of its contents.
    is_outer: bool,
}

impl<R> Metered<R> {
    pub fn new(reader: R, budget: &Rc<Budget>, is_outer: bool) -> Self {
        Self { reader, budget: Rc::clone(budget), is_outer }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.reader.read(buffer)?;
        self.budget.take(buffer.get(..number).unwrap_or_default(), self.is_outer)?;
        Ok(number)
    }
}

/// Reads a whole input that has to be in memory, up to MOST bytes.
pub fn read_all(mut reader: impl BufRead, most: u64) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    reader.by_ref().take(most + 1).read_to_end(&mut data)?;
    if data.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {} MiB: unpack it first", most >> 20)));
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(data: &[u8], budget: &Rc<Budget>, is_outer: bool) -> io::Result<usize> {
        Metered::new(data, budget, is_outer).read_to_end(&mut Vec::new())
    }

    #[test]
    fn bytes_end() {
        let budget = Budget::of(10, LONGEST);
        assert!(read(&[0; 10], &budget, false).is_ok());
        assert!(read(&[0; 1], &budget, false).is_err());
    }

    #[test]
    fn a_line_costs_more_than_its_bytes() {
        assert!(read(b"\n", &Budget::of(1 + LINE, LONGEST), false).is_ok());
        assert!(read(b"\n", &Budget::of(LINE, LONGEST), false).is_err());
    }

    #[test]
    fn a_file_and_a_pipe_allow_more() {
        let budget = Budget::of(0, LONGEST);
        budget.open(1);
        assert!(read(&[0; 200], &budget, false).is_ok());
        assert!(read(&[0; 1], &budget, true).is_err());
        let budget = Budget::of(0, LONGEST);
        budget.open(0);
        assert!(read(&[0; 1], &budget, true).is_ok());
        assert!(read(&[0; 199], &budget, false).is_ok());
        assert!(read(&[0; 1], &budget, false).is_err());
    }

    #[test]
    fn time_ends() {
        let budget = Budget::of(10, Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert!(read(&[0; 1], &budget, false).is_err());
    }
}
