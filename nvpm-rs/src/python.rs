// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The Python program beside this one, which has all commands but explain.
// TODO[RUST]: this file goes with the last of them.
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Returns where nvpm.sh is: beside this program, with links resolved, or in the directory of the packages.
fn script() -> PathBuf {
    let own = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let beside = own.as_deref().and_then(Path::parent).map(|directory| directory.join("nvpm.sh"));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| "/usr/lib/nvidia-peer-memory/nvpm.sh".into())
}

/// Returns a command that starts the Python program.
pub fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(script());
    command.args(words);
    command
}

/// Replaces this process, so that signals, exit code and terminal are those of the Python program. Returns only if that
/// fails: 4 for status and 3 else, as nvpm.sh does without Python. A monitor reads only the standard output.
pub fn run(words: &[OsString]) -> ExitCode {
    let error = command(words).exec();
    let name = words.first().and_then(|word| word.to_str()).unwrap_or_default();
    let text = format!("{}: {error}", script().display());
    // If these cannot be written, the exit code still says it.
    let _ = writeln!(std::io::stderr(), "nvpm: {text}");
    if name == "check" {
        let _ = writeln!(std::io::stdout(), "NVPM UNKNOWN - {text}");
    }
    ExitCode::from(if name == "status" { 4 } else { 3 })
}
