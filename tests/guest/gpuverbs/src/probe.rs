// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `probe`: registers addresses that a program has no business to register, or
//! that make no sense.

use std::io;

use crate::args::{usage, Args, Command, Opt};
use crate::expect::{self, result_of, Expected};
use crate::failure::Failure;
use crate::gpu::Range;
use crate::layout::{Layout, Part};
use crate::machine::{self, Machine};
use crate::output;
use crate::verbs::{Access, Pd};

pub const COMMAND: Command = Command {
    name: "probe",
    summary: "Registers any addresses, and says what came of it",
    options: &[
        &[
            Opt::optional("address", "ADDRESS", "first of them"),
            Opt::optional(
                "parts",
                "KIND:SIZE,…",
                "lays gpu, host and hole one behind the other, and counts from there instead",
            ),
            Opt::optional(
                "offset",
                "OFFSET",
                "where in the BAR the gpu parts begin (default: 0)",
            ),
            Opt::optional("skip", "N", "begins so many bytes later"),
            Opt::optional(
                "length",
                "SIZE",
                "how many (default: to the end of the parts)",
            ),
            expect::OPTION,
        ],
        machine::OPTIONS,
    ],
    run,
};

fn run(args: &Args) -> Result<(), Failure> {
    let expected = Expected::parse(args)?;
    let parts = match args.text("parts") {
        Some(text) => Part::parse_all(text)
            .ok_or_else(|| usage(format!("--parts: '{text}' is no list of parts")))?,
        None => Vec::new(),
    };
    let machine = Machine::open(args)?;
    let layout = Layout::new(&machine.gpu, args.number("offset")?.unwrap_or(0), &parts)
        .map_err(Failure::unmet("laying out the parts"))?;

    let skip = args.number("skip")?.unwrap_or(0);
    let start = match args.number("address")? {
        Some(address) => address,
        None => layout.start(),
    };
    let rest = layout.size().saturating_sub(skip);
    let length = args.number("length")?.unwrap_or(rest);
    let bytes = usize::try_from(length).map_err(|_| usage("--length is too large"))?;
    let range = Range::of_addresses(start.wrapping_add(skip), bytes);
    output::value("address", format_args!("{:#x}", range.addr()));
    output::value("length", length);

    let pd = Pd::allocate(&machine.device)?;
    let result = pd.register(range, Access::ALL);
    let word = result_of(&result);
    output::value("result", &word);
    if let Ok(region) = result {
        region
            .deregister()
            .map_err(Failure::unmet("ibv_dereg_mr()"))?;
    }
    nothing_pinned(&layout).map_err(Failure::unmet("asking the GPU for its pins"))?;
    expected.check("ibv_reg_mr()", &word)
}

fn nothing_pinned(layout: &Layout) -> io::Result<()> {
    for memory in layout.gpu_memory() {
        let pins = memory.pins()?;
        if pins.is_some_and(|pins| pins.revocable + pins.persistent > 0) {
            return Err(io::Error::other("there are some"));
        }
    }
    Ok(())
}
