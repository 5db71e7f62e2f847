// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Says whether the dynamic linker loads a preloaded library into a program.
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{getgid, getuid};

use crate::preload::search::which;

/// The beginning of a 64-bit little-endian ELF file.
pub const ELF: &[u8] = b"\x7fELF\x02\x01";
/// The type of the segment that names the dynamic linker.
const INTERPRETER: u64 = 3;
/// A script can name a script.
const MOST_SCRIPTS: usize = 4;
/// Headers and the linker's name stand in this number of bytes at the beginning of a file.
const BEGINNING: u64 = 4096;

const STATIC: &str = "is linked statically, and has no dynamic linker that could preload a library";
const MUSL: &str = "is linked with musl, and CUDA and the library are for glibc";
const MORE_RIGHTS: &str = "runs with more rights than yours, so the dynamic linker preloads nothing";

/// Returns why no library can be preloaded into a program; None if a library can, or if the program cannot be read.
pub fn unreachable(program: &OsStr) -> Option<String> {
    let mut path = which(program)?;
    for _ in 0..MOST_SCRIPTS {
        let (start, status) = beginning(&path)?;
        if start.starts_with(ELF) {
            return of_elf(&path, &start, &status).map(|why| format!("{} {why}", path.display()));
        }
        path = of_script(&start)?;
    }
    None
}

fn beginning(path: &Path) -> Option<(Vec<u8>, Metadata)> {
    let file = File::open(path).ok()?;
    let status = file.metadata().ok()?;
    let mut start = Vec::new();
    file.take(BEGINNING).read_to_end(&mut start).ok()?;
    Some((start, status))
}

/// Returns the program that runs a script. `env` runs the program that its first argument names.
fn of_script(start: &[u8]) -> Option<PathBuf> {
    let line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = OsStr::from_bytes(words.next()?);
    if Path::new(name).file_name() != Some(OsStr::new("env")) {
        return which(name);
    }
    let is_program = |word: &&[u8]| !word.starts_with(b"-") && !word.contains(&b'=');
    which(OsStr::from_bytes(words.find(is_program)?))
}

/// Returns why no library can be preloaded into an ELF file.
fn of_elf(path: &Path, start: &[u8], status: &Metadata) -> Option<&'static str> {
    let begins = |path: &Path, begin: &[u8]| path.file_name().is_some_and(|name| name.as_bytes().starts_with(begin));
    match interpreter(start).ok()? {
        None if begins(path, b"ld-linux") => None,
        None => Some(STATIC),
        Some(linker) if begins(Path::new(&linker), b"ld-musl") => Some(MUSL),
        Some(_) => {
            let (owner, user) = ((status.uid(), status.gid()), (getuid().as_raw(), getgid().as_raw()));
            gains_rights(status.mode(), owner, user, || has_capabilities(path)).then_some(MORE_RIGHTS)
        }
    }
}

/// Returns whether a program runs as another user or group, or gets capabilities that this user does not have. The
/// dynamic linker ignores a preloaded library only then. RDMA programs often get `CAP_IPC_LOCK`. Root has all
/// capabilities already.
fn gains_rights(mode: u32, owner: (u32, u32), user: (u32, u32), has_capabilities: impl FnOnce() -> bool) -> bool {
    let is_other = (mode & 0o4000 != 0 && owner.0 != user.0) || (mode & 0o2000 != 0 && owner.1 != user.1);
    is_other || (user.0 != 0 && has_capabilities())
}

fn has_capabilities(path: &Path) -> bool {
    rustix::fs::getxattr(path, "security.capability", &mut [0; 64]).is_ok_and(|size| size > 0)
}

/// An ELF file ends before its headers.
struct Cut;

/// Returns the dynamic linker that an ELF file names; None if the file names none.
fn interpreter(start: &[u8]) -> Result<Option<OsString>, Cut> {
    let (table, size, count) = (number::<8>(start, 32)?, number::<2>(start, 54)?, number::<2>(start, 56)?);
    for index in 0..if size > 0 { count } else { 0 } {
        let place = table.saturating_add(index * size);
        let (kind, offset) = (number::<4>(start, place)?, number::<8>(start, place.saturating_add(8))?);
        if kind == INTERPRETER {
            let name = usize::try_from(offset).ok().and_then(|offset| start.get(offset..)).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            return Ok(Some(OsString::from_vec(name.to_vec())));
        }
    }
    Ok(None)
}

