// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads and writes files whose errors name the file, because a person reads them in the pod's log.
use std::fs::{self, DirBuilder, File};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Has an error begin with the path.
pub fn of<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Makes a directory, and those above it, for this user only.
pub fn make_private(path: &Path) -> io::Result<()> {
    of(path, DirBuilder::new().recursive(true).mode(0o700).create(path))
}

pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    // Either file may be at fault.
    fs::copy(from, to)
        .map_err(|error| io::Error::new(error.kind(), format!("{} to {}: {error}", from.display(), to.display())))?;
    Ok(())
}

/// Writes a file that has all of the bytes, or does not exist.
pub fn write(path: &Path, data: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    of(&new, fs::write(&new, data))?;
    flush(&new)?;
    of(path, fs::rename(&new, path))
}

pub fn flush(path: &Path) -> io::Result<()> {
    of(path, File::open(path).and_then(|file| file.sync_all()))
}

/// An empty directory, which is removed in the end. A directory that a killed process has left is removed at first.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(path: &Path) -> io::Result<Self> {
        remove(path);
        of(path, DirBuilder::new().mode(0o700).create(path))?;
        Ok(Self(path.to_owned()))
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Removes a directory with all that is in it, as far as possible.
pub fn remove(path: &Path) {
    let _ = fs::remove_dir_all(path);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;

    #[test]
    fn an_error_names_the_file() {
        let said = write(Path::new("/no/such/file"), b"").unwrap_err().to_string();
        assert_eq!(said, "/no/such/file.new: No such file or directory (os error 2)");
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let directory = Directory::new();
        let path = directory.join("x");
        fs::create_dir_all(path.join("left")).unwrap();
        let scratch = Scratch::new(&path).unwrap();
        assert_eq!(scratch.read_dir().unwrap().count(), 0);
        drop(scratch);
        assert!(!path.exists());
    }
}
