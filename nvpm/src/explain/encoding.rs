// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether the beginning of a file is that of a text, and makes UTF-8 of a text of two bytes for each character.
use std::io::{self, Read};

/// Text has few control characters: at most one of this number of bytes.
const CONTROLS_IN: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Bytes,
    LittleEndian,
    BigEndian,
    NoText,
}

/// Returns the encoding of a file with this beginning. A log can contain NUL bytes, where the machine crashed or the
/// log was emptied while a program wrote.
pub fn of_start(start: &[u8]) -> Encoding {
    if start.starts_with(b"\xff\xfe") {
        return Encoding::LittleEndian;
    }
    if start.starts_with(b"\xfe\xff") {
        return Encoding::BigEndian;
    }
    // Without a mark at the beginning, every second byte of English text is NUL.
    let nuls = |first: usize| start.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let half = start.len() / 2;
    let many = |number: usize| half > 1 && number * 10 > half * 8;
    if many(nuls(1)) && nuls(0) < 2 {
        return Encoding::LittleEndian;
    }
    if many(nuls(0)) && nuls(1) < 2 {
        return Encoding::BigEndian;
    }
    let text = start.iter().filter(|byte| **byte != 0);
    let is_control = |byte: &u8| (*byte < 32 && !b"\t\n\x0b\x0c\r\x08\x1b".contains(byte)) || *byte == 127;
    let (all, controls) =
        text.fold((0, 0), |(all, controls), byte| (all + 1, controls + usize::from(is_control(byte))));
    let is_text = start.is_empty() || (all > 0 && controls * CONTROLS_IN <= all);
    if is_text { Encoding::Bytes } else { Encoding::NoText }
}

/// A reader of the UTF-8 form of a text of two bytes for each character.
pub struct Wide<R> {
    reader: R,
    big: bool,
    ready: Vec<u8>,
}

impl<R: Read> Wide<R> {
    pub fn new(reader: R, big: bool) -> Self {
        Self { reader, big, ready: Vec::new() }
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.reader.by_ref().take(4096).read_to_end(&mut bytes)?;
        let units = bytes.chunks(2).map(|pair| match pair {
            [first, second] if self.big => u16::from_be_bytes([*first, *second]),
            [first, second] => u16::from_le_bytes([*first, *second]),
            _ => u16::from(b'?'),
        });
        let text: String = char::decode_utf16(units).map(|letter| letter.unwrap_or('?')).collect();
        self.ready = text.trim_start_matches('\u{feff}').as_bytes().to_vec();
        Ok(())
    }
}

impl<R: Read> Read for Wide<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ready.is_empty() {
            self.fill()?;
        }
        let number = self.ready.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(self.ready.drain(..number)) {
            *place = byte;
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_other_files() {
        assert_eq!(of_start(b"plain text\n"), Encoding::Bytes);
        assert_eq!(of_start(b"\x7fELF\x02\x01\x01\x00\x03\x00"), Encoding::NoText);
        assert_eq!(of_start(b"a\0b\0c\0d\0e\0f\0"), Encoding::LittleEndian);
    }

    #[test]
    fn wide_text_becomes_utf_8() {
        let wide: Vec<u8> = "\u{feff}ibv_reg_mr é".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut text = String::new();
        Wide::new(&wide[..], false).read_to_string(&mut text).unwrap();
        assert_eq!(text, "ibv_reg_mr é");
    }
}
