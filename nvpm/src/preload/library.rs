// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds the library to preload, and checks its file.
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::preload::loader::ELF;
use crate::preload::trust::distrusted;
use crate::read::reader::reason;

pub const LIBRARY: &str = "libnvpm_preload.so";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The name of this program in the packages and in a checkout. A release has it as a single file with another name.
const PROGRAM: &str = "nvpm-bin";
/// The place of the processor's number in an ELF file (`e_machine`), which has two bytes.
const PROCESSOR: usize = 18;

/// Returns the processor of this machine.
fn processor() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// The places where the library may be, and the reasons why others are passed over.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places {
    pub found: Vec<PathBuf>,
    pub passed_over: Vec<String>,
}

/// Returns the places beside this program. If nvpm is a single file, only the name that a release gives the library
/// counts, because other users may be able to write to the directory of nvpm. A library that another user could have
/// written is left out, because the library runs with the rights of this user.
pub fn places(program: &Path) -> Places {
    let released = format!("libnvpm_preload-{VERSION}-{}.so", processor());
    let mut names = vec![released.clone()];
    if program.file_name().is_some_and(|name| name == PROGRAM) {
        let (in_sources, built) = (format!("preload/{LIBRARY}"), format!("preload/target/release/{LIBRARY}"));
        names = vec![LIBRARY.to_owned(), released, in_sources, built];
    }
    let mut places = Places::default();
    for name in names {
        let path = resolved(&program.with_file_name(name));
        let is_there = path.symlink_metadata().is_ok();
        match distrusted(&path, program).filter(|_| is_there) {
            Some(why) => {
                let path = path.display();
                places.passed_over.push(format!("{path} is passed over: {why}. If you trust it: --library {path}"));
            }
            None => places.found.push(path),
        }
    }
    places
}

/// Returns a path in whose directory all links are resolved. The file itself may still be a link.
fn resolved(path: &Path) -> PathBuf {
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    match (directory, path.file_name()) {
        (Some(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    }
}

/// Returns why the dynamic linker could not load the library; None if it could. nvpm checks this first, because the
/// linker would only print a warning, and then run the program without the library.
pub fn misfit(library: &Path) -> Option<String> {
    match header(library) {
        Ok(header) => not_for(&header, &processor()),
        Err(error) => Some(format!("cannot be read: {}", reason(&error))),
    }
}

fn header(library: &Path) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    File::open(library)?.take(PROCESSOR as u64 + 2).read_to_end(&mut header)?;
    Ok(header)
}

/// Returns why a file with this beginning is not for the processor HERE.
fn not_for(header: &[u8], here: &str) -> Option<String> {
    let number = match header.get(PROCESSOR..) {
        Some([low, high, ..]) if header.starts_with(ELF) => u16::from_le_bytes([*low, *high]),
        _ => return Some("is not a library for 64-bit programs".to_owned()),
    };
    let there = match number {
        62 => "x86_64".to_owned(),
        183 => "aarch64".to_owned(),
        _ => format!("another processor (ELF machine {number})"),
    };
    (there != here).then(|| format!("is for {there}, but this machine is {here}"))
}

/// Returns whether the dynamic linker would take a path for several, because it has a blank or a colon.
pub fn is_divided(path: &Path) -> bool {
    path.to_string_lossy().contains(|letter: char| letter.is_whitespace() || letter == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, machine: u16) -> Vec<u8> {
        let mut header = [b"\x7fELF".as_slice(), &[class, 1], &[0; 12]].concat();
        header.extend(machine.to_le_bytes());
        header
    }

    #[test]
    fn a_library_is_for_one_processor() {
        let not_here = |header: &[u8]| not_for(header, "x86_64");
        assert_eq!(not_here(&header(2, 62)), None);
        let text = "is for aarch64, but this machine is x86_64";
        assert_eq!(not_here(&header(2, 183)).as_deref(), Some(text));
        let text = "is for another processor (ELF machine 21), but this machine is x86_64";
        assert_eq!(not_here(&header(2, 21)).as_deref(), Some(text));
        for header in [header(1, 62), header(2, 62)[..19].to_vec(), Vec::new(), vec![0; 20]] {
            assert_eq!(not_here(&header).as_deref(), Some("is not a library for 64-bit programs"));
        }
        assert_eq!(misfit(Path::new("/")).as_deref(), Some("cannot be read: Is a directory"));
        assert_eq!(misfit(Path::new("/bin/sh")), None);
    }

    #[test]
    fn a_single_file_knows_only_the_name_of_a_release() {
        let released = format!("/none/such/libnvpm_preload-{VERSION}-{}.so", processor());
        let found = |program: &str| -> Vec<PathBuf> { places(Path::new(program)).found };
        assert_eq!(found("/none/such/nvpm-of-a-release"), [Path::new(&released)]);
        let beside = "/none/such/libnvpm_preload.so";
        let (sources, built) = ("preload/libnvpm_preload.so", "preload/target/release/libnvpm_preload.so");
        let expected = [beside, &released, &format!("/none/such/{sources}"), &format!("/none/such/{built}")];
        assert_eq!(found("/none/such/nvpm-bin"), expected.map(Path::new));
    }

    #[test]
    fn blanks_and_colons_divide() {
        assert!(["/a b/x.so", "/a:b", "/a\tb"].iter().all(|path| is_divided(Path::new(path))));
        assert!(!is_divided(Path::new("/usr/lib/x.so")));
    }
}
