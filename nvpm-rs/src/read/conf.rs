// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads `/etc/infiniband/nv_peer_mem.conf` by the same rules as the service's shell functions in init.d/conf.sh. The file is
//! read as text, and no part of it is ever executed. tests/nvpm/test_conf.py checks that both readers give the same result.
use std::rc::Rc;
use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::read::machine::{CONF, Machine, decoded};

/// The name of a line that is not understood.
pub const REFUSED: &str = "?";

const YES: [&[u8]; 6] = [b"YES", b"Y", b"ON", b"1", b"TRUE", b"ENABLED"];
const NO: [&[u8]; 6] = [b"NO", b"N", b"OFF", b"0", b"FALSE", b"DISABLED"];
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const LONGEST: usize = 80;

/// A name of a setting with "yes", "no" or "unclear", or "?" with a line that is not understood.
pub type Setting = (String, String);

static EXPORT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("(?-u)^export +").ok());
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("(?-u)^(?:ONBOOT|MARKER)").ok());
static COMMENT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("(?s-u) *#.*").ok());
static EQUALS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("(?-u) *= *").ok());

fn replaced(pattern: &LazyLock<Option<Regex>>, text: &[u8], by: &[u8]) -> Vec<u8> {
    pattern.as_ref().map_or(text.to_vec(), |pattern| pattern.replace(text, regex::bytes::NoExpand(by)).into_owned())
}

/// Returns the settings of a line without outer blanks.
fn settings_of(line: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let refused = (REFUSED.into(), line.get(..LONGEST).unwrap_or(line).to_vec());
    let said = replaced(&EXPORT, line, b"").to_ascii_uppercase();
    let name = NAME.as_ref().and_then(|pattern| pattern.find(&said)).map(|found| found.as_bytes().to_vec());
    let ends =
        |name: &Vec<u8>| said.get(name.len()).is_none_or(|letter| !letter.is_ascii_alphanumeric() && *letter != b'_');
    let Some(name) = name.filter(ends) else { return vec![refused] };
    let mut said = replaced(&COMMENT, &said, b"");
    said.retain(|letter| !matches!(letter, b'"' | b'\''));
    while matches!(said.last(), Some(b' ' | b';')) {
        said.pop();
    }
    let said = replaced(&EQUALS, &said, b"=");
    let value = said.get(name.len()..).and_then(|rest| rest.strip_prefix(b"="));
    for (word, spellings) in [("yes", YES), ("no", NO)] {
        if value.is_some_and(|value| spellings.contains(&value)) {
            return vec![(name, word.into())];
        }
    }
    vec![(name, "unclear".into()), refused]
}

/// Returns the settings of a whole file. Control characters, tabs and the line ends of Windows count as blanks.
pub fn settings(data: &[u8]) -> Vec<Setting> {
    let blank = |letter: &u8| if matches!(letter, 1..=9 | 11..=31 | 127) { b' ' } else { *letter };
    let data: Vec<u8> = data.iter().map(blank).collect();
    let data = data.strip_prefix(UTF8_MARK).unwrap_or(&data);
    let mut found = Vec::new();
    for line in data.split(|letter| *letter == b'\n') {
        let first = line.iter().position(|letter| *letter != b' ').unwrap_or(line.len());
        let last = line.iter().rposition(|letter| *letter != b' ').map_or(first, |last| last + 1);
        let line = line.get(first..last).unwrap_or_default();
        if !line.is_empty() && !line.starts_with(b"#") {
            found.extend(settings_of(line).iter().map(|(name, value)| (decoded(name), decoded(value))));
        }
    }
    found
}

/// Returns the settings of this machine.
pub fn configuration(machine: &Machine) -> Rc<Vec<Setting>> {
    fn compute(machine: &Machine) -> Vec<Setting> {
        settings(&machine.read(CONF))
    }
    machine.once(compute)
}

/// Returns the last value of a setting; an empty string if it has no value.
pub fn configured(machine: &Machine, name: &str) -> String {
    let found = configuration(machine);
    found.iter().rev().find(|(known, _)| known == name).map_or(String::new(), |(_, value)| value.clone())
}
