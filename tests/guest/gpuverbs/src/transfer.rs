// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `transfer`: bytes from one piece of GPU memory to another, by the NIC.

use std::io;

use crate::args::{usage, Args, Command, Opt};
use crate::buffer::{Buffer, Place};
use crate::failure::Failure;
use crate::gpu::{self, FreeBy, Gpu};
use crate::output;
use crate::pattern::Pattern;
use crate::verbs::{self, Device, Operation, Pair, Pd, Port};

pub const COMMAND: Command = Command {
    name: "transfer",
    summary:
        "Moves a pattern between two registered pieces of GPU memory over a connection to itself",
    options: &[
        &[
            Opt::required("from", "OFFSET", "where in the BAR the source is"),
            Opt::required("to", "OFFSET", "where in the BAR the target is"),
            Opt::required("length", "SIZE", "how much to move"),
            Opt::required("seed", "N", "which pattern"),
            Opt::optional("op", "OP", "write (the default), read or send"),
            Opt::optional(
                "shift",
                "N",
                "bytes between an offset and its buffer's start",
            ),
            Opt::flag(
                "hold",
                "says `holding` and waits for a line of input before giving anything back",
            ),
        ],
        verbs::DEVICE_OPTIONS,
        verbs::PORT_OPTIONS,
        gpu::OPTIONS,
    ],
    run,
};

fn run(args: &Args) -> Result<(), Failure> {
    let length = args.required("length")?;
    let shift = args.number("shift")?.unwrap_or(0);
    let from = Place::aligned(args.required("from")?, shift, length)?;
    let to = Place::aligned(args.required("to")?, shift, length)?;
    let seed = args.required("seed")?;
    let operation = args.choice("op", Operation::NAMES)?;

    let gpu = Gpu::open(args)?;
    let device = Device::open(args)?;
    let port = Port::query(&device, args)?;
    output::value("device", device.name());
    output::value("gid_index", port.gid_index());
    output::value("path_mtu", port.mtu());
    if length > u64::from(port.largest_message()) {
        return Err(usage(format!(
            "--length: one message carries {} bytes at most",
            port.largest_message()
        )));
    }

    let pd = Pd::allocate(&device)?;
    let mut source = Buffer::allocate(&gpu, from)?;
    let mut target = Buffer::allocate(&gpu, to)?;
    let pattern = Pattern::bytes(seed, source.length());
    source.put(&pattern);
    target.poison();
    let source_region = source.register(&pd)?;
    let target_region = target.register(&pd)?;

    let pair = Pair::connect(&pd, &port)?;
    let outcome = pair.run(operation, &source_region, &target_region)?;
    output::value("op", operation);
    output::value("status", outcome);
    if !outcome.is_success() {
        return Err(Failure::Unmet(format!(
            "the {operation} ended with {outcome}"
        )));
    }
    output::value("source_offset", source.place().start());
    output::value("target_offset", target.place().start());
    output::value("length", length);
    output::value("seed", seed);

    for (name, buffer) in [("source", &source), ("target", &target)] {
        if let Err(mismatch) = buffer.check(&pattern) {
            output::value("result", "mismatch");
            return Err(Failure::Unmet(format!("{name}: {mismatch}")));
        }
    }
    output::value("result", "ok");

    if args.flag("hold") {
        output::line("holding");
        // Whatever comes, an end of input included, is the word to go on.
        let _ = io::stdin().read_line(&mut String::new());
    }

    drop(pair);
    for region in [source_region, target_region] {
        region
            .deregister()
            .map_err(Failure::unmet("ibv_dereg_mr()"))?;
    }
    source.free(FreeBy::Munmap)?;
    target.free(FreeBy::Munmap)
}
