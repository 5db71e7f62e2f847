// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `transfer`: bytes from one piece of GPU memory to another, by the NIC.

use std::io;

use crate::args::{usage, Args, Command, Opt};
use crate::buffer::{Buffer, Ends, ENDS_OPTIONS};
use crate::failure::Failure;
use crate::gpu::FreeBy;
use crate::machine::{self, Machine};
use crate::output;
use crate::pattern::Pattern;
use crate::verbs::{Operation, Pair, Pd, PORT_OPTIONS};

pub const COMMAND: Command = Command {
    name: "transfer",
    summary:
        "Moves a pattern between two registered pieces of GPU memory over a connection to itself",
    options: &[
        ENDS_OPTIONS,
        &[
            Opt::optional("op", "OP", "write (the default), read or send"),
            Opt::flag(
                "hold",
                "says `holding` and waits for a line of input before giving anything back",
            ),
        ],
        machine::OPTIONS,
        PORT_OPTIONS,
    ],
    run,
};

fn run(args: &Args) -> Result<(), Failure> {
    let ends = Ends::parse(args)?;
    let operation = args.choice("op", Operation::NAMES)?;

    let machine = Machine::open(args)?;
    let port = machine.port(args)?;
    output::value("gid_index", port.gid_index());
    output::value("path_mtu", port.mtu());
    let length = ends.from.length;
    if length > u64::from(port.largest_message()) {
        return Err(usage(format!(
            "--length: one message carries {} bytes at most",
            port.largest_message()
        )));
    }

    let pd = Pd::allocate(&machine.device)?;
    let mut source = Buffer::allocate(&machine.gpu, ends.from)?;
    let mut target = Buffer::allocate(&machine.gpu, ends.to)?;
    let pattern = Pattern::bytes(ends.seed, source.length());
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
    output::value("seed", ends.seed);

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
