// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The archive, which is a new file that only its owner can read. The file is made before the texts are collected,
//! because collecting takes minutes, and the user must see an error at once. An existing file is not overwritten. If an
//! error occurs before the archive is complete, the file is deleted.
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::report::parts::Text;
use crate::show::page::NewFile;

const DIRECTORY: &str = "nvpm-report";
const MODE: u32 = 0o644;

pub struct Archive(NewFile);

impl Archive {
    /// COMMAND is the command that a message about a signal names.
    pub fn new(path: &Path, command: &str) -> io::Result<Self> {
        NewFile::new(path, command).map(Self)
    }

    pub fn keep(self, texts: &[Text]) -> io::Result<()> {
        self.0.keep(packed(texts)?)
    }
}

/// Returns the bytes of an archive with these texts.
fn packed(texts: &[Text]) -> io::Result<Vec<u8>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let gzip = GzBuilder::new().mtime(u32::try_from(now).unwrap_or_default()).write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    for text in texts {
        let mut header = Header::new_ustar();
        header.set_size(text.said.len() as u64);
        header.set_entry_type(EntryType::Regular);
        header.set_mode(MODE);
        header.set_mtime(now);
        archive.append_data(&mut header, format!("{DIRECTORY}/{}", text.name), text.said.as_bytes())?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_archive_has_all_texts() {
        let texts = ["status.txt", "README.txt"].map(|name| Text { name, said: format!("{name}: é\n") });
        let packed = packed(&texts).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let (path, mut said) = (entry.path().unwrap().display().to_string(), String::new());
            entry.read_to_string(&mut said).unwrap();
            found.push((path, said, entry.header().mode().unwrap()));
        }
        let expected = |name: &str| (format!("nvpm-report/{name}"), format!("{name}: é\n"), MODE);
        assert_eq!(found, [expected("status.txt"), expected("README.txt")]);
    }
}
