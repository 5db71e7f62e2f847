// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm selftest`: tests each GPU with each RDMA device that has an active port.
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::read::machine::Machine;
use crate::read::reader::reason;
use crate::read::{dma_buf, ways};
use crate::selftest::failure::Absent;
use crate::selftest::found::{Gpus, Ports, find_gpus, find_ports, open_cuda};
use crate::selftest::judge::{all_software, judge};
use crate::selftest::lines::Lines;
use crate::selftest::matrix::Matrix;
use crate::selftest::object::Object;
use crate::selftest::page::as_page;
use crate::selftest::port::Port;
use crate::selftest::reasons::Reasons;
use crate::selftest::report::{Outcome, Report};
use crate::selftest::trial::{Pair, Plan, Trial};
use crate::show::out::{lost, say};
use crate::show::page::{self, NewFile};

const NAME: &str = "nvpm selftest";

/// The exit codes.
const FAILED: u8 = 1;
const WRONG: u8 = 2;
const NOTHING: u8 = 3;
/// The exit code of a program that SIGPIPE has ended, as a shell shows it.
const NO_READER: u8 = 128 + 13;

const NO_PORT: &str = "no RDMA device with an active port";
const BRING_UP: &str = "Bring a link up: ibstat, ip link.";

const LARGEST: usize = 1 << 30;

/// For each GPU and each RDMA device with an active port: allocates GPU memory, registers it, moves a pattern through
/// the device both ways, compares, frees the memory while it is registered.
#[derive(Parser)]
#[command(
    name = NAME,
    args_override_self = true,
    after_help = "Exit codes: 0 each pair passed, 1 some did not, 2 wrong options or --html FILE cannot be written, 3 there \
                  is nothing to test."
)]
pub struct Options {
    /// Bytes that are moved each way, with K, M or G behind; 16M
    #[arg(long, default_value = "16M", hide_default_value = true, value_parser = size)]
    size: usize,
    /// This one only: its number in nvidia-smi, or its PCI address
    #[arg(long, value_name = "N")]
    gpu: Option<String>,
    /// This RDMA device only
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// Of the pattern; by default another one each time
    #[arg(long, value_name = "N", value_parser = natural)]
    seed: Option<u64>,
    /// For the transfers of a pair; 30
    #[arg(long, value_name = "SECONDS", default_value = "30", hide_default_value = true, value_parser = natural)]
    timeout: u64,
    /// Measures instead: sustained transfers with many messages at a time, both ways, one pair after the other; other
    /// jobs get less from these devices meanwhile
    #[arg(long)]
    bandwidth: bool,
    /// With --bandwidth: for each direction of each pair; 1
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true, value_parser = natural)]
    seconds: u64,
    /// With --bandwidth: also writes a page for a browser, FILE, which must be new
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One object for machines
    #[arg(long)]
    json: bool,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

/// Returns the decimal number of a text with at most MOST digits.
fn digits(text: &str, most: usize) -> Option<u64> {
    let is_number = (1..=most).contains(&text.len()) && text.bytes().all(|letter| letter.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn size(text: &str) -> Result<usize, String> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let unit = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    let found = digits(number, 12).and_then(|number| usize::try_from(number).ok()?.checked_mul(1 << shift));
    let found = found.filter(|size| (1..=LARGEST).contains(size));
    found.ok_or_else(|| format!("'{text}' is not a size from 1 to 1G"))
}

fn natural(text: &str) -> Result<u64, String> {
    digits(text, 10).ok_or_else(|| format!("'{text}' is not a number"))
}

impl Options {
    fn plan(&self) -> Plan {
        // The state of a new hasher is random.
        let seed = self.seed.unwrap_or_else(|| u64::from(RandomState::new().hash_one(0) as u32));
        let bandwidth = self.bandwidth.then_some(self.seconds);
        Plan { size: self.size, seed, timeout: self.timeout, bandwidth }
    }
}

fn tell(text: &str) {
    // If this cannot be written, the exit code still says it.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}

fn not_written(path: &Path, error: &io::Error) -> u8 {
    tell(&format!("{} cannot be written: {}", path.display(), reason(error)));
    WRONG
}

/// A page that is kept at the end. If it is not kept, the file is removed, and the user is told.
struct Page<'p> {
    path: &'p Path,
    file: Option<NewFile>,
    is_kept: bool,
}

impl<'p> Page<'p> {
    fn new(path: &'p Path) -> io::Result<Self> {
        Ok(Self { path, file: Some(NewFile::new(path, NAME)?), is_kept: false })
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.file = None;
        if !self.is_kept {
            tell(&page::not_written(self.path));
        }
    }
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    if options.html.is_some() && !options.bandwidth {
        return crate::options::wrong(NAME, Options::command(), "--html shows rates: name --bandwidth with it");
    }
    let page = match options.html.as_deref().map(|path| (path, Page::new(path))) {
        Some((_, Ok(page))) => Some(page),
        Some((path, Err(error))) => return ExitCode::from(not_written(path, &error)),
        None => None,
    };
    match tested(&Machine::here(options.debug), &options, page) {
        // The disk may be full although all was written.
        Ok(code) => say(None::<&str>, code, FAILED),
        // The reader of the output has stopped early, as in `nvpm selftest | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::from(NO_READER),
        Err(error) => lost(&reason(&error), FAILED),
    }
}

fn report(options: &Options, plan: Plan) -> Box<dyn Report> {
    if options.json {
        Box::new(Object::new(plan))
    } else if options.bandwidth {
        Box::new(Matrix { plan, pairs: 0 })
    } else {
        Box::new(Lines { plan })
    }
}

/// Runs the test. An error is one of the standard output.
fn tested(machine: &Machine, options: &Options, page: Option<Page>) -> io::Result<u8> {
    let plan = options.plan();
    let mut report = report(options, plan);
    // All missing things are named at once.
    let cuda = open_cuda();
    let gpus = cuda.as_ref().map_or_else(|absent| Err(absent.clone()), |cuda| find_gpus(cuda, options.gpu.as_deref()));
    let ports = find_ports(machine, options.device.as_deref());
    let count = ports.as_ref().map_or(0, |ports| ports.usable.len());
    report.begin(gpus.as_ref().map_or(0, |gpus| gpus.chosen.len()), count)?;
    for (device, reason) in ports.iter().flat_map(|ports| &ports.not_tested) {
        report.not_tested(device, reason)?;
    }
    match (&cuda, gpus, ports) {
        (Ok(cuda), Ok(gpus), Ok(ports)) if count > 0 => {
            let test = Test { machine, cuda, gpus: &gpus, ports: &ports, plan };
            test.run(&mut *report, page)
        }
        (_, gpus, ports) => {
            let without_port = match ports {
                Err(absent) => Some(absent),
                Ok(_) if count == 0 => Some(Absent::new(NO_PORT, BRING_UP)),
                Ok(_) => None,
            };
            let missing: Vec<Absent> = gpus.err().into_iter().chain(without_port).collect();
            report.absent(&missing)?;
            report.end(Outcome { code: NOTHING, ..Outcome::default() })?;
            Ok(NOTHING)
        }
    }
}

struct Test<'t> {
    machine: &'t Machine,
    cuda: &'t nvpm_foreign::cuda::Library,
    gpus: &'t Gpus<'t>,
    ports: &'t Ports,
    plan: Plan,
}

