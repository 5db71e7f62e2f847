// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads files of /proc and /sys in another process, and waits for each file only for a limited time.
//!
//! The kernel answers many of these files under a lock of a driver, of the firmware, or of another process. If the
//! holder of the lock hangs, the process that reads the file waits for ever, and not even SIGKILL ends it. Users run
//! nvpm in exactly this state. So nvpm leaves such a process behind, and goes on without the file.
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use indexmap::IndexMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::read::areas::area_of;
use crate::read::gpu_links;
use crate::read::left_behind::left_behind;
use crate::read::programs;
use crate::read::reading_child::{Answer, Request, WORD, directly};

/// The time for one file, and for all files together. If all time is used up, each further file still gets LEAST,
/// because most files answer at once.
const ONE_FILE: Duration = Duration::from_secs(3);
const ALL_FILES: Duration = Duration::from_secs(6);
const LEAST: Duration = Duration::from_millis(250);
/// The time for which nvpm waits for the end of a process that it has killed.
const GRACE: Duration = Duration::from_millis(100);

/// A file that does not answer, and the time at which a process began to wait for it, in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    pub area: String,
    pub path: String,
    pub since: i64,
}

impl Silence {
    pub fn value(&self) -> String {
        format!("does not answer ({}, since {})", self.path, nvpm_foreign::clock::local_time(self.since))
    }
}

/// The reason why a file was not read.
#[derive(Debug)]
pub enum Unread {
    /// The file has not answered in time, or was not asked because of an earlier silence.
    Silent(String),
    Error(io::Error),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

impl std::fmt::Display for Unread {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silent(why) => to.write_str(why),
            Self::Error(error) => to.write_str(&reason(error)),
        }
    }
}

/// Returns the kernel's text for an error, without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.as_str(), |(words, _)| words).to_owned()
}

/// The reading process and the pipes to it.
struct Process {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Process {
    /// Starts this program again, because a fork without exec is not safe in Rust. The path leads to the running
    /// program, even if an update has replaced its file.
    fn start() -> io::Result<Self> {
        let mut child = Command::new("/proc/self/exe")
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(requests), Some(answers)) => Ok(Self { child, requests, answers }),
            _ => Err(io::Error::other("it has no pipes")),
        }
    }

    /// Returns the bytes of a file. The limit is for each part of the answer, because a large file may take longer.
    fn ask(&mut self, path: &str, size: Option<u64>, limit: Duration) -> Result<Answer, Unread> {
        self.requests.write_all(&Request { size, path: path.into() }.encoded())?;
        let head = self.exactly(Answer::HEAD, limit)?;
        let (errno, length) = Answer::of_head(&head);
        let data = self.exactly(length, limit)?;
        Ok(Answer { errno, data })
    }

    fn exactly(&mut self, length: usize, limit: Duration) -> Result<Vec<u8>, Unread> {
        let deadline = Instant::now() + limit;
        let mut said = Vec::new();
        let mut buffer = vec![0; length.min(1 << 16)];
        while said.len() < length {
            if !can_be_read(&self.answers, deadline.saturating_duration_since(Instant::now()))? {
                return Err(Unread::Silent("it does not answer".into()));
            }
            let most = (length - said.len()).min(buffer.len());
            let room = buffer.get_mut(..most).unwrap_or_default();
            let count = self.answers.read(room)?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
            }
            said.extend_from_slice(room.get(..count).unwrap_or_default());
        }
        Ok(said)
    }

    /// Kills the process. A process that waits in the kernel for a file does not end at once, and is left behind. It
    /// ends as soon as the kernel has answered.
    fn end(mut self) {
        programs::kill(&mut self.child, GRACE, false);
    }
}

/// Returns whether a pipe has something to read, or has ended, within a time.
pub fn can_be_read(pipe: &impl std::os::fd::AsFd, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let time = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(pipe, PollFlags::IN)], time.as_ref()) {
            Err(Errno::INTR) => {}
            found => return Ok(found? > 0),
        }
    }
}

/// Reads files, and remembers which parts of the kernel do not answer.
pub struct Reader {
    state: RefCell<State>,
}

