// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `pattern`: the bytes of a seed, for whoever compares. Needs no RDMA device.

use std::io::{self, Write};

use crate::args::{Args, Command, Opt};
use crate::failure::Failure;
use crate::pattern::Pattern;

pub const COMMAND: Command = Command {
    name: "pattern",
    summary: "Writes the bytes of a pattern to standard output, and nothing else",
    options: &[&[
        Opt::required("seed", "N", "which pattern"),
        Opt::required("length", "SIZE", "how many bytes of it"),
    ]],
    run,
};

/// At a time; a multiple of the pattern's word.
const PIECE: usize = 64 * 1024;

fn run(args: &Args) -> Result<(), Failure> {
    let mut left = args.required("length")?;
    let mut pattern = Pattern::new(args.required("seed")?);
    let mut out = io::stdout().lock();
    let mut bytes = vec![0; PIECE];
    let failed = || Failure::unmet("writing the pattern");
    while left > 0 {
        let size = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let piece = &mut bytes[..size];
        pattern.fill(piece);
        out.write_all(piece).map_err(failed())?;
        left -= size as u64;
    }
    out.flush().map_err(failed())
}