impl Test<'_> {
    fn run(&self, report: &mut dyn Report, page: Option<Page>) -> io::Result<u8> {
        let mut trials = self.try_all(report)?;
        let is_software = all_software(self.machine, &trials);
        if self.plan.bandwidth.is_some() {
            judge(&mut trials);
            report.judged(&trials, is_software)?;
        }
        let failed = trials.iter().filter(|trial| trial.failure.is_some()).count();
        let slow: usize = trials.iter().map(|trial| trial.remarks.len()).sum();
        let code = if failed > 0 || slow > 0 { FAILED } else { 0 };
        report.end(Outcome { code, passed: trials.len() - failed, failed, slow })?;
        if let Some(mut page) = page {
            let text = as_page(&self.machine.host, &trials, &self.ports.not_tested, is_software);
            if let Some(Err(error)) = page.file.take().map(|file| file.keep(&text)) {
                return Ok(not_written(page.path, &error));
            }
            page.is_kept = true;
        }
        Ok(code)
    }

    /// Tests each pair by each way.
    fn try_all(&self, report: &mut dyn Report) -> io::Result<Vec<Trial>> {
        let mut trials = Vec::new();
        let names = self.gpus.all.iter().chain(&self.ports.devices).cloned().collect();
        let mut reasons = Reasons::new(self.machine, names);
        let verbs = &self.ports.library;
        for gpu in &self.gpus.chosen {
            for port in &self.ports.usable {
                for by_dma_buf in ways_to_test(self.machine, &gpu.pci, port) {
                    let pair = Pair { machine: self.machine, cuda: self.cuda, verbs, gpu, port, by_dma_buf };
                    let mut trial = Trial::new(&pair, &self.plan);
                    report.progress(&trial, trials.len());
                    let has_passed = trial.run(&pair, &self.plan);
                    let facts = if has_passed { Vec::new() } else { reasons.of([&gpu.pci, &port.device]) };
                    report.pair(&trial, &facts)?;
                    trials.push(trial);
                }
            }
            if let Err(error) = gpu.release() {
                tell(&format!("GPU {}: {error}", gpu.index));
            }
        }
        Ok(trials)
    }
}

/// Returns the ways to test with a pair: false stands for a pointer, true for a dma-buf. A pair without a way is tested
/// by pointer, because the failure then tells the reason.
fn ways_to_test(machine: &Machine, gpu: &str, port: &Port) -> Vec<bool> {
    let by_dma_buf = dma_buf::taken_by(machine).contains(&port.device);
    let by_pointer = !by_dma_buf || !ways::pointer_way_of(machine, gpu, &port.device).is_empty();
    [(false, by_pointer), (true, by_dma_buf)]
        .into_iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(way, _)| way)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_ends() {
        for (text, bytes) in [("1", 1), ("4097", 4097), ("64K", 65536), ("16M", 16 << 20), ("1G", LARGEST)] {
            assert_eq!(size(text), Ok(bytes));
        }
        let wrong =
            ["", "0", "K", "16k", "-1", "+1", "1.5M", "2G", "1073741825", "1000000000000", "999999999999G", "1 K"];
        for text in wrong {
            assert_eq!(size(text), Err(format!("'{text}' is not a size from 1 to 1G")));
        }
        assert_eq!(natural("9999999999"), Ok(9_999_999_999));
        assert!(["", "x", "-1", "10000000000"].into_iter().all(|text| natural(text).is_err()));
    }
}
