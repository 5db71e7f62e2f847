// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the texts in a file: the file itself, or the members of an archive, each of which may be compressed or an
//! archive.
use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use crate::explain::budget::{Budget, Metered, read_all};
use crate::explain::encoding::{Encoding, Wide, of_start};
use crate::explain::streams::{Xz, Zstd};

/// The first bytes of a file, by which its format is known.
const BEGINNING: usize = 4096;
/// A program that writes on into a log that was emptied leaves NUL bytes before its lines.
const MOST_NULS: usize = 64 << 20;
/// An archive is read, and an archive within this archive, but no deeper archive.
const DEEPEST: usize = 2;
/// A zip archive has its list of members at the end, so an archive that comes from a pipe must be in memory.
const LARGEST_PACKED: u64 = 64 << 20;
/// The list of members is kept in memory. An entry has at least 46 bytes in the file, and some hundred in memory.
const LONGEST_LIST: u64 = 4 << 20;
/// The kinds of members of a tar archive: files, and the longer name of the next member.
const LONG_NAME: u8 = b'L';
const FILES: &[u8] = b"0\0\x37";
const LONGEST_NAME: u64 = 4096;
/// Files that are not unpacked, with the program that packed them and the command that unpacks them.
const PACKED: &[(&[u8], &str)] = &[
    (b"\x04\x22\x4d\x18", "is packed by lz4: unpack it first (lz4 -d)"),
    (b"7z\xbc\xaf\x27\x1c", "is packed by 7-Zip: unpack it first (7z x)"),
    (b"LPKSHHRH", "is a file of the journal: journalctl --file= prints its lines"),
];

/// The receiver of the texts, which also learns which part of the input is lost.
pub trait Sink {
    fn text(&mut self, name: &str, text: Box<dyn BufRead + '_>) -> io::Result<()>;
    /// A part of the logs cannot be read.
    fn lost(&mut self, reason: &str);
    /// A file is no log, so nothing is lost if the file is left out.
    fn no_text(&mut self, name: &str);
}

/// Gives the texts in a file to the sink. DEPTH is the number of archives around the file.
pub fn texts(name: &str, raw: Box<dyn Read + '_>, budget: &Rc<Budget>, depth: usize, sink: &mut dyn Sink) {
    if let Err(error) = try_texts(name, raw, budget, depth, sink) {
        sink.lost(&format!("{name} cannot be read: {error}"));
    }
}

fn try_texts(
    name: &str,
    raw: Box<dyn Read + '_>,
    budget: &Rc<Budget>,
    depth: usize,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let (start, file) = beginning(Metered::new(raw, budget, depth == 0))?;
    let (start, mut file) = match unpacked(&start, file)? {
        Ok(inner) => beginning(Metered::new(inner, budget, false))?,
        Err(file) => (start, file),
    };
    let is_zip = is_zip(&start);
    let is_tar = start.get(257..262) == Some(b"ustar");
    if (is_zip || is_tar) && depth >= DEEPEST {
        return Err(io::Error::other(format!("it is an archive within {depth} others: unpack it first")));
    }
    if is_zip {
        let data = read_all(BufReader::new(file), LARGEST_PACKED)?;
        return members_of_zip(name, Cursor::new(data), budget, depth, sink);
    }
    if is_tar {
        return members_of_tar(name, file, budget, depth, sink);
    }
    if let Some((_, what)) = PACKED.iter().find(|(magic, _)| start.starts_with(magic)) {
        sink.lost(&format!("{name} {what}"));
        return Ok(());
    }
    match of_start(&start) {
        Encoding::NoText => {
            sink.no_text(name);
            Ok(())
        }
        Encoding::Bytes => sink.text(name, Box::new(BufReader::with_capacity(1 << 16, &mut *file))),
        wide => {
            let text = Wide::new(&mut *file, wide == Encoding::BigEndian);
            sink.text(name, Box::new(BufReader::new(text)))
        }
    }
}

type Input<'a> = Box<dyn Read + 'a>;

/// Returns the first bytes of a file behind its NUL bytes and its mark of UTF-8, and a reader of the whole from there
/// on.
fn beginning<'a>(mut file: impl Read + 'a) -> io::Result<(Vec<u8>, Input<'a>)> {
    let mut start = Vec::new();
    let mut nuls = 0;
    loop {
        start.clear();
        file.by_ref().take(BEGINNING as u64).read_to_end(&mut start)?;
        nuls += start.len();
        if start.is_empty() || start.iter().any(|byte| *byte != 0) || nuls > MOST_NULS {
            break;
        }
    }
    if start.starts_with(b"\xef\xbb\xbf") {
        start.drain(..3);
    }
    let whole = Cursor::new(start.clone()).chain(file);
    Ok((start, Box::new(whole)))
}

/// Returns a reader of the contents of a compressed file, or the file again if it is not compressed.
fn unpacked<'a>(start: &[u8], file: Input<'a>) -> io::Result<Result<Input<'a>, Input<'a>>> {
    Ok(if start.starts_with(b"\x1f\x8b") {
        Ok(Box::new(flate2::read::MultiGzDecoder::new(file)))
    } else if start.starts_with(b"BZh") {
        Ok(Box::new(bzip2::read::MultiBzDecoder::new(file)))
    } else if start.starts_with(b"\xfd7zXZ") {
        Ok(Box::new(Xz::new(file)))
    } else if start.starts_with(b"\x28\xb5\x2f\xfd") {
        Ok(Box::new(Zstd::new(file)?))
    } else {
        Err(file)
    })
}

