// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds a program as a shell does.
use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// The directories that the C library searches without the variable PATH.
const USUAL: &str = "/bin:/usr/bin";

/// Returns the path of a program. A name with a slash is a path already. Returns None if there is no such program, or
/// this user may not execute it.
pub fn which(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = env::var_os("PATH").unwrap_or_else(|| USUAL.into());
    env::split_paths(&path).map(|directory| directory.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    access(path, Access::EXISTS | Access::EXEC_OK).is_ok() && !path.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found() {
        assert_eq!(which(OsStr::new("/bin/sh")), Some("/bin/sh".into()));
        assert!(which(OsStr::new("sh")).is_some_and(|path| path.ends_with("sh") && path.is_absolute()));
        for name in ["no-such-program", "/", "/etc/passwd", "", "/none/such"] {
            assert_eq!(which(OsStr::new(name)), None, "{name}");
        }
    }
}
