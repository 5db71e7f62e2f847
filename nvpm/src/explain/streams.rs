// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Readers of xz and zstd files. Such a file may have several streams one after the other, as logs that were rotated
//! and joined have, and all of them are read.
use std::io::{self, BufRead, BufReader, Read};

use ruzstd::decoding::StreamingDecoder;
use xz4rust::{XzDecoder, XzError};

/// The memory for the dictionary of an xz file. The file says how much it wants, up to 3 GiB; xz -9 takes 64 MiB.
const LARGEST_DICTIONARY: usize = 64 << 20;
const SMALLEST_DICTIONARY: usize = 1 << 16;
/// A header of xz, which the decoder wants as a whole, is shorter.
const PIECE: u64 = 4096;

pub struct Xz<R> {
    source: R,
    decoder: XzDecoder<'static>,
    /// Packed bytes that were read and not used yet.
    packed: Vec<u8>,
    is_between: bool,
}

impl<R: Read> Xz<R> {
    pub fn new(source: R) -> Self {
        let decoder = XzDecoder::with_alloc_dict_size(SMALLEST_DICTIONARY, LARGEST_DICTIONARY);
        Self { source, decoder, packed: Vec::new(), is_between: false }
    }

    /// Reads further packed bytes. Returns whether there are any.
    fn fill(&mut self) -> io::Result<bool> {
        Ok(self.source.by_ref().take(PIECE).read_to_end(&mut self.packed)? > 0)
    }

    /// Skips the zeros between two streams. Returns whether a further stream begins.
    fn begin_stream(&mut self) -> io::Result<bool> {
        loop {
            let zeros = self.packed.iter().take_while(|byte| **byte == 0).count();
            self.packed.drain(..zeros);
            if !self.packed.is_empty() {
                self.decoder.reset();
                self.is_between = false;
                return Ok(true);
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
    }
}

impl<R: Read> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if buffer.is_empty() || (self.is_between && !self.begin_stream()?) {
                return Ok(0);
            }
            let is_more = !self.packed.is_empty() || self.fill()?;
            let result = match self.decoder.decode(&self.packed, buffer) {
                Err(XzError::NeedsLargerInputBuffer) if self.fill()? => continue,
                result => result.map_err(|error| io::Error::other(format!("xz: {error:?}")))?,
            };
            self.packed.drain(..result.input_consumed());
            self.is_between = result.is_end_of_stream();
            if result.output_produced() > 0 {
                return Ok(result.output_produced());
            }
            if !self.is_between && !result.made_progress() && !is_more {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends before its contents"));
            }
        }
    }
}

type Frame<R> = StreamingDecoder<BufReader<R>, ruzstd::decoding::FrameDecoder>;

pub struct Zstd<R: Read> {
    frame: Option<Frame<R>>,
}

impl<R: Read> Zstd<R> {
    pub fn new(source: R) -> io::Result<Self> {
        Ok(Self { frame: Some(frame(BufReader::new(source))?) })
    }
}

fn frame<R: Read>(source: BufReader<R>) -> io::Result<Frame<R>> {
    StreamingDecoder::new(source).map_err(io::Error::other)
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.frame {
            let number = decoder.read(buffer)?;
            if number > 0 || buffer.is_empty() {
                return Ok(number);
            }
            let Some(ended) = self.frame.take() else { break };
            let mut source = ended.into_inner();
            if !source.fill_buf()?.is_empty() {
                self.frame = Some(frame(source)?);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The output of xz and zstd for "first\n" and "second\n", in hexadecimal digits.
    const XZ_FIRST: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a301000566697273740a000000492523a40a8a028a00011e06\
        c12fa41d1fb6f37d010000000004595a";
    const XZ_SECOND: &str = "fd377a585a000004e6d6b4460200210116000000742fe5a30100067365636f6e640a000031bdb7f95cc0f16d00011f07\
        162eb8731fb6f37d010000000004595a";
    const ZSTD_FIRST: &str = "28b52ffd045831000066697273740ac316ad2c";
    const ZSTD_SECOND: &str = "28b52ffd04583900007365636f6e640a16404c55";

    fn bytes(digits: &str) -> Vec<u8> {
        let digits = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    fn text(mut reader: impl Read) -> io::Result<String> {
        let mut text = String::new();
        reader.read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn each_stream_of_a_file_is_read() {
        let xz = [bytes(XZ_FIRST), vec![0; 4], bytes(XZ_SECOND)].concat();
        assert_eq!(text(Xz::new(&xz[..])).unwrap(), "first\nsecond\n");
        let zstd = [bytes(ZSTD_FIRST), bytes(ZSTD_SECOND)].concat();
        assert_eq!(text(Zstd::new(&zstd[..]).unwrap()).unwrap(), "first\nsecond\n");
    }

    #[test]
    fn a_file_that_is_cut_is_an_error() {
        let xz = bytes(XZ_FIRST);
        assert!(text(Xz::new(&xz[..xz.len() - 20])).is_err());
        let zstd = bytes(ZSTD_FIRST);
        assert!(text(Zstd::new(&zstd[..zstd.len() - 6]).unwrap()).is_err());
    }
}
