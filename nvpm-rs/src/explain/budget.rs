// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The one limit for all inputs of a call: bytes that are read or unpacked, files and members of archives, and time. A few
//! kilobytes can unpack to terabytes, so each reader of a log asks here before it goes on.
use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;
use std::time::{Duration, Instant};

const MOST_BYTES: u64 = 8 << 30;
const MOST_ITEMS: u64 = 50_000;
const LONGEST: Duration = Duration::from_secs(600);

pub struct Budget {
    bytes: Cell<u64>,
    items: Cell<u64>,
    end: Instant,
}

impl Budget {
    pub fn new() -> Rc<Self> {
        Self::of(MOST_BYTES, MOST_ITEMS, LONGEST)
    }

    pub fn of(bytes: u64, items: u64, time: Duration) -> Rc<Self> {
        Rc::new(Self { bytes: Cell::new(bytes), items: Cell::new(items), end: Instant::now() + time })
    }

    /// Counts a file, or a member of an archive.
    pub fn take_item(&self) -> io::Result<()> {
        take(&self.items, 1)
            .then_some(())
            .ok_or_else(|| io::Error::other(format!("more than {MOST_ITEMS} files: name fewer")))
    }

    fn take_bytes(&self, number: usize) -> io::Result<()> {
        if !take(&self.bytes, number as u64) {
            return Err(io::Error::other(format!("more than {} GiB of logs: name fewer", MOST_BYTES >> 30)));
        }
        if Instant::now() > self.end {
            return Err(io::Error::other("reading took more than ten minutes"));
        }
        Ok(())
    }
}

fn take(left: &Cell<u64>, number: u64) -> bool {
    let enough = left.get() >= number;
    left.set(left.get().saturating_sub(number));
    enough
}

/// A reader whose bytes count.
pub struct Metered<R> {
    reader: R,
    budget: Rc<Budget>,
}

impl<R> Metered<R> {
    pub fn new(reader: R, budget: &Rc<Budget>) -> Self {
        Self { reader, budget: Rc::clone(budget) }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.reader.read(buffer)?;
        self.budget.take_bytes(number)?;
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

    #[test]
    fn bytes_and_items_end() {
        let budget = Budget::of(10, 1, LONGEST);
        let mut data = Vec::new();
        assert!(Metered::new(&[0u8; 10][..], &budget).read_to_end(&mut data).is_ok());
        assert!(Metered::new(&[0u8; 1][..], &budget).read_to_end(&mut data).is_err());
        assert!(budget.take_item().is_ok());
        assert!(budget.take_item().is_err());
    }

    #[test]
    fn time_ends() {
        let budget = Budget::of(10, 1, Duration::ZERO);
        std::thread::sleep(Duration::from_millis(2));
        assert!(Metered::new(&[0u8; 1][..], &budget).read_to_end(&mut Vec::new()).is_err());
    }
}
