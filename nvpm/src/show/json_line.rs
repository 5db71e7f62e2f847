// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Writes JSON on one line, with a blank after each comma and colon, so that people can read it too.
use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        out.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, is_first: bool) -> io::Result<()> {
        out.write_all(if is_first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

/// Returns a value as JSON on one line.
pub fn quoted(value: &impl Serialize) -> String {
    let mut found = Vec::new();
    // Neither a text nor a map with texts as keys can fail, and memory takes all.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut found, Spaced));
    String::from_utf8_lossy(&found).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_follow_commas_and_colons() {
        let value = serde_json::json!({"a": [1, "é\"\n"], "b": {}, "c": null});
        assert_eq!(quoted(&value), r#"{"a": [1, "é\"\n"], "b": {}, "c": null}"#);
    }
}
