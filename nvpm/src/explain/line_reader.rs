// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the lines of a log in parts of bounded size, so that a file without line ends does not fill memory. A progress
//! bar writes its states into one line, and collectors of logs write a whole log into one string of JSON: such a line
//! is divided at these ends, too.
use std::io::{self, BufRead, Read};

/// A part of a line has this number of bytes at most.
const LONGEST_PART: u64 = 1 << 16;
/// A longer line of a log is read at its beginning and at its end, this number of bytes each.
const LONGEST: usize = 4096;

/// A part of a line.
pub struct Part<'a> {
    pub bytes: &'a [u8],
    /// Whether the part is the first part of a line.
    pub begins: bool,
}

pub struct LineReader<R> {
    text: R,
    part: Vec<u8>,
    begins: bool,
}

impl<R: BufRead> LineReader<R> {
    pub fn new(text: R) -> Self {
        Self { text, part: Vec::new(), begins: true }
    }

    /// Returns the next part of the text without NUL bytes, which stand in logs that were cut off while a program wrote
    /// them. Returns None at the end.
    pub fn next_part(&mut self) -> io::Result<Option<Part<'_>>> {
        self.part.clear();
        if (&mut self.text).take(LONGEST_PART).read_until(b'\n', &mut self.part)? == 0 {
            return Ok(None);
        }
        let begins = self.begins;
        self.begins = self.part.ends_with(b"\n");
        self.part.retain(|byte| *byte != 0);
        Ok(Some(Part { bytes: &self.part, begins }))
    }
}

/// Divides a line at its own ends. A long part becomes its beginning and its end.
pub fn parts(line: &[u8]) -> Vec<&[u8]> {
    let line = line.trim_ascii_end();
    if line.len() <= LONGEST && !line.contains(&b'\r') && !line.contains(&b'\\') {
        return vec![line];
    }
    let mut found = Vec::new();
    let mut start = 0;
    let mut place = 0;
    while let Some(byte) = line.get(place) {
        let end = match byte {
            b'\r' => place + 1,
            b'\\' => escape(line, place),
            _ => place,
        };
        if end > place {
            found.push(line.get(start..place).unwrap_or_default());
            start = end;
        }
        place = end.max(place + 1);
    }
    found.push(line.get(start..).unwrap_or_default());
    found.into_iter().filter(|part| !part.is_empty()).flat_map(ends).collect()
}

/// Returns the place behind backslashes and a letter that stand for a line end, or the same place.
fn escape(line: &[u8], place: usize) -> usize {
    let rest = line.get(place..).unwrap_or_default();
    let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    if matches!(rest.get(backslashes), Some(b'n' | b'r')) { place + backslashes + 1 } else { place }
}

fn ends(part: &[u8]) -> Vec<&[u8]> {
    match (part.get(..LONGEST), part.len().checked_sub(LONGEST).and_then(|start| part.get(start..))) {
        (Some(start), Some(end)) if part.len() > LONGEST => vec![start, end],
        _ => vec![part],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_divided_at_its_own_ends() {
        assert_eq!(parts(b"10%\r20%\rdone\n"), [b"10%".as_slice(), b"20%", b"done"]);
        assert_eq!(parts(br"a\nb\\nc\td"), [b"a".as_slice(), b"b", br"c\td"]);
        let long = vec![b'x'; 3 * LONGEST];
        assert_eq!(parts(&long).iter().map(|part| part.len()).sum::<usize>(), 2 * LONGEST);
    }

    #[test]
    fn only_a_part_that_is_too_long_is_cut() {
        for (length, expected) in [(LONGEST, vec![LONGEST]), (LONGEST + 1, vec![LONGEST, LONGEST])] {
            let line = [b"1%\r".as_slice(), &vec![b'x'; length]].concat();
            let found: Vec<usize> = parts(&line).iter().skip(1).map(|part| part.len()).collect();
            assert_eq!(found, expected, "a part of {length} bytes");
        }
    }

    #[test]
    fn a_file_without_line_ends_has_parts_of_bounded_size() {
        let text = vec![b'x'; 200_000];
        let mut reader = LineReader::new(&text[..]);
        let mut begins = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            assert!(part.bytes.len() <= LONGEST_PART as usize);
            begins.push(part.begins);
        }
        assert_eq!(begins, [true, false, false, false]);
    }
}
