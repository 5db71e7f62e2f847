// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Runs other programs for at most some time. Their output goes to a file, because a pipe could be held open by a
//! process that was left behind.
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

/// The pause between two looks at a program that runs.
const PAUSE: Duration = Duration::from_millis(20);
/// The time in which a program that was killed must end. One that hangs in the kernel is left.
const GRACE: Duration = Duration::from_secs(1);
/// The time after which a command of nvpm counts as hung.
pub const LONGEST: Duration = Duration::from_secs(60);

/// How a program has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// The exit code, or the negative number of a signal.
    With(i32),
    /// The program was killed, because it took too long.
    Late,
    /// The program was killed, because this process is to end.
    Stopped,
}

/// Runs a program, and kills it with everything that it has started after the time LONGEST, or when STOPS.
pub fn run(command: &mut Command, longest: Duration, stops: impl Fn() -> bool) -> io::Result<Ended> {
    let mut child = command.stdin(Stdio::null()).process_group(0).spawn()?;
    let deadline = Instant::now() + longest;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::With(code(status)));
        }
        let early = if stops() { Ended::Stopped } else { Ended::Late };
        if early == Ended::Stopped || Instant::now() >= deadline {
            kill(&mut child);
            return Ok(early);
        }
        sleep(PAUSE);
    }
}

pub fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| -status.signal().unwrap_or_default())
}

fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // The group may have ended already.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let deadline = Instant::now() + GRACE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        sleep(PAUSE);
    }
}

/// Returns the output of a command, and whether it has ended well. A command that hangs, or does not start, has none.
pub fn said(command: &[&str], errors: Stdio) -> (bool, String) {
    said_within(command, errors, LONGEST).unwrap_or_default()
}

fn said_within(command: &[&str], errors: Stdio, longest: Duration) -> io::Result<(bool, String)> {
    let Some((name, words)) = command.split_first() else { return Ok((false, String::new())) };
    let mut output = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    let mut program = Command::new(name);
    let ended = run(program.args(words).stdout(output.try_clone()?).stderr(errors), longest, || false)?;
    let mut text = Vec::new();
    if let Ended::With(_) = ended {
        output.rewind()?;
        output.read_to_end(&mut text)?;
    }
    Ok((ended == Ended::With(0), String::from_utf8_lossy(&text).into_owned()))
}

/// Returns what a short program prints; an empty string if it does not start.
pub fn printed<S: AsRef<OsStr>>(name: impl AsRef<OsStr>, words: &[S]) -> String {
    let ended = Command::new(name).args(words).stdin(Stdio::null()).output();
    ended.map(|ended| String::from_utf8_lossy(&ended.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(script: &str, longest: Duration) -> (bool, String) {
        said_within(&["sh", "-c", script], Stdio::null(), longest).unwrap()
    }

    #[test]
    fn a_command_ends() {
        assert_eq!(said(&["echo", "x"], Stdio::null()), (true, "x\n".to_owned()));
        assert_eq!(within("echo x; exit 3", LONGEST), (false, "x\n".to_owned()));
        assert_eq!(said(&["/none/such"], Stdio::null()), (false, String::new()));
        assert_eq!(run(Command::new("sh").args(["-c", "kill -9 $$"]), LONGEST, || false).unwrap(), Ended::With(-9));
    }

    /// A process that was left behind holds the output open.
    #[test]
    fn a_command_that_hangs() {
        let begun = Instant::now();
        assert_eq!(within("echo x; sleep 300 & sleep 300", Duration::from_millis(100)), (false, String::new()));
        assert_eq!(within("echo x; sleep 300 &", LONGEST), (true, "x\n".to_owned()));
        assert_eq!(run(Command::new("sleep").arg("300"), LONGEST, || true).unwrap(), Ended::Stopped);
        assert!(begun.elapsed() < LONGEST);
    }
}
