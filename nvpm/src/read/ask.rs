// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Asks RDMA devices whether they support dma-buf, in the same way as NCCL and other programs: by registering the file
//! descriptor -1. The error EBADF shows that the device's driver has looked at the descriptor, so it supports dma-buf.
//! Such a device is also asked whether it can page on demand (ODP), because newer drivers of mlx5 look at the
//! descriptor first, and then refuse the dma-buf of a device without ODP.
//!
//! libibverbs and the drivers that it loads are foreign code, which may crash or hang, so they run in a process of
//! their own.
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use nvpm_foreign::verbs::{Context, Error, Library};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::read::machine::decoded;
use crate::read::programs;
use crate::read::reader::can_be_read;

/// The command by which nvpm starts itself as the process that asks.
pub const WORD: &str = "__ask";
/// The time for the answers of all devices.
const LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of all answers. A library that prints without an end must not fill memory.
const MOST: usize = 1 << 20;

pub const YES: &str = "EBADF";
/// The answer of a device that gives YES and cannot page on demand.
pub const WITHOUT_ODP: &str = "EBADF without ODP";

/// Returns the answer of each device that answered in time: the name of the error, or `WITHOUT_ODP`.
pub fn devices() -> IndexMap<String, String> {
    answers_of(Command::new("/proc/self/exe").arg(WORD), LIMIT)
}

/// Returns the answers that a process prints until a time has passed. The process is then killed.
fn answers_of(program: &mut Command, limit: Duration) -> IndexMap<String, String> {
    let deadline = Instant::now() + limit;
    let program = program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let Ok(mut child) = program.spawn() else { return IndexMap::new() };
    let said = child.stdout.take().map(|pipe| read_until(pipe, deadline)).unwrap_or_default();
    programs::stop(&mut child, "the process that asks RDMA devices for dma-buf");
    pairs(&decoded(&said))
}

/// Returns the answers that a text has, a line for each. An answer ends with a line break, so the last piece is empty
/// or incomplete, and is left out. The second answer of a device replaces its first.
pub fn pairs(text: &str) -> IndexMap<String, String> {
    let lines = text.rsplit_once('\n').map_or("", |(whole, _)| whole).split('\n');
    lines.filter_map(|line| line.split_once(' ')).map(|(name, answer)| (name.to_owned(), answer.to_owned())).collect()
}

/// Returns the bytes that arrive until the pipe is closed, the deadline has come, or there are too many.
fn read_until(mut pipe: impl Read + AsFd, deadline: Instant) -> Vec<u8> {
    let (mut said, mut buffer) = (Vec::new(), [0; 4096]);
    let left = || deadline.saturating_duration_since(Instant::now());
    while said.len() < MOST && can_be_read(&pipe, left()).unwrap_or(false) {
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => said.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            _ => break,
        }
    }
    said
}

/// Prints the answers and ends this process, which nvpm has started. The process ends with nvpm. Nothing is released,
/// because a driver might hang, and the kernel releases everything.
pub fn run() -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    nvpm_foreign::close_inherited();
    if let Ok(library) = Library::open() {
        let _ = print_answers(&library);
        // The exit handlers of the library do not run, either.
    }
    nvpm_foreign::ending::leave(0)
}

/// Prints names of devices and their answers. All devices are asked about dma-buf first, so that a crash in the second
/// question loses no answer to the first.
fn print_answers(library: &Library) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut say = |name: &str, answer: &str| writeln!(out, "{name} {answer}").and_then(|()| out.flush());
    let mut found: Vec<(String, &Context<'_>)> = Vec::new();
    // Without a device list, the kernel has no verbs. A library that is older than the verb cannot be asked.
    let names = library.device_names().ok().filter(|_| library.has_dma_buf());
    for name in names.unwrap_or_default() {
        // A device may be missing by now, or this user may not open it, or the container lacks its file.
        let Ok(Some(context)) = library.open_device(&name) else { continue };
        let context: &Context<'_> = Box::leak(Box::new(context));
        let Some(error) = answer(context) else { continue };
        say(&name, &error.name())?;
        if error.name() == YES {
            found.push((name, context));
        }
    }
    for (name, context) in found {
        if context.pages_on_demand() == Some(false) {
            say(&name, WITHOUT_ODP)?;
        }
    }
    Ok(())
}

fn answer(context: &Context<'_>) -> Option<Error> {
    let domain = context.domain().ok()?;
    let error = domain.register_no_descriptor();
    std::mem::forget(domain);
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(script: &str, limit: Duration) -> Vec<(String, String)> {
        answers_of(Command::new("sh").args(["-c", script]), limit).into_iter().collect()
    }

    #[test]
    fn the_last_whole_answer_of_a_device_counts() {
        let found =
            said("echo mlx5_0 EBADF; echo roce0 EOPNOTSUPP; echo mlx5_0 EBADF without ODP; printf 'roce0 E'", LIMIT);
        let expected = [("mlx5_0", WITHOUT_ODP), ("roce0", "EOPNOTSUPP")];
        assert_eq!(found, expected.map(|(name, answer)| (name.to_owned(), answer.to_owned())));
        assert!(said("", LIMIT).is_empty() && said("kill -9 $$", LIMIT).is_empty());
        assert!(answers_of(&mut Command::new("/none/such"), LIMIT).is_empty());
    }

    #[test]
    fn a_library_that_prints_without_an_end_is_stopped() {
        let begun = Instant::now();
        let found = said("yes mlx5_0 EBADF", Duration::from_secs(100));
        assert_eq!(found, [("mlx5_0".to_owned(), YES.to_owned())]);
        assert!(begun.elapsed() < Duration::from_secs(100));
    }

    #[test]
    fn a_device_that_hangs_loses_no_answer_of_another() {
        let begun = Instant::now();
        // On a busy machine, the process may not have answered in time.
        let mut found = [1, 10, 100]
            .map(Duration::from_secs)
            .into_iter()
            .map(|limit| said("echo mlx5_0 EBADF; sleep 300 & sleep 300", limit));
        assert_eq!(found.find(|found| !found.is_empty()), Some(vec![("mlx5_0".to_owned(), YES.to_owned())]));
        assert!(begun.elapsed() < Duration::from_secs(200));
    }
}
