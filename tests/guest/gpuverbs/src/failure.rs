// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Why a command ends early, and the exit status that says so.

use std::fmt;
use std::io;

use crate::errno;

#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// The machine lacks something that no command can do without.
    Environment(String),
    /// Something went differently than it should have.
    Unmet(String),
}

impl Failure {
    /// For `map_err`: `what` failed with the error that follows.
    pub fn unmet(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Unmet(format!("{what}: {}", errno::describe(&error)))
    }

    /// The same, where it is the machine that is not fit for the lab.
    pub fn environment(what: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Environment(format!("{what}: {}", errno::describe(&error)))
    }

    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Unmet(_) => 1,
            Self::Usage(_) => 2,
            Self::Environment(_) => 3,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Environment(text) | Self::Unmet(text) => f.write_str(text),
        }
    }
}
