// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Commands for the service's script and the packages.
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rustix::fs::{Access, access};

use crate::commands::LOST;
use crate::explain::for_module;
use crate::facts::advice::Advice;
use crate::read::machine::{MODULE, Machine};
use crate::read::place::kernel_of_another;
use crate::read::{programs, regions};
use crate::show::out::say;

/// `EX_TEMPFAIL` of sysexits.h: try again later.
const IN_USE: u8 = 75;
/// The service must stop within this time, because a package manager waits.
const STOP_LIMIT: Duration = Duration::from_secs(120);

const NOT_OURS: &str =
    "nv_peer_mem: the kernel belongs to another system (chroot or container): its module is left alone.";
const STAYS: &str = "nv_peer_mem: the module stays loaded until the next boot.";

fn text(word: &OsString) -> String {
    word.to_string_lossy().into_owned()
}

/// `advise MODULE [TEXT]...` prints advice about MODULE. TEXT is the text that modprobe and the kernel have printed
/// about MODULE. Without TEXT, the advice is for a module that is not installed.
pub fn advise(words: &[OsString]) -> ExitCode {
    let machine = Machine::here(false);
    let advice = match words {
        [module, texts @ ..] if !texts.is_empty() => {
            let said: Vec<String> = texts.iter().map(text).collect();
            for_module::advice(&machine, &text(module), &said.join("\n"))
        }
        _ => Advice::new(&machine).word("install").unwrap_or_default(),
    };
    say([advice], 0, LOST)
}

/// Prints which processes keep the module from being unloaded.
pub fn holders(_: &[OsString]) -> ExitCode {
    say(regions::holders(&Machine::here(false)), 0, LOST)
}

/// `leave SCRIPT` stops the service for a package that is being removed. SCRIPT is the service's script. The script is
/// a configuration file, so it may be missing, or may come from an earlier version. The exit code is `IN_USE` while
/// programs have GPU memory registered, because only such programs may keep a package from being removed. In all other
/// cases the exit code is 0.
pub fn leave(words: &[OsString]) -> ExitCode {
    let Some(script) = words.first() else { return ExitCode::SUCCESS };
    let machine = Machine::here(false);
    if kernel_of_another(&machine) {
        return say([NOT_OURS], 0, LOST);
    }
    if access(Path::new(script), Access::EXEC_OK).is_err() {
        return ExitCode::SUCCESS;
    }
    let (left, message) = stopped(&machine, &text(script), STOP_LIMIT);
    if !message.is_empty() {
        // If this cannot be written, the exit code still says the rest.
        let _ = writeln!(io::stderr(), "{message}");
    }
    match left {
        Left::Nothing => ExitCode::SUCCESS,
        Left::Unused => say([STAYS], 0, LOST),
        Left::InUse => ExitCode::from(IN_USE),
    }
}

/// The module after the service was stopped.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    Unused,
    InUse,
}

/// Stops the service by its script. Returns also a message if the script did not end by itself, or was not started.
fn stopped(machine: &Machine, script: &str, limit: Duration) -> (Left, String) {
    let stopped = programs::run_aloud(&[script, "stop"], limit);
    let message =
        if stopped.why.is_empty() { String::new() } else { format!("nv_peer_mem: {script} stop {}", stopped.why) };
    if stopped.code == Some(0) || !machine.loaded(MODULE) {
        return (Left::Nothing, message);
    }
    let users = machine.text("/sys/module/nv_peer_mem/refcnt");
    (if users.is_empty() || users == "0" { Left::Unused } else { Left::InUse }, message)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::made::Made;

    /// Makes a service's script, and a machine whose module has a number of users.
    fn service(users: &str, script: &str) -> (Made, String) {
        let made = Made::new();
        made.change([format!("/sys/module/nv_peer_mem/refcnt = {users}"), format!("/script := #!/bin/sh\n{script}\n")]);
        let path = format!("{}/script", made.read().root);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (made, path)
    }

    #[test]
    fn a_package_can_be_removed_though_its_service_does_not_stop() {
        let (made, script) = service("0", "echo stopping >$0.noted; exec sleep 300");
        // On a busy machine, the shell may not have begun when it is killed.
        for (limit, text) in [(500, "0.5"), (5_000, "5"), (50_000, "50")] {
            let found = stopped(&made.read(), &script, Duration::from_millis(limit));
            let message = format!("nv_peer_mem: {script} stop took longer than {text} s and was killed");
            assert_eq!(found, (Left::Unused, message));
            if fs::read_to_string(format!("{script}.noted")).is_ok_and(|noted| noted == "stopping\n") {
                return;
            }
        }
        panic!("the script has not begun");
    }

    #[test]
    fn a_script_that_fails_leaves_the_module() {
        let limit = Duration::from_secs(100);
        let after = |users, text| {
            let (made, script) = service(users, text);
            stopped(&made.read(), &script, limit)
        };
        assert_eq!(after("0", "[ \"$1\" = stop ]"), (Left::Nothing, String::new()));
        assert_eq!(after("0", "exit 1"), (Left::Unused, String::new()));
        assert_eq!(after("2", "exit 1"), (Left::InUse, String::new()));
        let (made, script) = service("0", "exit 1");
        made.change(["- /sys/module/nv_peer_mem"]);
        assert_eq!(stopped(&made.read(), &script, limit), (Left::Nothing, String::new()));
    }
}
