// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `register`: a registration of GPU memory, and its end.

use std::sync::Arc;

use crate::args::{usage, Args, Command, Opt};
use crate::expect::{self, result_of, Expected};
use crate::failure::Failure;
use crate::gpu::{FreeBy, GpuMemory, Range};
use crate::machine::{self, Machine};
use crate::output;
use crate::verbs::{Access, Mr, Pd};

pub const COMMAND: Command = Command {
    name: "register",
    summary: "Registers GPU memory, deregisters it, and says how that went",
    options: &[
        &[
            Opt::required("offset", "OFFSET", "where in the BAR to allocate"),
            Opt::required("length", "SIZE", "how much to register"),
            expect::OPTION,
            Opt::optional(
                "cycles",
                "N",
                "registers and deregisters N times (default: 1)",
            ),
            Opt::optional(
                "kept",
                "N",
                "registers it N times, says `holding`, and deregisters after a line of input",
            ),
        ],
        machine::OPTIONS,
    ],
    run,
};

fn run(args: &Args) -> Result<(), Failure> {
    let offset = args.required("offset")?;
    let length = args.required("length")?;
    let cycles = args.number("cycles")?.unwrap_or(1);
    if cycles == 0 {
        return Err(usage("--cycles must not be 0"));
    }
    let expected = Expected::parse(args)?;
    let bytes = usize::try_from(length).map_err(|_| usage("--length is too large"))?;

    let machine = Machine::open(args)?;
    output::value("offset", offset);
    output::value("length", length);

    let pd = Pd::allocate(&machine.device)?;
    let mut memory = machine
        .gpu
        .allocate(offset, length)
        .map_err(Failure::unmet(format_args!(
            "allocating {length} bytes of GPU memory at offset {offset}"
        )))?;
    let range = memory.range(0, bytes);
    if let Some(kept) = args.number("kept")? {
        keep(&pd, range, kept)?;
    }
    for cycle in 1..=cycles {
        let result = pd.register(range, Access::ALL);
        let word = result_of(&result);
        // The last one speaks for all, unless one is different.
        if cycle == cycles || !expected.has(&word) {
            output::value("cycle", cycle);
            output::value("result", &word);
        }
        expected.check(&format!("ibv_reg_mr() number {cycle} of {cycles}"), &word)?;
        if let Ok(region) = result {
            if cycle == cycles {
                report_pins(&memory)?;
            }
            region.deregister().map_err(Failure::unmet(format_args!(
                "ibv_dereg_mr() number {cycle}"
            )))?;
        }
    }
    memory
        .free(FreeBy::Munmap)
        .map_err(Failure::unmet("munmap() of GPU memory"))
}

/// So many at once, for others to look at.
fn keep(pd: &Arc<Pd>, range: Range, count: u64) -> Result<(), Failure> {
    let regions = (0..count)
        .map(|_| pd.register(range, Access::ALL))
        .collect::<Result<Vec<Mr>, _>>()
        .map_err(Failure::unmet("ibv_reg_mr()"))?;
    output::hold();
    for region in regions {
        region
            .deregister()
            .map_err(Failure::unmet("ibv_dereg_mr()"))?;
    }
    Ok(())
}

/// Which kind of registration it is.
fn report_pins(memory: &GpuMemory) -> Result<(), Failure> {
    let pins = memory
        .pins()
        .map_err(Failure::unmet("asking the GPU for its pins"))?;
    if let Some(pins) = pins {
        output::value("pins", pins.revocable);
        output::value("persistent_pins", pins.persistent);
    }
    Ok(())
}
