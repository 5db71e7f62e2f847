// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The reasons why a pair did not pass, and why nothing can be tested.
use nvpm_foreign::{cuda, verbs};

/// A pair of GPU and RDMA device did not pass. The text is the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl From<verbs::Error> for Failure {
    fn from(error: verbs::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<cuda::Error> for Failure {
    fn from(error: cuda::Error) -> Self {
        Self(error.to_string())
    }
}

/// A thing that every pair needs is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absent {
    pub what: String,
    /// What the user can do.
    pub advice: String,
}

impl Absent {
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), advice: advice.into() }
    }
}
