// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Keeps the state that `serve` has reached, for the other commands, and prints each change once.
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
    say: Box<dyn FnMut(&str)>,
}

impl Report {
    pub fn new(directory: &Path, say: impl FnMut(&str) + 'static) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self { directory: directory.to_owned(), told: None, say: Box::new(say) })
    }

    pub fn say(&mut self, text: &str) {
        (self.say)(text);
    }

    /// Writes the state, and prints it if the state or the reason is new. If the disk is full, the file keeps the state
    /// from before, which the probe finds stale after a minute.
    pub fn write(&mut self, state: State, reason: &str, name: &str, now: Duration) {
        let told = (state, reason.to_owned());
        if self.told.as_ref() != Some(&told) {
            self.say(&format!("{}: {reason}", state.name()));
            self.told = Some(told);
        }
        let status = json!({"state": state.name(), "reason": reason, "name": name, "at": now.as_secs()});
        let new = self.directory.join("status.new");
        let _ = fs::write(&new, status.to_string()).and_then(|()| fs::rename(&new, file(&self.directory)));
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
}
