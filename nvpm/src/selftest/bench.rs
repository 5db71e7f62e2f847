// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Everything that a trial needs: memory of the GPU and of the host, both registered, and queue pairs between them.
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nvpm_foreign::cuda::{self, Memory};
use nvpm_foreign::host_memory::HostMemory;
use nvpm_foreign::queue_pair::{QueuePair, Transfer};
use nvpm_foreign::verbs::{self, Completions, Context, Domain, Region, Status};
use rustix::process::{Resource, getrlimit};

use crate::read::ways;
use crate::selftest::failure::Failure;
use crate::selftest::pattern::{difference, pattern, poison};
use crate::selftest::trial::{Pair, Plan};

const NO_RIGHT: &str = "no right to open the device: /dev/infiniband/uverbs*; root has it";
const NOT_BY_US: &str = "GPU memory was registered, but not by nv_peer_mem, which is not loaded";
const WITHOUT_ODP: &str = ": the device cannot page on demand (ODP), which its driver needs for a dma-buf";
const GONE: &str = "the device has gone away";

/// For this time, the wait for a completion does not sleep, so that the time of a fast transfer is exact. Later it
/// sleeps, so that a slow transfer does not occupy the processor.
const AWAKE: Duration = Duration::from_millis(10);
const NAP: Duration = Duration::from_millis(1);

pub struct Bench<'a> {
    pub pair: &'a Pair<'a>,
    pub plan: &'a Plan,
    pub memory: &'a Memory<'a>,
    host: &'a HostMemory,
    completions: &'a Completions<'a>,
    queue: &'a QueuePair<'a>,
    /// The most bytes in one message.
    pub message: usize,
    deadline: Instant,
}

impl Bench<'_> {
    /// Sets everything up, calls a function, and releases everything in the opposite order.
    pub fn set_up(pair: &Pair, plan: &Plan, then: impl FnOnce(&Bench) -> Result<(), Failure>) -> Result<(), Failure> {
        pair.gpu.make_current()?;
        let memory = pair.gpu.memory(plan.size).map_err(|error| of_memory(&error, plan.size))?;
        let host = HostMemory::new(plan.size).ok_or_else(|| {
            Failure(format!("there are not {} MiB of host memory left; --size takes less", plan.size.div_ceil(1 << 20)))
        })?;
        let context = pair.verbs.open_device(&pair.port.device).map_err(of_device)?;
        let context = context.ok_or_else(|| Failure(GONE.to_owned()))?;
        let domain = context.domain().map_err(of_device)?;
        let depth = i32::try_from(plan.depth()).unwrap_or(i32::MAX);
        let completions = context.completions(2 + 2 * depth).map_err(of_device)?;
        let attributes = context.port(pair.port.number).map_err(of_device)?;
        let host_region = domain.register_host(&host).map_err(of_host_memory)?;
        let gpu_region = registered(pair, &context, &domain, &memory)?;
        let address = pair.port.address(pair.machine, attributes.needs_gid)?;
        let (port, regions) = ((&attributes, &address), (&host_region, &gpu_region));
        let queue = QueuePair::connected(&domain, &completions, plan.depth(), port, regions)?;
        let longest = usize::try_from(attributes.longest).ok().filter(|longest| *longest > 0);
        then(&Bench {
            pair,
            plan,
            memory: &memory,
            host: &host,
            completions: &completions,
            queue: &queue,
            message: plan.size.min(longest.unwrap_or(plan.size)),
            deadline: Instant::now() + Duration::from_secs(plan.timeout),
        })
    }

    // ---- transfers ----

    pub fn post(&self, transfer: Transfer, length: usize, offset: usize) -> Result<(), Failure> {
        Ok(self.queue.post(transfer, length, offset)?)
    }

    /// Returns the statuses of the completions that have arrived, but not more than MOST.
    pub fn completed(&self, most: usize) -> Result<Vec<Status>, Failure> {
        self.completions.poll(most).ok_or_else(|| Failure("ibv_poll_cq() fails".to_owned()))
    }

    /// Makes one transfer, and returns the status of the completion. WHAT names the transfer for messages.
    pub fn transfer(&self, what: &str, transfer: Transfer, length: usize, offset: usize) -> Result<Status, Failure> {
        self.post(transfer, length, offset)?;
        let begun = Instant::now();
        loop {
            if let Some(status) = self.completed(1)?.first() {
                return Ok(*status);
            }
            let now = Instant::now();
            if now > self.deadline {
                return Err(self.no_completion(what));
            }
            if now > begun + AWAKE {
                std::thread::sleep(NAP);
            }
        }
    }

    pub fn no_completion(&self, what: &str) -> Failure {
        Failure(format!("{what}: no completion within {} s", self.plan.timeout))
    }

    /// Writes the whole buffer. The messages are not longer than the device allows.
    pub fn write_once(&self, transfer: Transfer) -> Result<(), Failure> {
        for offset in (0..self.plan.size).step_by(self.message) {
            let length = self.message.min(self.plan.size - offset);
            let what = name(transfer);
            let status = self.transfer(what, transfer, length, offset)?;
            if !status.is_success() {
                let meaning = self.meaning(transfer);
                return Err(Failure(format!("{what}: the RDMA write ended with {status}{meaning}")));
            }
        }
        Ok(())
    }

    // ---- data ----

    /// Moves a pattern to the GPU by a function, and compares it. Returns the result of the function.
    pub fn move_to_gpu(&self, write: impl Fn(Transfer) -> Result<f64, Failure>) -> Result<f64, Failure> {
        let data = self.pattern("to");
        self.memory.put(&poison(data.len()))?;
        self.host.put(&data);
        let measured = write(Transfer::ToGpu)?;
        self.compare(Transfer::ToGpu, &data, &self.memory.get()?)?;
        Ok(measured)
    }

    /// Moves a pattern from the GPU by a function, and compares it. Returns the result of the function.
    pub fn move_from_gpu(&self, write: impl Fn(Transfer) -> Result<f64, Failure>) -> Result<f64, Failure> {
        let data = self.pattern("from");
        self.memory.put(&data)?;
        self.host.put(&poison(data.len()));
        let measured = write(Transfer::FromGpu)?;
        self.compare(Transfer::FromGpu, &data, &self.host.get())?;
        Ok(measured)
    }

    fn pattern(&self, direction: &str) -> Vec<u8> {
        let (gpu, device) = (&self.pair.gpu.pci, &self.pair.port.device);
        pattern(self.plan.size, &format!("{} {gpu} {device} {direction}", self.plan.seed))
    }

    fn compare(&self, transfer: Transfer, expected: &[u8], found: &[u8]) -> Result<(), Failure> {
        match difference(expected, found) {
            Some(wrong) => Err(Failure(format!("{}: {wrong}{}", name(transfer), self.meaning(transfer)))),
            None => Ok(()),
        }
    }

    /// Returns a text about the meaning of a failure in this direction, which is a hint to the part that fails.
    pub fn meaning(&self, transfer: Transfer) -> String {
        let port = self.pair.port;
        if let Some(state) = port.lost(self.pair.machine) {
            return format!("; port {} is {state} now: look at the cable and the switch", port.number);
        }
        let text = match transfer {
            Transfer::ToGpu => "; the RDMA device cannot write into the GPU",
            Transfer::FromGpu | Transfer::ReadGpu => {
                "; the RDMA device cannot read from the GPU: some root complexes forward no reads between their root \
                 ports; see ACS, IOMMU and distance in nvpm status"
            }
        };
        text.to_owned()
    }
}

