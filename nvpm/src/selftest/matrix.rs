// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints the rates of `nvpm selftest --bandwidth` as a matrix.
use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

use indexmap::IndexSet;

use crate::facts::fact::Fact;
use crate::selftest::bandwidth::DEPTH;
use crate::selftest::failure::Absent;
use crate::selftest::lines;
use crate::selftest::report::{Outcome, Report};
use crate::selftest::trial::{Plan, Trial};
use crate::selftest::wording::{amount, gigabytes, plural};

const CELL: usize = 13;
const NAME: usize = 12;
pub const SOFTWARE: &str =
    "All devices are made of software: the figures show that data moves, and nothing about hardware.";
pub const FAILED: &str = "FAILED";
pub const LOADS: &str = "Each pair is loaded alone; other jobs get less from these devices meanwhile.";

pub struct Matrix {
    pub plan: Plan,
    /// The number of pairs. The number of ways is known only after all ways are tried.
    pub pairs: usize,
}

/// Writes to the standard error if it is a terminal.
fn show(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        // The result does not depend on the progress that is shown.
        let _ = write!(err, "{text}").and_then(|()| err.flush());
    }
}

fn clear() {
    show("\r\x1b[K");
}

impl Report for Matrix {
    fn begin(&mut self, gpus: usize, devices: usize) -> io::Result<()> {
        self.pairs = gpus * devices;
        let (gpus, devices) = (plural(gpus, "GPU"), plural(devices, "RDMA device"));
        let (seconds, size) = (self.plan.bandwidth.unwrap_or_default(), amount(self.plan.size));
        writeln!(
            io::stdout(),
            "nvpm selftest --bandwidth: {gpus}, {devices}; {seconds} s each way, {DEPTH} messages at a time, {size} of \
             memory\n{LOADS}"
        )
    }

    fn not_tested(&mut self, device: &str, reason: &str) -> io::Result<()> {
        lines::not_tested(device, reason)
    }

    fn progress(&mut self, trial: &Trial, done: usize) {
        let way = if trial.by_dma_buf { "dma-buf" } else { "pointer" };
        let pair = format!("GPU {}, {}, by {way}", trial.gpu, trial.device);
        show(&format!("\r{pair} ({done} done of {} by each way)\x1b[K", self.pairs));
    }

    fn pair(&mut self, trial: &Trial, facts: &[Fact]) -> io::Result<()> {
        if trial.failure.is_none() {
            return Ok(());
        }
        clear();
        lines::pair(trial, facts)
    }

    fn absent(&mut self, missing: &[Absent]) -> io::Result<()> {
        lines::absent(missing)
    }

    fn judged(&mut self, trials: &[Trial], is_software: bool) -> io::Result<()> {
        clear();
        let mut out = io::stdout().lock();
        for chosen in by_way(trials) {
            for line in matrix(&chosen) {
                writeln!(out, "{line}")?;
            }
        }
        if is_software {
            writeln!(out, "{SOFTWARE}")?;
        }
        for trial in trials {
            let way = if trial.by_dma_buf { ", dma-buf" } else { "" };
            for remark in &trial.remarks {
                writeln!(out, "  !   GPU {} {}, {}{way}: {remark}", trial.gpu, trial.pci, trial.device)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> io::Result<()> {
        lines::end(outcome)?;
        if outcome.slow > 0 {
            writeln!(io::stdout(), "nvpm selftest: {} marked", plural(outcome.slow, "rate"))?;
        }
        Ok(())
    }
}

/// Returns the trials of each way that was tried.
pub fn by_way(trials: &[Trial]) -> Vec<Vec<&Trial>> {
    let of_way = |by_dma_buf| trials.iter().filter(|trial| trial.by_dma_buf == by_dma_buf).collect();
    [false, true].map(of_way).into_iter().filter(|chosen: &Vec<&Trial>| !chosen.is_empty()).collect()
}

/// Returns the name of the way of some trials.
pub fn way(trials: &[&Trial]) -> &'static str {
    if trials.first().is_some_and(|trial| trial.by_dma_buf) { "dma-buf" } else { "pointer" }
}

/// Returns the numbers of all GPUs.
pub fn columns(trials: &[&Trial]) -> BTreeSet<i32> {
    trials.iter().map(|trial| trial.gpu).collect()
}

/// Returns the trials of each device.
pub fn rows<'t>(trials: &[&'t Trial]) -> Vec<(&'t str, Vec<&'t Trial>)> {
    let devices: IndexSet<&str> = trials.iter().map(|trial| trial.device.as_str()).collect();
    let of_device = |device: &str| trials.iter().copied().filter(|trial| trial.device == device).collect();
    devices.into_iter().map(|device| (device, of_device(device))).collect()
}

