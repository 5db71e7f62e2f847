// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints each result at once as text.
use std::io::{self, Write};

use crate::facts::fact::Fact;
use crate::selftest::failure::Absent;
use crate::selftest::report::{Outcome, Report};
use crate::selftest::trial::{Freed, Plan, Trial};
use crate::selftest::wording::{amount, plural, speed};

pub struct Lines {
    pub plan: Plan,
}

impl Report for Lines {
    fn begin(&mut self, gpus: usize, devices: usize) -> io::Result<()> {
        let (gpus, devices) = (plural(gpus, "GPU"), plural(devices, "RDMA device"));
        let (size, seed) = (amount(self.plan.size), self.plan.seed);
        writeln!(io::stdout(), "nvpm selftest: {gpus}, {devices}; {size} each way, seed {seed}")
    }

    fn not_tested(&mut self, device: &str, reason: &str) -> io::Result<()> {
        not_tested(device, reason)
    }

    fn pair(&mut self, trial: &Trial, facts: &[Fact]) -> io::Result<()> {
        pair(trial, facts)
    }

    fn absent(&mut self, missing: &[Absent]) -> io::Result<()> {
        absent(missing)
    }

    fn end(&mut self, outcome: Outcome) -> io::Result<()> {
        end(outcome)
    }
}

pub fn not_tested(device: &str, reason: &str) -> io::Result<()> {
    writeln!(io::stdout(), "      {device}: not tested: {reason}")
}

/// Prints the result of a trial, and the facts that explain a failure.
pub fn pair(trial: &Trial, facts: &[Fact]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let way = if trial.by_dma_buf { ", dma-buf" } else { "" };
    let name = format!("GPU {} {}, {}/{}{way}", trial.gpu, trial.pci, trial.device, trial.port);
    match &trial.failure {
        Some(failure) => writeln!(out, " !!   {name}: {failure}")?,
        None => writeln!(out, "  ok  {name}: {}", moved(trial))?,
    }
    for fact in facts {
        writeln!(out, "        status: {}: {}: {}", fact.section, fact.name, fact.value)?;
        if !fact.advice.is_empty() {
            writeln!(out, "          -> {}", fact.advice)?;
        }
    }
    out.flush()
}

fn moved(trial: &Trial) -> String {
    let size = amount(trial.size);
    let speed = |seconds: Option<f64>| speed(trial.size, seconds.unwrap_or_default());
    let freed = match trial.freed {
        Some(Freed::Revoked) => "the device was refused (revocable)",
        _ => "pinned until deregistered (persistent)",
    };
    let (to_gpu, from_gpu) = (speed(trial.to_gpu), speed(trial.from_gpu));
    format!("to GPU {size}, {to_gpu}; from GPU {size}, {from_gpu}; freed: {freed}")
}

pub fn absent(missing: &[Absent]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    missing
        .iter()
        .try_for_each(|one| writeln!(out, "nvpm selftest: nothing was tested: {}\n  -> {}", one.what, one.advice))
}

pub fn end(outcome: Outcome) -> io::Result<()> {
    let Outcome { passed, failed, .. } = outcome;
    let mut out = io::stdout().lock();
    if failed > 0 {
        writeln!(out, "nvpm selftest: {failed} of {} FAILED", plural(passed + failed, "pair"))
    } else if passed > 0 {
        writeln!(out, "nvpm selftest: passed, {}", plural(passed, "pair"))
    } else {
        Ok(())
    }
}
