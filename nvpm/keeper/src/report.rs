// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Keeps the state that `serve` has reached, for the other commands, and prints each change once. daemonset.yaml shows
//! the directory on the node, so that nvpm and the service there know that a pod keeps the module.
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::decide::State;

pub const DIRECTORY: &str = "/run/nv-peer-mem";
/// `serve` writes its state every second, but a build may keep it for minutes.
const STALE: Duration = Duration::from_secs(60);

/// Returns the time of the kernel's clock, which no person sets.
pub fn now() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap_or_default()
}

/// The state of `serve`. `at` is the time of the kernel's clock.
#[derive(Debug)]
pub struct Status {
    pub state: State,
    pub reason: String,
    pub at: Duration,
}

impl Status {
    pub fn is_stale(&self, now: Duration) -> bool {
        now.saturating_sub(self.at) > STALE
    }
}

pub fn say(text: &str) {
    // If the log cannot be written, nobody can be told.
    let _ = writeln!(io::stdout(), "nv-peer-mem: {text}");
}

pub struct Report {
    directory: PathBuf,
    told: Option<(State, String)>,
    /// The time of the kernel's clock when the state was reached.
    since: Duration,
    say: Box<dyn FnMut(&str)>,
}

impl Report {
    pub fn new(directory: &Path, say: impl FnMut(&str) + 'static) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        // The wish of an earlier container ends with it.
        let _ = fs::remove_file(asked(directory));
        Ok(Self { directory: directory.to_owned(), told: None, since: Duration::ZERO, say: Box::new(say) })
    }

    pub fn say(&mut self, text: &str) {
        (self.say)(text);
    }

    /// Writes the state, and prints it if the state or the reason is new. If the disk is full, the file keeps the state
    /// from before, which the probe finds stale after a minute.
    pub fn write(&mut self, state: State, reason: &str, name: &str, now: Duration) {
        let told = (state, reason.to_owned());
        if self.told.as_ref().is_none_or(|(before, _)| *before != state) {
            self.since = now;
        }
        if self.told.as_ref() != Some(&told) {
            self.say(&format!("{}: {reason}", state.name()));
            self.told = Some(told);
        }
        let (at, since) = (now.as_secs(), self.since.as_secs());
        let status = json!({"state": state.name(), "reason": reason, "name": name, "at": at, "since": since});
        let new = self.directory.join("status.new");
        let _ = fs::write(&new, status.to_string()).and_then(|()| fs::rename(&new, file(&self.directory)));
    }

    /// Removes the state at the end of `serve`, so that nobody on the node counts on this pod.
    pub fn end(&self) {
        // A state that stays is old after a minute.
        let _ = fs::remove_file(file(&self.directory));
    }

    /// Returns whether somebody has asked that the module stays unloaded.
    pub fn was_asked(&self) -> bool {
        asked(&self.directory).exists()
    }
}

fn file(directory: &Path) -> PathBuf {
    directory.join("status.json")
}

/// Returns the state from the file of `serve`; None if there is no file.
pub fn read(directory: &Path) -> Option<Status> {
    let found: Value = serde_json::from_slice(&fs::read(file(directory)).ok()?).ok()?;
    Some(Status {
        state: State::of(found.get("state")?.as_str()?)?,
        reason: found.get("reason")?.as_str()?.to_owned(),
        at: Duration::from_secs(found.get("at")?.as_u64()?),
    })
}

/// Returns the file that exists if somebody has asked that the module stays unloaded.
fn asked(directory: &Path) -> PathBuf {
    directory.join("asked-to-unload")
}

/// Asks that the module stays unloaded.
pub fn ask(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    fs::write(asked(directory), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Directory;

    #[test]
    fn a_strange_file_is_no_state() {
        let directory = Directory::new();
        for text in ["", "[]", "{}", r#"{"state": "x", "reason": "y", "at": 1}"#, r#"{"state": "ready", "at": 1}"#] {
            fs::write(file(&directory), text).unwrap();
            assert!(read(&directory).is_none(), "{text}");
        }
        Report::new(&directory, |_| {}).unwrap().write(State::Held, "why", "nv_peer_mem", Duration::from_millis(7500));
        let status = read(&directory).unwrap();
        assert_eq!((status.state, status.reason.as_str(), status.at.as_secs()), (State::Held, "why", 7));
    }

    #[test]
    fn a_state_has_the_time_when_it_was_reached() {
        let directory = Directory::new();
        let mut report = Report::new(&directory, |_| {}).unwrap();
        let mut since = |state, reason: &str, now| {
            report.write(state, reason, "nv_peer_mem", Duration::from_secs(now));
            let found: Value = serde_json::from_slice(&fs::read(file(&directory)).unwrap()).unwrap();
            (found["name"].as_str().unwrap().to_owned(), found["since"].as_u64().unwrap())
        };
        for (state, reason, now, expected) in [
            (State::Waiting, "for the driver", 5, 5),
            (State::Waiting, "for the core", 9, 5),
            (State::Ready, "", 12, 12),
            (State::Ready, "", 13, 12),
            (State::Waiting, "for the core", 20, 20),
        ] {
            assert_eq!(since(state, reason, now), ("nv_peer_mem".to_owned(), expected), "{now}");
        }
        report.end();
        assert!(read(&directory).is_none());
    }

    #[test]
    fn the_wish_of_an_earlier_container_ends_with_it() {
        let directory = Directory::new();
        let report = Report::new(&directory, |_| {}).unwrap();
        ask(&directory).unwrap();
        assert!(report.was_asked());
        assert!(!Report::new(&directory, |_| {}).unwrap().was_asked());
    }
}