/// Returns the name of a direction. In both, the RDMA device reads one memory and writes the other itself.
pub fn name(transfer: Transfer) -> &'static str {
    match transfer {
        Transfer::ToGpu => "host to GPU",
        Transfer::FromGpu | Transfer::ReadGpu => "GPU to host",
    }
}

fn of_memory(error: &cuda::Error, size: usize) -> Failure {
    if error.code == cuda::OUT_OF_MEMORY {
        let blocks = cuda::blocks(size) >> 20;
        return Failure(format!("{error}: the GPU has not {blocks} MiB left; --size takes less"));
    }
    Failure(error.to_string())
}

fn of_device(error: verbs::Error) -> Failure {
    let is_about_rights = ["EACCES", "EPERM"].contains(&error.name().as_str());
    Failure(if is_about_rights { format!("{error}: {NO_RIGHT}") } else { error.to_string() })
}

fn of_host_memory(error: verbs::Error) -> Failure {
    let limit = getrlimit(Resource::Memlock).current.filter(|_| error.name() == "ENOMEM");
    let advice = limit.map_or(String::new(), |limit| {
        format!(
            ": this user may lock {} KiB (ulimit -l): raise that limit, use --size with less, or be root",
            limit >> 10
        )
    });
    Failure(format!("{error} of host memory{advice}"))
}

/// Registers the GPU's memory in the way of the trial.
fn registered<'r>(
    pair: &Pair,
    context: &Context,
    domain: &'r Domain,
    memory: &'r Memory,
) -> Result<Region<'r>, Failure> {
    if pair.by_dma_buf {
        // The registration keeps the memory, so the descriptor is not necessary any more.
        let descriptor = memory.exported()?;
        let region = domain.register_dma_buf(descriptor.as_fd(), memory).ok_or_else(|| {
            Failure(format!("{} has no ibv_reg_dmabuf_mr: it is older than rdma-core 34", verbs::LIBRARY))
        })?;
        return region.map_err(|error| Failure(format!("{error} of GPU memory{}", why_refused(context, error))));
    }
    let region = domain.register_gpu(memory).map_err(|error| Failure(format!("{error} of GPU memory")))?;
    if ways::pointer_way_of(pair.machine, &pair.gpu.pci, &pair.port.device).is_empty() {
        return Err(Failure(NOT_BY_US.to_owned()));
    }
    Ok(region)
}

/// Returns why the driver of mlx5 has refused a dma-buf, if the device lacks ODP; otherwise an empty string. Only a
/// registration shows whether a driver needs ODP.
fn why_refused(context: &Context, error: verbs::Error) -> &'static str {
    let is_refused = error.name() == "EOPNOTSUPP";
    if is_refused && context.pages_on_demand() == Some(false) { WITHOUT_ODP } else { "" }
}
