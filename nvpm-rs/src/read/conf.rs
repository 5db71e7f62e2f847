// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads `/etc/infiniband/nv_peer_mem.conf` by the same rules as the service's shell functions in init.d/conf.sh. The file is
//! read as text, and no part of it is ever executed. tests/nvpm/test_conf.py checks that both readers give the same result.
use std::rc::Rc;

use crate::read::machine::{CONF, Machine, decoded};

/// The name of a line that is not understood.
pub const REFUSED: &str = "?";

const NAMES: [&[u8]; 2] = [b"ONBOOT", b"MARKER"];
const YES: [&[u8]; 6] = [b"YES", b"Y", b"ON", b"1", b"TRUE", b"ENABLED"];
const NO: [&[u8]; 6] = [b"NO", b"N", b"OFF", b"0", b"FALSE", b"DISABLED"];
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";
const LONGEST: usize = 80;

/// A name of a setting with "yes", "no" or "unclear", or "?" with a line that is not understood.
pub type Setting = (String, String);

/// Returns a line without the blanks at its ends.
fn stripped(line: &[u8]) -> &[u8] {
    let first = line.iter().position(|letter| *letter != b' ').unwrap_or(line.len());
    let last = line.iter().rposition(|letter| *letter != b' ').map_or(first, |last| last + 1);
    line.get(first..last).unwrap_or_default()
}

/// Returns the value of a setting, which follows its name: without quotes, and without blanks around it and before a comment
/// or a semicolon at its end. None without a sign of equality.
fn value_of(rest: &[u8]) -> Option<Vec<u8>> {
    let rest = rest.split(|letter| *letter == b'#').next().unwrap_or_default();
    let rest: Vec<u8> = rest.iter().copied().filter(|letter| !matches!(letter, b'"' | b'\'')).collect();
    let end = rest.iter().rposition(|letter| !matches!(letter, b' ' | b';')).map_or(0, |last| last + 1);
    Some(stripped(stripped(rest.get(..end)?).strip_prefix(b"=")?).to_vec())
}

/// Returns the settings of a line without outer blanks.
fn settings_of(line: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let refused = (REFUSED.into(), line.get(..LONGEST).unwrap_or(line).to_vec());
    let said = line.strip_prefix(b"export ").map_or(line, stripped).to_ascii_uppercase();
    let ends = |rest: &&[u8]| !rest.first().is_some_and(|letter| letter.is_ascii_alphanumeric() || *letter == b'_');
    let known = NAMES.iter().find_map(|name| Some((*name, said.strip_prefix(*name).filter(ends)?)));
    let Some((name, rest)) = known else { return vec![refused] };
    let value = value_of(rest);
    for (word, spellings) in [("yes", YES), ("no", NO)] {
        if value.as_ref().is_some_and(|value| spellings.contains(&value.as_slice())) {
            return vec![(name.into(), word.into())];
        }
    }
    vec![(name.into(), "unclear".into()), refused]
}

/// Returns the settings of a whole file. Control characters, tabs and the line ends of Windows count as blanks.
pub fn settings(data: &[u8]) -> Vec<Setting> {
    let blank = |letter: &u8| if matches!(letter, 1..=9 | 11..=31 | 127) { b' ' } else { *letter };
    let data: Vec<u8> = data.iter().map(blank).collect();
    let data = data.strip_prefix(UTF8_MARK).unwrap_or(&data);
    let mut found = Vec::new();
    for line in data.split(|letter| *letter == b'\n') {
        let line = stripped(line);
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
