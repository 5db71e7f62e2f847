// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! How a registration ends, in a word, and which words are expected.

use std::io;

use crate::args::{usage, Args, Opt};
use crate::errno;
use crate::failure::Failure;

pub const OK: &str = "ok";

pub const OPTION: Opt = Opt::optional(
    "expect",
    "RESULT,…",
    "ok (the default) or names of errors, such as ENOMEM: any of them will do",
);

/// Results that are as they should be.
pub struct Expected(Vec<String>);

impl Expected {
    pub fn parse(args: &Args) -> Result<Self, Failure> {
        let text = args.text("expect").unwrap_or(OK);
        let words: Vec<String> = text.split(',').map(str::to_owned).collect();
        match words.iter().find(|word| !is_result(word)) {
            None => Ok(Self(words)),
            Some(word) => Err(usage(format!(
                "--expect: '{word}' is neither {OK} nor the name of an error"
            ))),
        }
    }

    pub fn has(&self, result: &str) -> bool {
        self.0.iter().any(|word| word == result)
    }

    /// Whether `what` ended as expected.
    pub fn check(&self, what: &str, result: &str) -> Result<(), Failure> {
        if self.has(result) {
            return Ok(());
        }
        Err(Failure::Unmet(format!(
            "{what} ended with {result}, expected was {}",
            self.0.join(" or ")
        )))
    }
}

pub fn is_result(word: &str) -> bool {
    word == OK || errno::is_name(word)
}

/// `ok`, or the name of the error.
pub fn result_of<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => OK.to_owned(),
        Err(error) => errno::name_of(error),
    }
}