pub fn is_zip(start: &[u8]) -> bool {
    start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06")
}

/// Gives the texts in a zip archive that is a file to the sink.
pub fn texts_of_zip(name: &str, file: impl Read + Seek, budget: &Rc<Budget>, sink: &mut dyn Sink) {
    if let Err(error) = members_of_zip(name, file, budget, 0, sink) {
        sink.lost(&format!("{name} cannot be read: {error}"));
    }
}

/// A zip archive whose list is being read. A small file can say that it has millions of members.
struct Listed<R> {
    file: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Listed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let number = self.file.read(buffer)?;
        let left = self.left.get().checked_sub(number as u64);
        self.left.set(left.ok_or_else(|| io::Error::other("the archive has too many members: unpack it first"))?);
        Ok(number)
    }
}

impl<R: Seek> Seek for Listed<R> {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.file.seek(place)
    }
}

fn members_of_zip(
    name: &str,
    file: impl Read + Seek,
    budget: &Rc<Budget>,
    depth: usize,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let left = Rc::new(Cell::new(LONGEST_LIST));
    let mut archive = zip::ZipArchive::new(Listed { file, left: Rc::clone(&left) }).map_err(io::Error::other)?;
    left.set(u64::MAX);
    for number in 0..archive.len() {
        match archive.by_index(number) {
            Ok(member) if member.is_dir() => {}
            Ok(member) => {
                let inner = format!("{name}:{}", member.name());
                texts(&inner, Box::new(member), budget, depth + 1, sink);
            }
            Err(error) => sink.lost(&format!("{name}: member {} cannot be read: {error}", number + 1)),
        }
    }
    Ok(())
}

/// Reads the headers of members itself, because the crate would read a long name as a whole, whatever its size.
fn members_of_tar(
    name: &str,
    file: Input<'_>,
    budget: &Rc<Budget>,
    depth: usize,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let mut archive = tar::Archive::new(file);
    let mut long_name = None;
    for member in archive.entries()?.raw(true) {
        let mut member = member?;
        let kind = member.header().entry_type().as_byte();
        if kind == LONG_NAME {
            let mut text = Vec::new();
            member.by_ref().take(LONGEST_NAME).read_to_end(&mut text)?;
            let text = String::from_utf8_lossy(&text).into_owned();
            long_name = Some(text.trim_end_matches('\0').to_owned());
            continue;
        }
        let short = String::from_utf8_lossy(&member.path_bytes()).into_owned();
        if FILES.contains(&kind) {
            let inner = long_name.take().unwrap_or(short);
            texts(&format!("{name}:{inner}"), Box::new(member), budget, depth + 1, sink);
        } else if kind == b'S' {
            sink.lost(&format!("{name}:{short} cannot be read: a sparse file: make the archive without --sparse"));
        }
        // A directory or a link has no contents, and the fields of pax are no log.
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[derive(Default)]
    struct Seen {
        texts: Vec<(String, String)>,
        lost: Vec<String>,
        others: Vec<String>,
    }

    impl Sink for Seen {
        fn text(&mut self, name: &str, mut text: Box<dyn BufRead + '_>) -> io::Result<()> {
            let mut all = String::new();
            text.read_to_string(&mut all)?;
            self.texts.push((name.to_owned(), all));
            Ok(())
        }

        fn lost(&mut self, reason: &str) {
            self.lost.push(reason.to_owned());
        }

        fn no_text(&mut self, name: &str) {
            self.others.push(name.to_owned());
        }
    }

    fn seen(data: &[u8]) -> Seen {
        let mut seen = Seen::default();
        texts("f", Box::new(data), &Budget::new(), 0, &mut seen);
        seen
    }

    fn gz(data: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(data).unwrap();
        writer.finish().unwrap()
    }

    fn tar_of(name: &str, data: &[u8]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, data).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn compressed_files_and_archives_are_unpacked() {
        assert_eq!(seen(&gz(b"line\n")).texts, [("f".into(), "line\n".into())]);
        let long = "d/".repeat(80) + "x.log";
        let seen = seen(&gz(&tar_of(&long, &gz(b"inner\n"))));
        assert_eq!(seen.texts, [(format!("f:{long}"), "inner\n".into())]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(seen(b"\x7fELF\x02\x01\x01\0\x03\0").others, ["f"]);
        assert_eq!(seen(b"\x04\x22\x4d\x18rest").lost.len(), 1);
        let cut = gz(&vec![b'x'; 100_000]);
        assert_eq!(seen(&cut[..cut.len() / 2]).lost.len(), 1);
    }

    #[test]
    fn an_archive_in_two_archives_is_refused() {
        let inner = tar_of("a.tar", &tar_of("b.tar", &tar_of("c.log", b"x\n")));
        assert!(seen(&inner).lost[0].contains("within 2 others"));
    }
}
