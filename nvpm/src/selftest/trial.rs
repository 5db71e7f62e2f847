// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Tries one GPU with one RDMA device by one way. A trial registers GPU memory, moves data, compares the data, frees
//! the memory and ends the registration.
use std::time::Instant;

use nvpm_foreign::cuda::Gpu;
use nvpm_foreign::queue_pair::Transfer;
use nvpm_foreign::{cuda, verbs};

#[cfg(test)]
use crate::facts::bound::Part;
use crate::facts::bound::{self, Bound};
use crate::facts::distances::Distance;
use crate::read::machine::Machine;
use crate::read::ways;
use crate::selftest::bandwidth;
use crate::selftest::bench::Bench;
use crate::selftest::failure::Failure;
use crate::selftest::limits::{bounds_of, distance_of};
use crate::selftest::port::Port;

/// The number of transfers in each direction. Only the fastest is reported, because the first is slower.
const TIMES: usize = 4;
/// The number of bytes that the device reads after the memory was freed.
const PROBE: usize = 4096;

/// A completion with one of these statuses is no refusal, because no device has answered.
const SILENCE: [&str; 3] = ["IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR", "IBV_WC_RESP_TIMEOUT_ERR"];

const STILL_REACHED: &str = "the device still reaches the memory, which persistent_api_support=0 rules out";

/// What each trial does.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The bytes that are moved each way.
    pub size: usize,
    /// The seed of the pattern.
    pub seed: u64,
    /// The seconds for the transfers of a pair.
    pub timeout: u64,
    /// The seconds for each direction of a pair; None if rates are not measured.
    pub bandwidth: Option<u64>,
}

impl Plan {
    /// Returns the number of transfers at a time.
    pub fn depth(&self) -> u32 {
        if self.bandwidth.is_some() { bandwidth::DEPTH } else { 1 }
    }
}

/// The things of a trial.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub machine: &'a Machine,
    pub cuda: &'a cuda::Library,
    pub verbs: &'a verbs::Library,
    pub gpu: &'a Gpu<'a>,
    pub port: &'a Port,
    pub by_dma_buf: bool,
}

/// What happened to the registration when the memory was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// The device was refused.
    Revoked,
    /// The device still reached the memory.
    Pinned,
}

/// A trial and its results. If a step fails, the results of later steps are missing.
pub struct Trial {
    pub gpu: i32,
    pub pci: String,
    pub device: String,
    pub port: u8,
    pub by_dma_buf: bool,
    pub size: usize,
    pub failure: Option<String>,
    /// The seconds that a transfer took or, if rates are measured, the bytes per second.
    pub to_gpu: Option<f64>,
    pub from_gpu: Option<f64>,
    pub freed: Option<Freed>,
    /// The rates that the links allow to the GPU and from the GPU, the distance, and what is said of slow rates. They
    /// are only known if rates are measured.
    pub limits: [Option<Bound>; 2],
    pub distance: Option<Distance>,
    pub remarks: Vec<String>,
}

impl Trial {
    pub fn new(pair: &Pair, plan: &Plan) -> Self {
        let (machine, pci, device) = (pair.machine, &pair.gpu.pci, &pair.port.device);
        let is_measured = plan.bandwidth.is_some();
        Self {
            gpu: pair.gpu.index,
            pci: pci.clone(),
            device: device.clone(),
            port: pair.port.number,
            by_dma_buf: pair.by_dma_buf,
            size: plan.size,
            failure: None,
            to_gpu: None,
            from_gpu: None,
            freed: None,
            limits: if is_measured { bounds_of(machine, pci, device, &pair.port.path) } else { [None, None] },
            distance: if is_measured { distance_of(machine, pci, device) } else { None },
            remarks: Vec::new(),
        }
    }

    /// Returns the rate that the links allow in the slower direction.
    pub fn limit(&self) -> Option<Bound> {
        bound::lower(self.limits.clone())
    }

    /// Runs the trial, and returns whether it passed. A failed release of a resource is a failure, too.
    pub fn run(&mut self, pair: &Pair, plan: &Plan) -> bool {
        let failure = Bench::set_up(pair, plan, |bench| self.measure(bench)).err().map(|failure| failure.0);
        // The memory is released last, so its error is the last one.
        let of_verbs = pair.verbs.release_failure().map(|error| error.to_string());
        let of_cuda = pair.cuda.release_failure().map(|error| error.to_string());
        self.failure = failure.or(of_cuda).or(of_verbs);
        self.failure.is_none()
    }

    fn measure(&mut self, bench: &Bench) -> Result<(), Failure> {
        if let Some(seconds) = bench.plan.bandwidth {
            self.to_gpu = Some(bench.move_to_gpu(|transfer| bandwidth::measured(bench, transfer, seconds))?);
            self.from_gpu = Some(bench.move_from_gpu(|transfer| bandwidth::measured(bench, transfer, seconds))?);
        } else {
            self.to_gpu = Some(bench.move_to_gpu(|transfer| fastest(bench, transfer))?);
            self.from_gpu = Some(bench.move_from_gpu(|transfer| fastest(bench, transfer))?);
            self.freed = Some(free(bench)?);
        }
        Ok(())
    }
}

/// Writes the whole buffer several times. Returns the seconds that the fastest write took.
fn fastest(bench: &Bench, transfer: Transfer) -> Result<f64, Failure> {
    let mut best = f64::INFINITY;
    for _ in 0..TIMES {
        let begun = Instant::now();
        bench.write_once(transfer)?;
        best = best.min(begun.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Frees the memory while it is registered, and then lets the device read the memory. The device does not write,
/// because the memory may belong to another program by then.
fn free(bench: &Bench) -> Result<Freed, Failure> {
    const WHAT: &str = "after cuMemFree";
    bench.memory.free()?;
    let status = bench.transfer(WHAT, Transfer::ReadGpu, PROBE.min(bench.plan.size), 0)?;
    let text = status.to_string();
    if SILENCE.contains(&text.as_str()) {
        return Err(Failure(format!("{WHAT}: nobody answered, and nobody refused: {text}")));
    }
    if !status.is_success() {
        return Ok(Freed::Revoked);
    }
    if ways::revokes(bench.pair.machine) && !bench.pair.by_dma_buf {
        return Err(Failure(format!("{WHAT}: {STILL_REACHED}")));
    }
    Ok(Freed::Pinned)
}

#[cfg(test)]
impl Trial {
    /// Returns a trial by pointer with these rates, and a rate that its links allow. All rates are in gigabytes per
    /// second.
    pub fn with_rates(gpu: i32, device: &str, rates: [f64; 2], limit: Option<f64>) -> Self {
        let [to_gpu, from_gpu] = rates.map(|rate| Some(rate * 1e9));
        let limit = limit.map(|rate| Bound { rate: rate * 1e9, what: format!("link {rate}"), part: Part::Hop });
        Self {
            gpu,
            pci: format!("0000:0{gpu}:00.0"),
            device: device.to_owned(),
            port: 1,
            by_dma_buf: false,
            size: 1,
            failure: None,
            to_gpu,
            from_gpu,
            freed: None,
            limits: [limit.clone(), limit],
            distance: Some(Distance::Pix),
            remarks: Vec::new(),
        }
    }
}
