// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Runs other programs, each with a time limit. A program that hangs in a driver of the kernel cannot be killed. nvpm
//! then says so and leaves the program, because that driver may never answer.
use std::env;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nvpm_foreign::ending::Companion;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::read::reader::reason;

pub const LIMIT: Duration = Duration::from_secs(10);
/// The time in which a program that was killed must end.
const GRACE: Duration = Duration::from_secs(1);

/// How a program ended. If the program did not start, or was stopped, it has no exit code, and WHY is the reason. A
/// program that a signal has ended has the negative number of the signal.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    pub code: Option<i32>,
    pub output: Vec<u8>,
    pub why: String,
}

/// Runs a program in a process group of its own, and returns its output. Error messages are dropped. GIVEN is its
/// standard input, which is empty without.
pub fn run(command: &[&str], limit: Duration, given: Option<&[u8]>) -> Ended {
    let input = if given.is_some() { Stdio::piped() } else { Stdio::null() };
    started(command, limit, |program| program.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()), given)
}

/// Runs a program that writes to nvpm's own output.
pub fn run_aloud(command: &[&str], limit: Duration) -> Ended {
    started(command, limit, |program| program.stdin(Stdio::null()), None)
}

/// Returns the directories of programs. cron and plain users may not have those of modinfo.
fn path() -> OsString {
    let mut path = env::var_os("PATH").filter(|path| !path.is_empty()).unwrap_or_else(|| "/usr/bin:/bin".into());
    path.push(":/usr/sbin:/sbin");
    path
}

fn started(
    command: &[&str],
    limit: Duration,
    prepare: impl FnOnce(&mut Command) -> &mut Command,
    given: Option<&[u8]>,
) -> Ended {
    let Some((name, words)) = command.split_first() else { return Ended::default() };
    let mut program = Command::new(name);
    let child = prepare(program.args(words).env("PATH", path()).process_group(0)).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Ended { why: format!("cannot be started: {}", reason(&error)), ..Ended::default() },
    };
    let _companion = Companion::of(i32::try_from(child.id()).unwrap_or_default());
    let deadline = Instant::now() + limit;
    let output = communicate(&mut child, given.unwrap_or_default(), deadline);
    if let (Ok(output), Ok(Some(status))) = (output, wait(&mut child, deadline)) {
        use std::os::unix::process::ExitStatusExt;
        let code = status.code().or(status.signal().map(|signal| -signal));
        return Ended { code, output, why: String::new() };
    }
    let ended = stop(&mut child, name);
    Ended { why: format!("took longer than {} s and was {ended}", limit.as_secs_f64()), ..Ended::default() }
}

/// Writes GIVEN to the standard input of a program, and reads its standard output until the program closes it. Returns
/// the output. Fails after the deadline.
fn communicate(child: &mut Child, mut given: &[u8], deadline: Instant) -> io::Result<Vec<u8>> {
    let (mut input, mut output) = (child.stdin.take(), child.stdout.take());
    if let Some(pipe) = &input {
        rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK)?;
    }
    let mut said = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while input.is_some() || output.is_some() {
        let (may_write, may_read) = ready(input.as_ref(), output.as_ref(), deadline)?;
        if let Some(pipe) = input.as_mut().filter(|_| may_write) {
            match pipe.write(given) {
                Ok(count) => given = given.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The program has not read all.
                Err(_) => given = &[],
            }
        }
        if given.is_empty() {
            input = None;
        }
        if let Some(pipe) = output.as_mut().filter(|_| may_read) {
            match pipe.read(&mut buffer)? {
                0 => output = None,
                count => said.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        }
    }
    Ok(said)
}

/// Waits until a pipe is ready. Returns whether the first may be written, and the second may be read.
fn ready(input: Option<&impl AsFd>, output: Option<&impl AsFd>, deadline: Instant) -> io::Result<(bool, bool)> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut pipes: Vec<PollFd<'_>> = input.map(|pipe| PollFd::new(pipe, PollFlags::OUT)).into_iter().collect();
    pipes.extend(output.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    match poll(&mut pipes, Timespec::try_from(left).ok().as_ref()) {
        Err(rustix::io::Errno::INTR) => return Ok((false, false)),
        Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
        found => found?,
    };
    let mut events = pipes.iter().map(|pipe| !pipe.revents().is_empty());
    let may_write = input.is_some() && events.next().unwrap_or_default();
    Ok((may_write, output.is_some() && events.next().unwrap_or_default()))
}

/// Waits for the end of a process until the deadline.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<std::process::ExitStatus>> {
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() >= deadline {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a child process, or its whole group. Returns whether the process has ended within a time.
pub fn kill(child: &mut Child, grace: Duration, group: bool) -> bool {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let kill = if group { kill_process_group } else { kill_process };
        // The process may have ended already.
        let _ = kill(pid, Signal::KILL);
    }
    wait(child, Instant::now() + grace).is_ok_and(|status| status.is_some())
}

/// Kills a program with all that it has started, because these may hold its pipe open. Returns a text that says whether
/// it has ended.
pub fn stop(child: &mut Child, name: &str) -> String {
    let is_ended = kill(child, GRACE, true);
    stopped(is_ended, child.id(), name, &mut io::stderr())
}

