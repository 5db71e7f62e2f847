# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The steps that build the module, load it in a mode, and unload it."""

import built
import machine
import undo
from context import PERSISTENT, REVOCABLE, Context

PARAMETERS = {
    PERSISTENT: ["persistent_api_support=1"],
    REVOCABLE: ["persistent_api_support=0"],
}


def prepare(c: Context) -> None:
    """Builds module and client, or takes the built ones of --built."""
    c.built.mkdir(mode=0o700, exist_ok=True)
    if c.options.built:
        built.taken(c.options.built, [*built.FILES, c.client_file.name], c.built)
        c.ok(f"taken from {c.options.built}, not built here")
        return
    wrong = built.module(c.source, c.directory / "build.log")
    if not wrong:
        for name in built.FILES:
            (c.built / name).write_bytes((c.source / name).read_bytes())
        c.ok("the module is built for this kernel")
        wrong = built.client(c.source, c.client_file, c.directory / "client.log")
    c.check("the client is compiled", not wrong, wrong)


def take_out(c: Context) -> None:
    """Stops the service and unloads the module that serves GPU memory, until the end of the run."""
    stays = undo.stop(c.journal, "nv_peer_mem.service")
    holders = machine.paths("/sys/module/nv_peer_mem/holders/*")
    if undo.loaded("nv_peer_mem") and any(path.endswith("/nvidia_peermem") for path in holders):
        wrong = undo.take_out(c.journal, "nvidia_peermem", undo.MARKER)
    else:
        wrong = undo.take_out(c.journal, "nvidia_peermem", "nvidia-peermem")
    wrong = stays or wrong or undo.take_out(c.journal, "nv_peer_mem", "nv_peer_mem")
    c.check("no module serves GPU memory", not wrong, wrong)


def put_in(c: Context) -> None:
    """Loads the built module in a mode. The module that receives callbacks stays until a reboot."""
    wrong = undo.unload(["nv_peer_mem"]) or undo.unload(["nvidia_peermem"])
    if not wrong and not undo.loaded("nv_peer_mem_callback"):
        callback = machine.run(["insmod", str(c.built / built.FILES[0])], undo.LIMIT)
        wrong = callback.output if callback.code else ""
    wrong = wrong or undo.put_in(
        c.journal, "nv_peer_mem", c.built / built.FILES[1], PARAMETERS[c.mode]
    )
    c.check(f"loaded with {PARAMETERS[c.mode][0]}", not wrong, wrong)


def out_again(c: Context) -> None:
    """The module can be unloaded after all that was done with it."""
    wrong = undo.unload(["nv_peer_mem"])
    c.check("the module can be unloaded", not wrong, wrong)
