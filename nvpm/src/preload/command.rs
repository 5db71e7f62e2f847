// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm run`.
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{CommandFactory, Parser, ValueHint};
use nvpm_foreign::{dynamic_linker, verbs};

use crate::preload::decision::{Decision, decision};
use crate::preload::library::{LIBRARY, Places, is_divided, misfit, places};
use crate::preload::loader::unreachable;
use crate::read::machine::Machine;
use crate::read::reader::reason;

const NAME: &str = "nvpm run";

const VARIABLE: &str = "LD_PRELOAD";
/// The same file is also an auditor, which finds the calls of libraries that were opened with `RTLD_DEEPBIND`.
const AUDITOR: &str = "LD_AUDIT";
/// With an auditor, glibc reserves the memory of thread-local variables before it knows the program's libraries.
/// Without this tunable, programs with much of such memory do not start. glibc takes the memory out of the stack of
/// each thread, so with more, threads with a small stack do not start: Node has one of 32 KiB. rustc needs 23 KiB.
const TUNABLES: &str = "GLIBC_TUNABLES";
const ROOM: &str = "glibc.rtld.optional_static_tls";
const ENOUGH: usize = 24 << 10;
const LOG: &str = "NVPM_PRELOAD_LOG";
const GET_IT: &str = "install the package nvidia-peer-memory-preload (RPM: nvidia_peer_memory-preload), or name the file \
                      with --library.";

/// The exit codes: the library is needed, but is missing or does not fit; and those of a shell for a program that
/// cannot be executed, and for a program that does not exist.
const NO_LIBRARY: u8 = 1;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Parser)]
#[command(
    name = NAME,
    about = "Starts PROGRAM with a library that registers GPU memory as a dma-buf where ibv_reg_mr of a pointer is refused. \
             Where the library is not needed, or would not help, PROGRAM is started without it. NVPM_PRELOAD_LOG=1: the \
             library, and this command, say what they do",
    args_override_self = true,
    after_help = "Exit codes: that of PROGRAM; 1 the library is missing or is for another processor, 2 wrong options, 126 \
                  and 127 as a shell."
)]
pub struct Options {
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help = format!("{LIBRARY}, if it is elsewhere"))]
    library: Option<OsString>,
    #[arg(long, help = "Catch libraries that are opened with RTLD_DEEPBIND, too (glibc 2.35 or later)")]
    audit: bool,
    /// PROGRAM [ARGUMENT]...
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, value_hint = ValueHint::CommandWithArguments)]
    program: Vec<OsString>,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

fn tell(text: &str) {
    // The program is started nevertheless, and the exit code says what is wrong.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let Some((name, arguments)) = options.program.split_first() else {
        return crate::options::wrong(NAME, Options::command(), "which PROGRAM?");
    };
    let machine = Machine::here(options.debug);
    let mut command = Command::new(name);
    command.args(arguments);
    match library_for(&machine, &options, name) {
        Ok(Some(library)) => command.envs(variables(&library, is_audited(options.audit))),
        Ok(None) => &mut command,
        Err(why) => {
            tell(&why);
            return ExitCode::from(NO_LIBRARY);
        }
    };
    start(&machine, command, name)
}

/// Returns the library that the program NAME gets; None if it gets none. The error says why the program must not start.
fn library_for(machine: &Machine, options: &Options, name: &OsStr) -> Result<Option<PathBuf>, String> {
    let decided = decision(machine);
    let outside = if decided == Decision::Preload { unreachable(name) } else { None };
    let decided = outside.map_or(decided, |why| Decision::Useless(format!("cannot help here: {why}")));
    let there = there(options.library.as_deref().unwrap_or_default());
    let program = name.to_string_lossy();
    match decided {
        // If the library is not needed, nothing is printed, because each process of a job would print the same line.
        Decision::Needless(_) if env::var_os(LOG).is_none_or(|value| value != "1") => return Ok(None),
        Decision::Needless(why) | Decision::Useless(why) => {
            tell(&format!("{why}. {program} runs as it is."));
            return Ok(None);
        }
        Decision::Preload => {}
    }
    let Some(library) = there.iter().find(|path| path.exists()) else {
        let there: Vec<String> = there.iter().map(|path| path.display().to_string()).collect();
        return Err(format!("there is no {LIBRARY} ({}): {GET_IT}", there.join(", ")));
    };
    let path = library.display();
    if is_divided(library) {
        return Err(format!("no library can be preloaded whose name has a blank or a colon: {path}. Copy it."));
    }
    if let Some(wrong) = misfit(library) {
        return Err(format!("{program} was not started: {path} {wrong}. Name the right file with --library."));
    }
    if !dynamic_linker::finds(verbs::LIBRARY) {
        tell(&format!("there is no libibverbs.so.1 here: {program} needs one of its own to use RDMA."));
    }
    Ok(Some(library.clone()))
}