/// Returns the little-endian number of SIZE bytes at a place.
fn number<const SIZE: usize>(start: &[u8], place: u64) -> Result<u64, Cut> {
    let place = usize::try_from(place).map_err(|_| Cut)?;
    let bytes = start.get(place..).and_then(|rest| rest.get(..SIZE)).ok_or(Cut)?;
    Ok(bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Returns the beginning of a program for x86-64, as elf.h describes it, with two segments.
    fn elf(linker: Option<&str>) -> Vec<u8> {
        let name = linker.map_or(String::new(), |linker| format!("{linker}\0"));
        let kind = if linker.is_some() { 3u32 } else { 4 };
        let mut file = [ELF, &[1], &[0; 9]].concat();
        for number in [3u16, 62] {
            file.extend(number.to_le_bytes());
        }
        file.extend(1u32.to_le_bytes());
        for number in [0u64, 64, 0] {
            file.extend(number.to_le_bytes());
        }
        file.extend(0u32.to_le_bytes());
        for number in [64u16, 56, 2, 64, 0, 0] {
            file.extend(number.to_le_bytes());
        }
        let length = name.len() as u64;
        for (kind, offset, length) in [(1u32, 0u64, 4096), (kind, 176, length)] {
            file.extend(kind.to_le_bytes());
            file.extend(4u32.to_le_bytes());
            for number in [offset, offset, offset, length, length, 1] {
                file.extend(number.to_le_bytes());
            }
        }
        [file, name.into_bytes()].concat()
    }

    /// A directory with programs.
    struct Programs(PathBuf);

    impl Programs {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nvpm-loader-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn add(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.0.join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        }
    }

    impl Drop for Programs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn said(path: &Path) -> String {
        unreachable(path.as_os_str()).unwrap_or_default()
    }

    #[test]
    fn programs_name_their_linker() {
        let programs = Programs::new("linker");
        for (linker, text) in [
            (Some("/lib64/ld-linux-x86-64.so.2"), None),
            (Some("/lib/ld-linux-aarch64.so.1"), None),
            (Some("/lib/ld-musl-x86_64.so.1"), Some(MUSL)),
            (None, Some(STATIC)),
        ] {
            let path = programs.add("one", elf(linker));
            let expected = text.map(|text| format!("{} {text}", path.display()));
            assert_eq!(unreachable(path.as_os_str()), expected);
        }
        assert_eq!(said(&programs.add("ld-linux-x86-64.so.2", elf(None))), "");
        // Debian links ldconfig statically, and the shell dynamically.
        assert_eq!(said(Path::new("/sbin/ldconfig")), format!("/sbin/ldconfig {STATIC}"));
        assert_eq!(said(Path::new("sh")), "");
        assert_eq!(said(Path::new("no-such-program")), "");
    }

    #[test]
    fn a_script_counts_as_its_interpreter() {
        let programs = Programs::new("script");
        let fixed = programs.add("static", elf(None));
        let name = fixed.display();
        for line in [
            format!("#!{name}"),
            format!("#! {name} -x"),
            format!("#!/usr/bin/env {name}"),
            format!("#!/usr/bin/env -S A=1 {name} -x"),
        ] {
            let first = programs.add("first", format!("{line}\n"));
            let second = programs.add("second", format!("#!{}\n", first.display()));
            assert_eq!(said(&first), format!("{name} {STATIC}"), "{line}");
            assert_eq!(said(&second), format!("{name} {STATIC}"), "{line}");
        }
        assert_eq!(said(&programs.add("third", "#!/bin/sh\n")), "");
        let itself = programs.0.join("itself");
        assert_eq!(said(&programs.add("itself", format!("#!{}\n", itself.display()))), "");
    }

    #[test]
    fn a_broken_program_is_left_to_the_shell() {
        let programs = Programs::new("broken");
        let cut = elf(None)[..70].to_vec();
        for content in [b"".as_slice(), b"#!", b"#!\n", b"#!/usr/bin/env\n", ELF, &cut, b"echo\n"] {
            assert_eq!(said(&programs.add("broken", content)), "", "{content:?}");
        }
    }

    #[test]
    fn rights_change_with_another_owner_and_by_capabilities() {
        let gains = |mode, owner, user, has| gains_rights(mode, owner, user, || has);
        let user = (1000, 1000);
        assert!(!gains(0o755, (0, 0), user, false));
        assert!(gains(0o4755, (0, 1000), user, false) && !gains(0o4755, (1000, 0), user, false));
        assert!(gains(0o2755, (1000, 0), user, false) && !gains(0o2755, (0, 1000), user, false));
        assert!(gains(0o755, (0, 0), user, true) && !gains(0o755, (0, 0), (0, 0), true));
    }

    #[test]
    fn rights_of_the_own_user_do_not_change() {
        let programs = Programs::new("owned");
        let path = programs.add("owned", elf(Some("/lib64/ld-linux-x86-64.so.2")));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(said(&path), "");
        // A user cannot give a file away.
        assert!(getuid().is_root(), "run this test as root");
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        // The change of the owner has removed the bit.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        assert_eq!(said(&path), format!("{} {MORE_RIGHTS}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(said(&path), "");
    }
}