/// Returns whether a program that was killed has ended. Warns if it has not.
fn stopped(is_ended: bool, number: u32, name: &str, warnings: &mut impl Write) -> String {
    if is_ended {
        return "killed".to_owned();
    }
    let name = Path::new(name).file_name().map_or(name.into(), std::ffi::OsStr::to_string_lossy);
    // If this cannot be written, the returned text still says it.
    let _ = writeln!(
        warnings,
        "nvpm: {name} (process {number}) does not end, though it was killed, and is left: the kernel, or a driver in it, \
         holds it. dmesg and /proc/{number}/stack say more; only a reboot helps if it stays."
    );
    format!("killed, but does not end: process {number} is left")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_program_gets_its_input_and_has_an_end() {
        let text = vec![b'x'; 1 << 20];
        let ended = run(&["cat"], LIMIT, Some(&text));
        assert_eq!((ended.code, ended.output.len()), (Some(0), text.len()));
        assert_eq!(run(&["sh", "-c", "exit 3"], LIMIT, None).code, Some(3));
        assert_eq!(run(&["sh", "-c", "kill -9 $$"], LIMIT, None).code, Some(-9));
        assert_eq!(run(&["/none/such"], LIMIT, None).why, "cannot be started: No such file or directory");
        // Errors are dropped, and there is nothing to read.
        let ended = run(&["sh", "-c", "echo yes; echo no >&2; cat"], LIMIT, None);
        assert_eq!((ended.code, ended.output.as_slice(), ended.why.as_str()), (Some(0), b"yes\n".as_slice(), ""));
        let ended = run(&["sh", "-c", "exit 7"], LIMIT, None);
        assert_eq!((ended.code, ended.output, ended.why), (Some(7), Vec::new(), String::new()));
    }

    #[test]
    fn a_program_that_reads_nothing_does_not_hang() {
        assert_eq!(run(&["true"], LIMIT, Some(&vec![b'x'; 1 << 20])).code, Some(0));
    }

    /// A file for the numbers of processes, which is removed at the end.
    struct Note(PathBuf);

    impl Note {
        fn new(name: &str) -> Self {
            Self(env::temp_dir().join(format!("nvpm-{name}-{}", std::process::id())))
        }

        fn number(&self) -> Option<i32> {
            fs::read_to_string(&self.0).ok().and_then(|text| text.trim().parse().ok())
        }
    }

    impl Drop for Note {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// Runs a script with longer and longer limits until it has noted a process, because on a busy machine the shell
    /// may not have begun when it is killed. Returns the number of the process.
    fn stopped_late(script: &str, note: &Note) -> i32 {
        for (limit, text) in [(500, "0.5"), (5_000, "5"), (50_000, "50")] {
            let ended = run(&["sh", "-c", script], Duration::from_millis(limit), None);
            let why = format!("took longer than {text} s and was killed");
            assert_eq!((ended.code, ended.output, ended.why), (None, Vec::new(), why));
            if let Some(number) = note.number() {
                return number;
            }
        }
        panic!("the shell has not begun");
    }

    fn is_running(number: i32) -> bool {
        fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
    }

    #[test]
    fn a_program_and_its_children_are_killed() {
        let note = Note::new("children");
        let number = stopped_late(&format!("sleep 300 & echo $! >{}; sleep 300", note.0.display()), &note);
        let begun = Instant::now();
        while is_running(number) {
            assert!(begun.elapsed() < Duration::from_secs(100), "process {number} is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_pipe_that_is_never_closed_ends_with_the_limit() {
        // The process is in another session, so it is not killed, and keeps the pipe open.
        let note = Note::new("pipe");
        let holds = format!("setsid sh -c 'echo $$ >{}; exec sleep 300' & sleep 300", note.0.display());
        let begun = Instant::now();
        let number = stopped_late(&holds, &note);
        assert!(begun.elapsed() < Duration::from_secs(200) && is_running(number));
        kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn a_program_that_cannot_be_killed_is_left() {
        // A process of the kernel's cannot be made for a test, so this child is not killed at all.
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let number = child.id();
        let is_ended = wait(&mut child, Instant::now() + Duration::from_millis(300)).unwrap().is_some();
        let mut warnings = Vec::new();
        let said = stopped(is_ended, number, "/usr/bin/sleep", &mut warnings);
        assert_eq!(said, format!("killed, but does not end: process {number} is left"));
        let warnings = String::from_utf8(warnings).unwrap();
        assert!(warnings.starts_with(&format!("nvpm: sleep (process {number}) does not end, ")), "{warnings}");
        assert!(kill(&mut child, Duration::from_secs(100), false));
        assert_eq!(stopped(true, number, "sleep", &mut Vec::new()), "killed");
    }

    #[test]
    fn few_places_start_programs() {
        // programs.rs waits with a limit, and ends the processes of ask.rs and reader.rs. inputs.rs reads the kernel's
        // log for `nvpm explain` with a limit of its own, and the command `run` becomes the program.
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut found: Vec<String> = glob::glob(&format!("{}/**/*.rs", top.display()))
            .unwrap()
            .map(Result::unwrap)
            .filter(|path| {
                let text = fs::read_to_string(path).unwrap();
                let tested = text.split("#[cfg(test)]").next().unwrap();
                ["Command::new(", ".spawn(", ".exec("].iter().any(|word| tested.contains(word))
            })
            .map(|path| path.strip_prefix(&top).unwrap().display().to_string())
            .collect();
        found.sort();
        let expected = ["explain/inputs.rs", "preload/command.rs", "read/ask.rs", "read/programs.rs", "read/reader.rs"];
        assert_eq!(found, expected);
    }
}