/// Returns the places where the library may be: that of the option, or those beside this program.
fn there(named: &OsStr) -> Vec<PathBuf> {
    if !named.is_empty() {
        return vec![absolute(Path::new(named))];
    }
    let program = env::current_exe().unwrap_or_default();
    let Places { found, passed_over } = places(&program);
    for text in passed_over {
        tell(&text);
    }
    found
}

/// Returns an absolute path without dots. Links are not resolved.
fn absolute(path: &Path) -> PathBuf {
    use std::path::Component;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}

/// Returns whether the library is also an auditor.
fn is_audited(is_wanted: bool) -> bool {
    if is_wanted && !dynamic_linker::takes_auditors() {
        tell("--audit needs glibc 2.35 or later, and is left out.");
        return false;
    }
    is_wanted
}

/// Returns the variables that change. Our library comes after the libraries that are preloaded already. If such a
/// library replaces `ioctl()` and calls the next `ioctl()`, which `RTLD_NEXT` finds, this is the function of our
/// library.
fn variables(library: &Path, audit: bool) -> Vec<(&'static str, OsString)> {
    let mut found = vec![(VARIABLE, added(VARIABLE, library.as_os_str()))];
    if audit {
        found.push((AUDITOR, added(AUDITOR, library.as_os_str())));
        let tunables = env::var_os(TUNABLES).unwrap_or_default();
        if !tunables.to_string_lossy().contains(ROOM) {
            found.push((TUNABLES, added(TUNABLES, OsStr::new(&format!("{ROOM}={ENOUGH}")))));
        }
    }
    found
}

/// Returns the value of a variable with a further part behind it.
fn added(name: &str, part: &OsStr) -> OsString {
    joined(&env::var_os(name).unwrap_or_default(), part)
}

fn joined(value: &OsStr, part: &OsStr) -> OsString {
    let whole = [value.as_bytes(), b":", part.as_bytes()].concat();
    let start = whole.iter().position(|byte| *byte != b':').unwrap_or(whole.len());
    OsString::from_vec(whole.get(start..).unwrap_or_default().to_vec())
}

/// Becomes the program. Returns only if that fails.
fn start(machine: &Machine, mut command: Command, name: &OsStr) -> ExitCode {
    // The program must have no child that it did not start, except one that the kernel holds.
    machine.reader.stop();
    let error = command.exec();
    tell(&format!("{}: {}", name.to_string_lossy(), reason(&error)));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_comes_after_those_that_are_there() {
        for (value, expected) in [("", "/x.so"), ("/a.so", "/a.so:/x.so"), (":", "/x.so"), ("/a:/b", "/a:/b:/x.so")] {
            assert_eq!(joined(OsStr::new(value), OsStr::new("/x.so")), expected);
        }
    }

    #[test]
    fn the_words_behind_the_program_are_its_own() {
        let program = |words: &[&str]| -> Option<Vec<OsString>> {
            let words = [NAME].iter().chain(words);
            Options::try_parse_from(words).ok().map(|options| options.program)
        };
        assert_eq!(
            program(&["sh", "-c", "x", "--json"]),
            Some(["sh", "-c", "x", "--json"].map(OsString::from).to_vec())
        );
        assert_eq!(
            program(&["--audit", "sh", "--", "--help"]),
            Some(["sh", "--", "--help"].map(OsString::from).to_vec())
        );
        assert_eq!(program(&["--audit", "--", "sh", "--audit"]), Some(["sh", "--audit"].map(OsString::from).to_vec()));
        assert_eq!(program(&["--nonsense", "sh"]), None);
        assert_eq!(program(&[]), Some(Vec::new()));
        // A script may give the value of a variable that is not set.
        assert_eq!(program(&["--library", "", "sh"]), Some(vec!["sh".into()]));
    }

    #[test]
    fn paths_become_absolute() {
        let here = env::current_dir().unwrap();
        assert_eq!(absolute(Path::new("a/./b/../c.so")), here.join("a/c.so"));
        assert_eq!(absolute(Path::new("/../x//y.so")), Path::new("/x/y.so"));
    }
}
