// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `leave`: registrations that another process deregisters, until there is one too many.

use crate::args::{usage, Args, Command, Opt};
use crate::expect::{result_of, Expected, OPTION};
use crate::failure::Failure;
use crate::gpu::FreeBy;
use crate::machine::{self, Machine};
use crate::output;
use crate::process;
use crate::verbs::{Access, Mr, Pd};

pub const COMMAND: Command = Command {
    name: "leave",
    summary: "Registers GPU memory, has a child deregister it, and registers once more",
    options: &[
        &[
            Opt::required("offset", "OFFSET", "where in the BAR to allocate"),
            Opt::required("length", "SIZE", "how much to register"),
            Opt::required("count", "N", "how often the child deregisters"),
            OPTION,
        ],
        machine::OPTIONS,
    ],
    run,
};

/// Says `holding` twice: with all left behind, and when the memory is freed.
fn run(args: &Args) -> Result<(), Failure> {
    let offset = args.required("offset")?;
    let length = args.required("length")?;
    let count = args.required("count")?;
    let expected = Expected::parse(args)?;
    let bytes = usize::try_from(length).map_err(|_| usage("--length is too large"))?;
    let machine = Machine::open(args)?;
    let pd = Pd::allocate(&machine.device)?;
    let mut memory = machine
        .gpu
        .allocate(offset, length)
        .map_err(Failure::unmet("allocating GPU memory"))?;
    let range = memory.range(0, bytes);

    let regions = (0..count)
        .map(|_| pd.register(range, Access::ALL))
        .collect::<Result<Vec<Mr>, _>>()
        .map_err(Failure::unmet("ibv_reg_mr()"))?;
    deregister_in_child(regions)?;
    let result = pd.register(range, Access::ALL);
    let word = result_of(&result);
    output::value("result", &word);
    expected.check("the registration after them", &word)?;
    drop(result.map(Mr::deregister));
    output::hold();

    memory
        .free(FreeBy::Ioctl)
        .map_err(Failure::unmet("freeing GPU memory"))?;
    output::hold();
    Ok(())
}

/// The child has them from us, as it has everything; here they are gone then.
fn deregister_in_child(regions: Vec<Mr>) -> Result<(), Failure> {
    let mut regions = Some(regions);
    let child = process::fork(|| {
        let all = regions.take().unwrap_or_default();
        u8::from(!all.into_iter().all(|region| region.deregister().is_ok()))
    })
    .map_err(Failure::environment("a new process"))?;
    let status = child
        .wait()
        .map_err(Failure::unmet("waiting for a process"))?;
    // What this process has of them is nothing any more.
    regions.into_iter().flatten().for_each(std::mem::forget);
    match status.success() {
        true => Ok(()),
        false => Err(Failure::Unmet("the child did not deregister".to_owned())),
    }
}