struct State {
    left: Duration,
    silences: IndexMap<String, Silence>,
    /// Whether the processes that an earlier nvpm has left behind are known.
    has_looked: bool,
    /// No process can be started.
    is_alone: bool,
    process: Option<Process>,
}

impl Reader {
    pub fn new() -> Self {
        let (left, silences) = (ALL_FILES, IndexMap::new());
        // A program that tests single functions is not nvpm, and cannot be started as the reading process.
        let is_alone = cfg!(test);
        Self { state: RefCell::new(State { left, silences, has_looked: false, is_alone, process: None }) }
    }

    /// Returns the bytes of the file PATH below ROOT, or its first SIZE bytes.
    pub fn read(&self, root: &str, path: &str, size: Option<u64>) -> Result<Vec<u8>, Unread> {
        let state = &mut *self.state.borrow_mut();
        let area = area_of(path);
        if area != path && !state.has_looked {
            state.has_looked = true;
            state.silences.extend(left_behind(root));
        }
        if state.silences.contains_key(&area) {
            return Err(Unread::Silent(format!("not read: {area} does not answer")));
        }
        let (began, since) = (Instant::now(), seconds_since_1970());
        let found = state.answer(&format!("{root}{path}"), size);
        if matches!(found, Err(Unread::Silent(_))) {
            state.silences.insert(area.clone(), Silence { area, path: path.to_owned(), since });
        }
        state.left = state.left.saturating_sub(began.elapsed());
        found
    }

    /// Returns what does not answer.
    pub fn silences(&self) -> Vec<Silence> {
        self.state.borrow().silences.values().cloned().collect()
    }

    /// Ends the reading process. A later request starts another process.
    pub fn stop(&self) {
        self.state.borrow_mut().stop();
    }
}

impl State {
    /// Returns the bytes of a file. If the reading process was killed by somebody, asks another process. If no process
    /// can be started, because this user has as many processes as allowed or memory is short, reads without a
    /// limit. But NVML is never loaded into this process: NVML may have ended the reading process, and would end nvpm.
    fn answer(&mut self, path: &str, size: Option<u64>) -> Result<Vec<u8>, Unread> {
        let mut failure = io::Error::from(Errno::AGAIN);
        for _ in 0..2 {
            let limit = ONE_FILE.min(self.left).max(LEAST);
            let Some(process) = self.process() else { break };
            match process.ask(path, size, limit) {
                Ok(answer) => return answer.contents().map_err(Unread::Error),
                Err(Unread::Silent(why)) => {
                    // The rest of this answer would be taken for the next answer.
                    self.stop();
                    return Err(Unread::Silent(why));
                }
                Err(Unread::Error(error)) => {
                    self.stop();
                    failure = error;
                }
            }
        }
        if gpu_links::parsed(path.as_ref()).is_some() {
            return Err(Unread::Error(failure));
        }
        directly(path.as_ref(), size).map_err(Unread::Error)
    }

    fn process(&mut self) -> Option<&mut Process> {
        if self.process.is_none() && !self.is_alone {
            self.process = Process::start().ok();
            self.is_alone = self.process.is_none();
        }
        self.process.as_mut()
    }

    fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end();
        }
    }
}

// The reading process must not outlive nvpm, because the process keeps its root directory from being unmounted.
impl Drop for Reader {
    fn drop(&mut self) {
        self.stop();
    }
}

fn seconds_since_1970() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a reader whose reading process is a program that has ended, and that can start no other.
    fn after_the_end() -> Reader {
        let mut child = Command::new("false").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (requests, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        child.wait().unwrap();
        let reader = Reader::new();
        reader.state.borrow_mut().process = Some(Process { child, requests, answers });
        reader
    }

    #[test]
    fn nvml_is_not_loaded_into_nvpm() {
        let error = |reader: Reader| match reader.read("", "/nvml/0000:03:00.0", None) {
            Err(Unread::Error(error)) => error.kind(),
            _ => io::ErrorKind::Other,
        };
        assert_eq!(error(after_the_end()), io::ErrorKind::BrokenPipe);
        assert_eq!(error(Reader::new()), io::ErrorKind::WouldBlock);
        // Files are read nevertheless.
        assert!(after_the_end().read("", "/proc/self/stat", None).is_ok_and(|data| !data.is_empty()));
    }
}
