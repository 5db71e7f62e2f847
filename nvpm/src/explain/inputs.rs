// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Opens logs: files, the files of a directory, standard input, and the output of journalctl and dmesg.
use std::fs::{File, Metadata};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use crate::explain::budget::Budget;
use crate::explain::unpack::{Sink, is_zip, texts, texts_of_zip};

pub const STANDARD_INPUT: &str = "standard input";
/// The time within which journalctl and dmesg have to end.
const PROGRAM_LIMIT: Duration = Duration::from_secs(60);
const DEEPEST_DIRECTORY: usize = 32;

/// Reads files and directories. A path that is named twice is read once.
pub fn from_paths(paths: &[PathBuf], budget: &Rc<Budget>, sink: &mut dyn Sink) {
    let mut done: Vec<&PathBuf> = Vec::new();
    for path in paths {
        if done.contains(&path) {
            continue;
        }
        done.push(path);
        if path.as_os_str() == "-" {
            from_opened(standard_input(), Path::new(STANDARD_INPUT), STANDARD_INPUT, budget, sink);
        } else if path.is_dir() {
            for file in files_of(path, sink) {
                let name = file.strip_prefix(path).unwrap_or(&file).display().to_string();
                from_file(&file, &name, budget, sink);
            }
        } else {
            let name =
                path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
            from_file(path, &name, budget, sink);
        }
    }
}

fn from_file(path: &Path, name: &str, budget: &Rc<Budget>, sink: &mut dyn Sink) {
    from_opened(File::open(path), path, name, budget, sink);
}

/// Returns the standard input, which may be a file.
#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}

fn from_opened(file: io::Result<File>, path: &Path, name: &str, budget: &Rc<Budget>, sink: &mut dyn Sink) {
    let (about, mut file) = match file.and_then(|file| Ok((file.metadata()?, file))) {
        Ok(opened) => opened,
        Err(error) => return sink.lost(&format!("{} cannot be read: {error}", path.display())),
    };
    budget.open(on_disk(&about));
    let mut start = [0; 4];
    if about.is_file() && file.read_exact(&mut start).is_ok() && is_zip(&start) {
        return texts_of_zip(name, file, budget, sink);
    }
    // A pipe has not been read.
    match if about.is_file() { file.rewind() } else { Ok(()) } {
        Ok(()) => texts(name, Box::new(file), budget, 0, sink),
        Err(error) => sink.lost(&format!("{} cannot be read: {error}", path.display())),
    }
}

/// Returns the number of bytes that a file takes on the disk, without the holes of a sparse file.
#[cfg(unix)]
fn on_disk(about: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    if about.is_file() { about.blocks().saturating_mul(512) } else { 0 }
}

#[cfg(not(unix))]
fn on_disk(about: &Metadata) -> u64 {
    about.len()
}

/// Returns when a file was written, if it is still there.
pub fn written(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|about| about.modified()).ok()
}

/// Returns the files in a directory, and in its directories, from the oldest to the newest.
fn files_of(path: &Path, sink: &mut dyn Sink) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((directory, depth)) = open.pop() {
        let entries = match directory.read_dir() {
            Ok(entries) if depth <= DEEPEST_DIRECTORY => entries,
            Ok(_) => {
                sink.lost(&format!("{} lies too deep", directory.display()));
                continue;
            }
            Err(error) => {
                sink.lost(&format!("{} cannot be read: {error}", directory.display()));
                continue;
            }
        };
        for entry in entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')) {
            let inner = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push((inner, depth + 1)),
                Ok(_) if inner.is_file() => found.push(inner),
                _ => {}
            }
        }
    }
    found.sort_by_key(|file| (written(file), file.clone()));
    found
}

/// Reads the output of a program.
pub fn from_program(command: &[&str], budget: &Rc<Budget>, sink: &mut dyn Sink) {
    let name = command.first().copied().unwrap_or_default();
    match output_of(command) {
        Ok(output) => {
            budget.open(0);
            texts(name, Box::new(Cursor::new(output)), budget, 0, sink);
        }
        Err(why) => sink.lost(&format!("{name} failed: {why}. Only root may read this log on many systems")),
    }
}

fn output_of(command: &[&str]) -> Result<Vec<u8>, String> {
    let Some((program, words)) = command.split_first() else { return Err(String::new()) };
    let child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the program, or with this process.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let ended = receiver.recv_timeout(PROGRAM_LIMIT).map_err(|_| "it did not end within a minute".to_owned())?;
    let output = ended.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
    Err(if said.is_empty() { output.status.to_string() } else { said })
}