/// Returns a row for each device, with a column for each GPU. A cell has the rate to the GPU and the rate from the GPU.
/// The last column has the rate that the links of the device allow.
fn matrix(trials: &[&Trial]) -> Vec<String> {
    let columns = columns(trials);
    let heads: Vec<String> = columns.iter().map(|gpu| format!("{:>CELL$}", format!("GPU {gpu}"))).collect();
    let mut found = vec![
        format!("by {}, GB/s to the GPU / from the GPU:", way(trials)),
        format!("{:NAME$}{}   links allow", "", heads.concat()),
    ];
    for (device, row) in rows(trials) {
        let of_gpu = |gpu: &i32| row.iter().find(|trial| trial.gpu == *gpu).copied();
        let cells: Vec<String> = columns.iter().map(|gpu| format!("{:>CELL$}", cell(of_gpu(gpu)))).collect();
        found.push(format!("{device:<NAME$}{}   {}", cells.concat(), allowed(&row)));
    }
    found
}

fn cell(trial: Option<&Trial>) -> String {
    let Some(trial) = trial else { return "-".to_owned() };
    if trial.failure.is_some() {
        return FAILED.to_owned();
    }
    let rates = [trial.to_gpu, trial.from_gpu].map(|rate| gigabytes(rate.unwrap_or_default()));
    format!("{}{}", rates.join("/"), if trial.remarks.is_empty() { "" } else { "!" })
}

/// Returns the rate that the fastest links of a device allow.
pub fn allowed(trials: &[&Trial]) -> String {
    let limits = trials.iter().filter_map(|trial| trial.limit());
    let best = limits.reduce(|best, limit| if limit.rate > best.rate { limit } else { best });
    best.map_or("unknown".to_owned(), |best| format!("{} ({})", gigabytes(best.rate), best.what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_gpus() {
        let mut trials = [
            Trial::with_rates(1, "mlx5_0", [3.0, 4.0], Some(10.0)),
            Trial::with_rates(0, "mlx5_1", [1.0, 2.0], Some(30.0)),
            Trial::with_rates(2, "mlx5_1", [5.0, 6.0], Some(20.0)),
        ];
        trials[2].remarks.push("slow".to_owned());
        let expected = [
            "by pointer, GB/s to the GPU / from the GPU:",
            "                    GPU 0        GPU 1        GPU 2   links allow",
            "mlx5_0                  -      3.0/4.0            -   10.0 (link 10)",
            "mlx5_1            1.0/2.0            -     5.0/6.0!   30.0 (link 30)",
        ];
        let [first, second, third] = &trials;
        assert_eq!(matrix(&[first, second, third]), expected);
        assert_eq!(matrix(&[first, third, second]), expected);
        trials[0].failure = Some("x".to_owned());
        trials[0].limits = [None, None];
        let lines = matrix(&[&trials[0]]);
        assert_eq!(lines[2], "mlx5_0             FAILED   unknown");
    }

    #[test]
    fn each_way_has_a_matrix() {
        let mut trials: Vec<Trial> = (0..3).map(|gpu| Trial::with_rates(gpu, "mlx5_0", [1.0, 1.0], None)).collect();
        trials[1].by_dma_buf = true;
        let found: Vec<(&str, usize)> = by_way(&trials).iter().map(|chosen| (way(chosen), chosen.len())).collect();
        assert_eq!(found, [("pointer", 2), ("dma-buf", 1)]);
    }
}
