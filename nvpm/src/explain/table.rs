// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The tables that the build makes of the files in data. Their texts are in Markdown, with backticks and links only.
use crate::explain::errno_names::Errors;

/// How sure a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// Other causes are as likely. Such a cause is no answer.
    Possible,
    /// Other causes are rare.
    Probable,
    /// The line itself says the cause, or a public thread confirms it.
    Certain,
}

/// The meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Cause,
    /// The message follows from a failure that another message explains.
    Follows,
    /// The message looks like a failure, and nothing is wrong, unless one of its cases holds.
    Fine,
    /// The message is a routine one, which looks like a failure or names a capability. It says nothing about success.
    Notice,
    /// The message is fine alone, and another cause may name the message as its reason.
    Reason,
}

/// The files of data may use each of these.
#[allow(dead_code)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    UpTo,
    From,
    Before,
    After,
    Same,
}

#[derive(Debug)]
pub enum Condition {
    /// The line has an error from this list.
    Errors(Errors),
    /// The line contains this text, which may have placeholders.
    Line(&'static str),
    /// The name at a placeholder is of this kind.
    Named(&'static str, &'static str),
    /// The log has this fact.
    Fact(usize),
    /// The log has this version of a program.
    Version(usize, Sign, &'static str),
    /// The log says that this variable is set, or is set to this value.
    Variable(&'static str, &'static str),
}

#[allow(clippy::struct_excessive_bools)]
#[derive(Debug)]
pub struct Cause {
    pub key: &'static str,
    pub name: &'static str,
    pub says: &'static str,
    pub todo: &'static str,
    /// Commands, one in a line. The first one whose values stand in the log is printed.
    pub first: &'static str,
    /// The command for a log that was written in a container.
    pub pod: &'static str,
    /// The section and the line of `nvpm status` that show the cause.
    pub status: &'static str,
    /// The difference between this cause and other causes that print the same message.
    pub tell: &'static str,
    /// The action on the machine that asks, with the words of facts/advice.rs in braces.
    pub here: &'static str,
    /// Loading or setting up `nv_peer_mem` helps.
    pub ours: bool,
    /// `nv_peer_mem` itself can be what fails.
    pub subject: bool,
    /// The advice of this node's own fact takes the place of `todo`.
    pub of_node: bool,
    /// Transfers fail in this way after something else has failed.
    pub late: bool,
    /// A log with one of these facts cannot have the cause.
    pub never: &'static [usize],
    /// In a log with one of these facts, the other cause takes the place of this one.
    pub instead: &'static [(usize, usize)],
    /// The cause only says what is missing, and these are the causes by which it can be missing.
    pub because: &'static [usize],
}

#[derive(Debug)]
pub struct Case {
    pub cause: usize,
    pub sure: Sure,
    pub when: &'static [Condition],
    pub unless: &'static [Condition],
    /// These four take the place of the cause's.
    pub says: &'static str,
    pub todo: &'static str,
    pub here: &'static str,
    pub first: &'static str,
}

#[derive(Debug)]
pub struct Message {
    pub text: &'static str,
    pub section: usize,
    /// The message is one of any program, and counts only if no message of a program explains the line.
    pub general: bool,
    pub kind: Meaning,
    pub from: &'static str,
    pub note: &'static str,
    pub todo: &'static str,
    /// The message says nothing if one of these holds.
    pub never: &'static [Condition],
    /// The first case that holds, and is more than possible, wins.
    pub cases: &'static [Case],
}

pub struct Fact {
    pub name: &'static str,
    pub words: &'static str,
    pub is_version: bool,
    /// Each choice has the facts that must hold, and the facts that must not.
    pub derived: &'static [(&'static [usize], &'static [usize])],
}

/// An expression that shows a fact.
pub struct Test {
    pub fact: usize,
    pub pattern: &'static str,
    pub but: &'static str,
}

pub struct Kind {
    pub of: &'static str,
    pub name: &'static str,
    pub globs: &'static [&'static str],
}

/// The owner of a fixed word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Message(usize),
    Test(usize),
}

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

pub fn cause(place: usize) -> &'static Cause {
    // The build has made the places.
    CAUSES.get(place).unwrap_or(&NO_CAUSE)
}

static NO_CAUSE: Cause = Cause {
    key: "",
    name: "",
    says: "",
    todo: "",
    first: "",
    pod: "",
    status: "",
    tell: "",
    here: "",
    ours: false,
    subject: false,
    of_node: false,
    late: false,
    never: &[],
    instead: &[],
    because: &[],
};

pub fn message(place: usize) -> &'static Message {
    MESSAGES.get(place).unwrap_or(&NO_MESSAGE)
}

static NO_MESSAGE: Message = Message {
    text: "",
    section: 0,
    general: false,
    kind: Meaning::Follows,
    from: "",
    note: "",
    todo: "",
    never: &[],
    cases: &[],
};

/// Returns the place of a fact.
pub fn fact_named(name: &str) -> usize {
    FACTS.iter().position(|fact| fact.name == name).unwrap_or(usize::MAX)
}
