// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm explain`.
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::explain::answer::{Answer, Kind};
use crate::explain::budget::Budget;
use crate::explain::judge::judged;
use crate::explain::node::{self, Node};
use crate::explain::prefixes::hosts_of;
use crate::explain::redact::Redactor;
use crate::explain::scan::Scan;
use crate::explain::screen::Screen;
use crate::explain::unpack::Sink;
use crate::explain::{inputs, json, list};
use crate::text::clean;

const NAME: &str = "nvpm explain";
/// No log can be read, or a part of one cannot be read and the rest shows nothing.
const NOT_READ: u8 = 1;

/// Says in at most 12 lines what the cause of the failures in a log is, how sure that is, which line shows it, and what
/// to do. Reads logs of NCCL, UCX, NVSHMEM, MPI, perftest, Mooncake, NIXL, libfabric, dkms, modprobe, the operators of
/// Kubernetes and the kernel, in any mixture. Several files are one case. Nothing leaves this machine.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 no line in the log is a failure, and a line says that something went \
                  well, 1 no log can be read, or all are empty, or a part of \
                  one cannot be read and the rest shows nothing, 2 wrong options, 3 a cause was found, 4 the log has \
                  failures whose cause is not known, or no line that nvpm knows."
)]
#[allow(clippy::struct_excessive_bools)]
pub struct Options {
    /// Logs, also .gz, .xz, .bz2, .zst, .tar and .zip, directories of logs, the archive of nvpm report, or - for
    /// standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The kernel's lines of the journal
    #[arg(long)]
    journal: bool,
    /// With --journal: from this time on (-1h)
    #[arg(long, value_name = "TIME", requires = "journal", allow_hyphen_values = true)]
    since: Option<String>,
    /// The kernel's lines since the boot
    #[arg(long)]
    dmesg: bool,
    /// The log is of this node, also if it does not contain the node's name
    #[arg(long)]
    here: bool,
    /// Every message that was found, and why
    #[arg(long)]
    all: bool,
    /// One object for machines
    #[arg(long)]
    json: bool,
    /// Take the names of hosts, and addresses, out of the quoted lines; names of users, directories and jobs stay
    #[arg(long)]
    redact: bool,
    /// All messages that are known, with their causes
    #[arg(long)]
    list: bool,
    /// Accepted as by each command of nvpm
    #[arg(long, hide = true)]
    debug: bool,
}

/// The logs that were read, and whether parts of them could not be read.
struct Logs {
    scan: Scan,
    is_cut: bool,
}

impl Sink for Logs {
    fn text(&mut self, name: &str, text: Box<dyn BufRead + '_>) -> io::Result<()> {
        self.scan.read(name, text)
    }

    fn lost(&mut self, reason: &str) {
        self.is_cut = true;
        tell(reason);
    }

    fn no_text(&mut self, name: &str) {
        tell(&format!("{name} is no text"));
    }
}

/// Says something on the standard error, whose loss does not matter.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "nvpm explain: {}", clean(text));
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let mut out = io::stdout().lock();
    match answered(options, &mut out) {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("the answer cannot be written: {error}"));
            ExitCode::from(NOT_READ)
        }
    }
}

fn wrong(text: &str) -> ExitCode {
    crate::options::wrong(NAME, Options::command(), text)
}

fn answered(mut options: Options, out: &mut dyn Write) -> io::Result<ExitCode> {
    if options.list {
        return list::print(out).map(|()| ExitCode::SUCCESS);
    }
    if options.files.is_empty() && !options.journal && !options.dmesg {
        if io::stdin().is_terminal() {
            return Ok(wrong("which log? Name files, or - to paste it here, or --journal or --dmesg"));
        }
        options.files.push("-".into());
    }
    if let Some(missing) = options.files.iter().find(|file| file.as_os_str() != "-" && !file.exists()) {
        let name = missing.display().to_string();
        let name = if name.is_empty() { "file with an empty name" } else { &name };
        return Ok(wrong(&format!("there is no {name}")));
    }
    let logs = read(&options);
    if logs.scan.files.is_empty() {
        tell("there is no log that can be read.");
        return Ok(ExitCode::from(NOT_READ));
    }
    if logs.scan.lines == 0 {
        let files = &logs.scan.files;
        let subject = match &files[..] {
            [one] => format!("{one} is empty"),
            _ => format!("all {} files are empty", files.len()),
        };
        tell(&format!("{subject}. Did the program write its log elsewhere?"));
        return Ok(ExitCode::from(NOT_READ));
    }
    print(&options, &logs, out)
}

fn read(options: &Options) -> Logs {
    let mut logs = Logs { scan: Scan::new(), is_cut: false };
    let budget = Budget::new();
    inputs::from_paths(&options.files, &budget, &mut logs);
    if options.journal {
        let since = options.since.as_ref().map(|time| format!("--since={time}"));
        let mut command = vec!["journalctl", "-k", "-o", "short-iso", "--no-pager"];
        command.extend(since.as_deref());
        inputs::from_program(&command, &budget, &mut logs);
    }
    if options.dmesg {
        inputs::from_program(&["dmesg"], &budget, &mut logs);
    }
    logs
}

fn print(options: &Options, logs: &Logs, out: &mut dyn Write) -> io::Result<ExitCode> {
    let mut verdict = judged(&logs.scan);
    let hosts = hosts_of(logs.scan.sources());
    let is_own = options.here || options.journal || options.dmesg;
    let is_here = is_own || (node::is_here(&hosts) && !node::is_older(&options.files));
    let node = (is_here && !verdict.causes.is_empty()).then(Node::of_this_machine);
    if let Some(node) = &node {
        node.compare(&mut verdict);
    }
    let answer = Answer { scan: &logs.scan, verdict: &verdict, node: node.as_ref() };
    let redactor = options.redact.then(|| Redactor::new(hosts));
    let quoted = |text: &str| redactor.as_ref().map_or_else(|| text.to_owned(), |redactor| redactor.text(text));
    if options.json {
        writeln!(out, "{:#}", json::object(&answer, &quoted))?;
    } else {
        let screen = Screen::new(&answer, width(), &quoted);
        for line in if options.all { screen.everything() } else { screen.brief() } {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()?;
    // The part that cannot be read may contain a cause.
    let kind = answer.kind();
    let is_silent = kind == Kind::Nothing || (kind == Kind::Unknown && answer.unknown().is_empty());
    Ok(ExitCode::from(if logs.is_cut && is_silent { NOT_READ } else { kind.code() }))
}

/// Returns the width that the terminal is said to have. The answer is made for narrow terminals, too.
fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    columns.filter(|_| io::stdout().is_terminal()).unwrap_or(0)
}
