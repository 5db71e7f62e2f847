// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads `/etc/infiniband/nv_peer_mem.conf` by the same rules as the service's shell functions in init.d/conf.sh. The
//! file is read as text, and no part of it is ever executed. A test checks that both readers give the same result.
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

/// Returns the value of a setting, which follows its name: without quotes, and without blanks around it and before a
/// comment or a semicolon at its end. None without a sign of equality.
fn value_of(rest: &[u8]) -> Option<Vec<u8>> {
    let rest = rest.split(|letter| *letter == b'#').next().unwrap_or_default();
    let rest: Vec<u8> = rest.iter().copied().filter(|letter| !matches!(letter, b'"' | b'\'')).collect();
    let end = rest.iter().rposition(|letter| !matches!(letter, b' ' | b';')).map_or(0, |last| last + 1);
    Some(stripped(stripped(rest.get(..end)?).strip_prefix(b"=")?).to_vec())
}

/// A setting in bytes, which may be no text.
type Raw = (Vec<u8>, Vec<u8>);

/// Returns the settings of a line without outer blanks.
fn settings_of(line: &[u8]) -> Vec<Raw> {
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
fn raw_settings(data: &[u8]) -> Vec<Raw> {
    let blank = |letter: &u8| if matches!(letter, 1..=9 | 11..=31 | 127) { b' ' } else { *letter };
    let data: Vec<u8> = data.iter().map(blank).collect();
    let data = data.strip_prefix(UTF8_MARK).unwrap_or(&data);
    let mut found = Vec::new();
    for line in data.split(|letter| *letter == b'\n') {
        let line = stripped(line);
        if !line.is_empty() && !line.starts_with(b"#") {
            found.extend(settings_of(line));
        }
    }
    found
}

/// Returns the settings of this machine.
pub fn configuration(machine: &Machine) -> Rc<Vec<Setting>> {
    fn compute(machine: &Machine) -> Vec<Setting> {
        let found = raw_settings(&machine.read(CONF));
        found.iter().map(|(name, value)| (decoded(name), decoded(value))).collect()
    }
    machine.once(compute)
}

/// Returns the last value of a setting; an empty string if it has no value.
pub fn configured(machine: &Machine, name: &str) -> String {
    let found = configuration(machine);
    found.iter().rev().find(|(known, _)| known == name).map_or(String::new(), |(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    use super::*;

    const LINES: [&[u8]; 65] = [
        b"",
        b"ONBOOT=yes",
        b"ONBOOT=no",
        b"MARKER=yes",
        b"marker = Off ;",
        b"export ONBOOT=1",
        b"export  MARKER = 'true' ; # so",
        b"EXPORT ONBOOT=yes",
        b"exportONBOOT=yes",
        b"export",
        b"ONBOOT",
        b"ONBOOT=",
        b"ONBOOT no",
        b"ONBOOT==yes",
        b"ONBOOT=yes=yes",
        b"ONBOOT= = yes",
        b"ONBOOT_X=yes",
        b"ONBOOT1=yes",
        b"ONBOOTX=yes",
        b"ONBOOT-X=yes",
        b"ONBOOT =yes no",
        b"# ONBOOT=yes",
        b"#",
        b" # x",
        b"ONBOOT#=yes",
        b"ONBOOT=yes#no",
        b"ONBOOT=yes # a # b",
        b"ONBOOT=ye\0s",
        b"\0ONBOOT=yes",
        b"ONBOOT\0=yes",
        b"ONBOOT=yes\0",
        b"ONBOOT=$(id)",
        b"ONBOOT=`id`",
        b"ONBOOT=yes; id",
        b". /etc/passwd",
        &[b'x'; 79],
        &[b'y'; 80],
        &[b'z'; 81],
        "ääääääääääääääääääääääääääääääääääääääääääääääääää".as_bytes(),
        b"ONBOOT=\xff",
        b"\xffONBOOT=no",
        b"ONBOOT=n\x7fo",
        b"\x1bONBOOT=enabled",
        b"\"ONBOOT\"=yes",
        b"ONBOOT=\"y\"\"es\"",
        b"ONBOOT=' ye s '",
        b"ONBOOT=disabled;;  ;",
        b"\xef\xbb\xbfONBOOT=yes",
        b"\xef\xbb\xbf",
        b" \xef\xbb\xbfONBOOT=yes",
        b"ONBOOT=y\\",
        b"ONBOOT = yes",
        b"ONBOOT\t=\tno\r",
        b"ONBOOT=yes\x0b",
        b"ONBOOT;=yes",
        b"ONBOOT yes=no",
        b"ONBOOT=yes\xc2\xa0",
        b"ONBOOT=\xe3\x80\x80yes",
        b"ONBOOT=yes\x1c",
        b"ONBOOT=yes\x85",
        b"MARKER=YES",
        b"MARKER=0",
        b"MARKER=t",
        b"export\tMARKER=yes",
        b"\tONBOOT=on",
    ];
    const PARTS: [&[u8]; 42] = [
        b"ONBOOT",
        b"MARKER",
        b"onboot",
        b"Marker",
        b"export ",
        b"export",
        b"=",
        b" = ",
        b"yes",
        b"no",
        b"Y",
        b"n",
        b"on",
        b"OFF",
        b"1",
        b"0",
        b"true",
        b"False",
        b"enabled",
        b"disabled",
        b" ",
        b"\t",
        b"\r",
        b"\0",
        b"#",
        b" # ",
        b"'",
        b"\"",
        b";",
        b"_",
        b"X",
        b"\n",
        b"\n\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\x1b[2J",
        b"\x7f",
        b"$(id)",
        b"\\",
        b"?",
        b"yes no",
        b"\xc2\xa0",
    ];

    /// A directory for the configuration file that the shell reads.
    struct Root(PathBuf);

    impl Root {
        fn new(name: &str) -> Self {
            let root = Self(std::env::temp_dir().join(format!("nvpm-conf-{name}-{}", std::process::id())));
            fs::create_dir_all(root.file().parent().unwrap()).unwrap();
            root
        }

        fn file(&self) -> PathBuf {
            self.0.join(CONF.trim_start_matches('/'))
        }

        /// Returns the settings that the shell functions of the service print.
        fn by_shell(&self, data: &[u8]) -> Vec<Raw> {
            fs::write(self.file(), data).unwrap();
            let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../init.d");
            let mut command = Command::new("dash");
            command.args(["-c", ". ./conf.sh; conf_lines"]).current_dir(scripts).env("NVPM_SYSROOT", &self.0);
            let ended = command.output().unwrap();
            assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
            let lines = ended.stdout.split(|letter| *letter == b'\n').filter(|line| !line.is_empty());
            let setting = |line: &[u8]| {
                let at = line.iter().position(|letter| *letter == b' ').unwrap();
                (line[..at].to_vec(), line[at + 1..].to_vec())
            };
            lines.map(setting).collect()
        }
    }

    impl Drop for Root {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn each_line_is_read_as_by_the_shell() {
        let root = Root::new("line");
        for line in LINES {
            // The line without its line break, and behind another line.
            for data in [line.to_vec(), [b"MARKER=no\n", line, b"\n"].concat()] {
                assert_eq!(raw_settings(&data), root.by_shell(&data), "{}", data.escape_ascii());
            }
        }
    }

    #[test]
    fn all_lines_are_read_as_by_the_shell() {
        let root = Root::new("all");
        let data = LINES.join(&b'\n');
        let found = raw_settings(&data);
        assert_eq!(found, root.by_shell(&data));
        let values: BTreeSet<&[u8]> =
            found.iter().filter(|(name, _)| name != REFUSED.as_bytes()).map(|(_, value)| value.as_slice()).collect();
        assert_eq!(values, BTreeSet::from([b"yes".as_slice(), b"no", b"unclear"]));
    }

    /// The files are the same in each run.
    #[test]
    fn any_file_is_read_as_by_the_shell() {
        let root = Root::new("any");
        let parts = || select(PARTS.to_vec());
        let files = prop_oneof![
            vec(parts(), 0..30).prop_map(|parts| parts.concat()),
            vec(prop_oneof![select(LINES.to_vec()), parts()], 0..12).prop_map(|lines| lines.join(&b'\n')),
            vec(any::<u8>(), 0..200),
        ];
        let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let tested = runner.run(&files, |data| {
            prop_assert_eq!(raw_settings(&data), root.by_shell(&data), "{}", data.escape_ascii());
            Ok(())
        });
        tested.unwrap();
    }
}
