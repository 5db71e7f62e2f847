// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Commands that register GPU memory, or try to register it, but transfer nothing.

use std::fs::File;
use std::os::unix::fs::FileExt;

use anyhow::{bail, ensure, Context, Result};

use crate::gpu::{FreeBy, GpuMemory, Layout, Machine, Part, Range, GPU_PAGE};
use crate::value::{hold, result_of, say, size, OK};
use crate::verbs::{deregister, Hca, Mr, ALL};

/// The memory to allocate and register.
#[derive(clap::Args)]
pub struct Memory {
    /// Offset of the allocation in the BAR
    #[arg(long, value_parser = size)]
    offset: u64,
    /// Number of bytes to register
    #[arg(long, value_parser = size)]
    length: u64,
}

impl Memory {
    pub fn allocate(&self, machine: &Machine) -> Result<(GpuMemory, Range)> {
        let memory = machine.gpu.allocate(self.offset, self.length);
        let memory = memory.context("allocating GPU memory")?;
        let range = memory.range(0, self.length);
        Ok((memory, range))
    }
}

/// Registers the range `count` times, and returns all registrations.
pub fn register_all(hca: &Hca, range: Range, count: u64) -> Result<Vec<Mr>> {
    (0..count).map(|_| hca.register(range, ALL).context("ibv_reg_mr()")).collect()
}

/// Registers memory, deregisters it, and prints the result
///
/// The memory is the GPU's, or any range of addresses, because some ranges must be refused.
#[derive(clap::Args)]
#[command(alias = "probe")]
pub struct Register {
    /// Offset of the GPU's memory in the BAR, with flags of lab_gpu.h
    #[arg(long, value_parser = size, default_value = "0")]
    offset: u64,
    /// Number of bytes to register; to the end of the parts if not given
    #[arg(long, value_parser = size)]
    length: Option<u64>,
    /// Places these parts one after another, in place of GPU memory of this length
    #[arg(long, value_enum, value_delimiter = ',')]
    parts: Vec<Part>,
    /// Registers the memory at this address, in place of parts or GPU memory
    #[arg(long, value_parser = size)]
    address: Option<u64>,
    /// Number of bytes to skip at the start of the memory
    #[arg(long, value_parser = size, default_value = "0")]
    skip: u64,
    /// Accepted results: ok, or names of errors such as ENOMEM
    #[arg(long, value_delimiter = ',', default_value = OK)]
    expect: Vec<String>,
    /// Number of registrations, one after another
    #[arg(long, default_value_t = 1)]
    cycles: u64,
    /// First registers the memory so many times, prints `holding`, and deregisters after a line of
    /// input
    #[arg(long)]
    kept: Option<u64>,
}

impl Register {
    pub fn run(self) -> Result<()> {
        let machine = Machine::open()?;
        let layout = Layout::new(machine.gpu, &self.parts, self.offset).context("the parts")?;
        let addr = self.address.unwrap_or(layout.start).wrapping_add(self.skip);
        let rest = (self.parts.len() as u64 * GPU_PAGE).saturating_sub(self.skip);
        let length = self.length.unwrap_or(rest);
        let (mut _memory, mut range) = (None, Range { addr, length });
        if self.address.is_none() && self.parts.is_empty() {
            let (made, whole) = Memory { offset: self.offset, length }.allocate(&machine)?;
            (_memory, range) = (Some(made), whole);
        }
        if let Some(kept) = self.kept {
            let regions = register_all(&machine.hca, range, kept)?;
            hold();
            deregister(regions)?;
        }
        for cycle in 1..=self.cycles {
            let result = machine.hca.register(range, ALL);
            let word = result_of(&result);
            let met = self.expect.contains(&word);
            // Only unexpected results and the last result are printed.
            if cycle == self.cycles || !met {
                say("result", &word);
            }
            ensure!(
                met,
                "number {cycle} ended with {word}, expected was {}",
                self.expect.join(" or ")
            );
            deregister(result)?;
        }
        layout.gpu.iter().try_for_each(nothing_pinned)
    }
}

fn nothing_pinned(memory: &GpuMemory) -> Result<()> {
    ensure!(memory.pins()? == 0, "GPU memory stays pinned");
    Ok(())
}

/// Registers GPU memory with one allocation after another failing in the kernel
///
/// The first allocation fails, then the second, and so on, until all succeed.
#[derive(clap::Args)]
pub struct FailAllocations {
    #[command(flatten)]
    memory: Memory,
    /// The operation in which the kernel runs out of memory
    #[arg(long, value_enum, default_value = "register")]
    during: During,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum During {
    Register,
    Deregister,
}

impl FailAllocations {
    pub fn run(self) -> Result<()> {
        let machine = Machine::open()?;
        let (mut memory, range) = self.memory.allocate(&machine)?;
        let register = || machine.hca.register(range, ALL);
        // The first registration of a process makes allocations that later registrations do not
        // make. They must not fail here, so the process makes one registration before.
        deregister([register().context("with memory enough")?])?;

        // This file exists only in a kernel with fault injection (CONFIG_FAULT_INJECTION).
        let file = File::options().read(true).write(true).open("/proc/thread-self/fail-nth");
        let file = file.context("fail-nth")?;
        let (mut survived, mut failed) = (0, 0);
        for nth in 1u64.. {
            let mut region = None;
            if let During::Deregister = self.during {
                region = Some(register().context("with memory enough")?);
            }
            file.write_all_at(nth.to_string().as_bytes(), 0).context("fail-nth")?;
            let result = match &mut region {
                Some(region) => region.try_deregister(),
                None => register().map(|made| region = Some(made)),
            };
            let mut left = [0; 20];
            let length = file.read_at(&mut left, 0);
            file.write_all_at(b"0", 0).context("fail-nth")?;
            // After a deregistration that has failed, a second try must succeed.
            deregister(region)?;
            nothing_pinned(&memory).with_context(|| format!("without the {nth}th allocation"))?;
            match result_of(&result).as_str() {
                // The number in the file counts down to 0. It is 0 if the allocation has failed.
                _ if left[..length?].trim_ascii() != b"0" => break,
                OK => survived += 1,
                "ENOMEM" => failed += 1,
                other => bail!("without the {nth}th allocation it ended with {other}"),
            }
        }
        say("allocations", survived + failed);
        say("ended_with_ENOMEM", failed);
        memory.free(FreeBy::Munmap).context("munmap() of GPU memory")
    }
}
