# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tries nv_peer_mem on this machine's own GPUs and RDMA devices: looks, says what it will do, and
then loads the module in each mode, tries it, measures it, and puts everything back."""

import argparse
import os
import sys
from pathlib import Path
from typing import List, Optional

import journal
import look
import machine
import page
import peer
import private
import supervise
import undo
from journal import Journal
from steps import Step, plan, plan_of_gpus
from talk import Pair

REFUSED = 2
WARNING = """It unloads the modules that serve GPU memory: programs that register GPU memory
meanwhile fail. It installs nothing, writes only below {state}, and starts
nothing at a boot. At the end, also after Ctrl-C, a failure or a lost connection, the modules are
loaded as they are now. One thing stays until the next reboot: nv_peer_mem_callback, a small module
that cannot be unloaded. A defect of the module, the driver or the RDMA core can crash the machine:
do not run this where that would hurt."""

HARMLESS = """It loads and unloads nothing, installs nothing, and writes only below {state}, and the
name of each step into the kernel's log."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tests/run hardware",
        description=__doc__,
        epilog="Exit codes: 0 everything that was tried held, 1 something did not, "
        "2 refused or wrong options, 3 nothing could be tried.",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="only look and say what would be done"
    )
    parser.add_argument(
        "--pair",
        action="append",
        default=[],
        metavar="GPU:DEVICE",
        help="only this GPU's number and RDMA device, as in 0:mlx5_0; may be repeated",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="begin although GPU memory is registered or other programs use the GPUs",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="STEP",
        help="only steps of this name, as in freed; may be repeated",
    )
    parser.add_argument("--limit", type=int, metavar="SECONDS", help="the most for each step")
    parser.add_argument("--no-measure", action="store_true", help="leave out the measurements")
    parser.add_argument(
        "--gpus",
        action="store_true",
        help="only the GPU's half: kinds of memory, dma-bufs and their time. It needs no RDMA "
        "device and loads no module, so it also runs in a container",
    )
    parser.add_argument(
        "--peer",
        metavar="HOST",
        help="also transfer between this machine and another, which ssh reaches without a password",
    )
    parser.add_argument("--peer-device", metavar="DEVICE", help="the RDMA device there")
    parser.add_argument(
        "--built",
        metavar="DIRECTORY",
        help="take nv_peer_mem.ko, nv_peer_mem_callback.ko and hardware-client from here",
    )
    parser.add_argument(
        "--undo", action="store_true", help="put back what a run that was killed has left"
    )
    parser.add_argument("--page", action="store_true", help="show the page of the newest run again")
    chosen = parser.parse_args()
    if chosen.peer and not peer.HOST.match(chosen.peer):
        parser.error("--peer: this is not the name of a machine")
    if chosen.gpus and (chosen.peer or chosen.pair):
        parser.error("--gpus tries no RDMA device, so it takes neither --pair nor --peer")
    if chosen.peer_device and not peer.DEVICE.match(chosen.peer_device):
        parser.error("--peer-device: this is not the name of an RDMA device")
    return chosen


def tell(text: str = "") -> None:
    print(text, flush=True)


def main() -> int:
    chosen = options()
    if chosen.page:
        return show_page()
    if chosen.undo:
        return put_back()
    found = look.facts()
    tell(look.said_by(look.nvpm()))
    tell()
    if chosen.gpus:
        pairs = [Pair(number, gpu["pci"], "", 0) for number, gpu in enumerate(found["gpus"])]
        steps = plan_of_gpus(pairs, not chosen.no_measure)
    else:
        pairs = pairs_of(found, chosen.pair)
        steps = plan(pairs, not chosen.no_measure, not chosen.built, bool(chosen.peer))
    steps = wanted_steps(steps, chosen.only, chosen.limit)
    tell_plan(found, chosen, pairs, steps)
    if not may_begin(found, chosen, pairs):
        return REFUSED
    if chosen.dry_run:
        tell("--dry-run: nothing was done.")
        return 0
    return begin(found, chosen, pairs, steps)


def pairs_of(found: look.Facts, wanted: List[str]) -> List[Pair]:
    """Returns each GPU with each RDMA device that has an active port, or only the wanted pairs."""
    pairs = [
        Pair(number, gpu["pci"], device["name"], device["port"])
        for number, gpu in enumerate(found["gpus"])
        for device in found["devices"]
        if device["port"]
    ]
    if not wanted:
        return pairs
    return [pair for pair in pairs if f"{pair.gpu}:{pair.device}" in wanted]


def wanted_steps(steps: List[Step], names: List[str], limit: Optional[int]) -> List[Step]:
    """Returns the steps with these names, and those that load and unload modules. All steps if
    there is no name. No step has more than the limit."""
    if limit:
        steps = [step._replace(limit=min(step.limit, limit)) for step in steps]
    return [step for step in steps if not names or not step.pair or step.last in names]


def tell_plan(
    found: look.Facts, chosen: argparse.Namespace, pairs: List[Pair], steps: List[Step]
) -> None:
    seconds = sum(step.takes for step in steps)
    if chosen.gpus:
        tell(f"This run tries {len(pairs)} GPUs, without an RDMA device:")
    else:
        tell(f"This run tries {len(pairs)} pairs of a GPU and an RDMA device:")
    for pair in pairs:
        device = f" with {pair.device}, port {pair.port}" if pair.device else ""
        tell(f"  GPU {pair.gpu} {pair.pci}{device}")
    tell(f"It takes about {max(1, round(seconds / 60))} minutes for {len(steps)} steps:")
    for step in steps:
        tell(f"  {step.name:<46} {step.title}")
    tell()
    tell((HARMLESS if chosen.gpus else WARNING).format(state=private.STATE))
    for name, module in sorted(found["modules"].items()):
        tell("Loaded now: {} {}".format(name, module["version"]).rstrip())
    tell()
    if chosen.gpus:
        tell(page.WITHOUT_RDMA)
    elif not chosen.peer:
        tell(page.WITHOUT_PEER)
    tell("Not tried by this version:")
    for text in page.NEVER:
        tell("  " + text)
    tell()


def may_begin(found: look.Facts, chosen: argparse.Namespace, pairs: List[Pair]) -> bool:
    """Says why the run is refused. Returns whether it may begin."""
    reasons = look.refusals(found, bool(chosen.built), chosen.gpus)
    if not pairs:
        what = "none of the wanted pairs exists" if chosen.pair else "no GPU was found"
        reasons.append(look.Refusal(what, "see nvidia-smi, and the names of rdma link"))
    left = private.unfinished()
    if left:
        reasons.append(look.Refusal(f"the run in {left} has not ended", "--undo"))
    try:
        for path in [private.HERE] + ([Path(chosen.built)] if chosen.built else []):
            private.check_all(path)
    except (private.Unsafe, OSError) as error:
        reasons.append(look.Refusal(f"root must not run this: {error}", "copy it as root"))
    refused = False
    for reason in reasons:
        is_overruled = reason.can_be_overruled and chosen.anyway
        refused = refused or not is_overruled
        tell("{}: {}".format("In spite of" if is_overruled else "REFUSED", reason.why))
        more = " (or --anyway)" if reason.can_be_overruled else ""
        tell(f"  -> {reason.advice}{more}")
    return not refused


def begin(
    found: look.Facts,
    chosen: argparse.Namespace,
    pairs: List[Pair],
    steps: List[Step],
) -> int:
    os.umask(0o077)
    try:
        directory = private.make_directory()
        source = private.copy_sources(directory)
    except private.Unsafe as error:
        tell("REFUSED: " + str(error))
        return REFUSED
    # The selftest would use the module that is unloaded next, and the steps try more.
    report = look.said_by(look.nvpm(), "report", "--no-selftest")
    (directory / "nvpm.txt").write_text(report + "\n", encoding="utf-8")
    Journal(directory).write(
        "begin",
        facts=found,
        boot=machine.boot(),
        version=version_of(source, chosen.built),
        plan=[step.name for step in steps],
        peer=bool(chosen.peer),
        gpus=chosen.gpus,
        pairs=[
            "{} {} {}".format(pair.name, pair.pci, found["gpus"][pair.gpu]["name"])
            for pair in pairs
        ],
    )
    tell(f"The journal, the page and the archive are in {directory}")
    child, said = supervise.detach(directory)
    if child:
        return supervise.follow(child, said)
    code = 1
    try:
        code = supervise.Supervisor(directory, steps, chosen).run()
    finally:
        sys.stdout.flush()
        os._exit(code)


def version_of(source: Path, built: Optional[str]) -> str:
    """Returns the version of the module that is tried, with the checksum of its sources."""
    if built:
        return machine.run(["modinfo", "-F", "version", f"{built}/nv_peer_mem.ko"], 30).output
    identity = source / "build/identity"
    if not identity.exists():
        return "?"
    return machine.run(["sh", str(identity)], 30, source).output.split("\n")[0]


def put_back() -> int:
    """Puts back what a killed run has left, and writes its page."""
    directory = private.unfinished()
    if directory is None:
        tell("There is no run that has left something.")
        return 0
    supervisor = supervisor_of(directory)
    if supervisor:
        tell(f"The run in {directory} is still going on (process {supervisor}).")
        return REFUSED
    undo.ignore_signals()
    for text in undo.undo_all(Journal(directory)):
        tell("  !! " + text)
    records = journal.read(directory)
    if not journal.first(records, "end"):
        # The step that had begun stays the last one on the page.
        step = journal.unfinished_step(records)
        if step:
            crash = "the run was killed, or the machine crashed, in this step"
            Journal(directory).write("line", step=step, word="bad", text=crash)
            Journal(directory).write("done", step=step, verdict="crashed", seconds=0)
        Journal(directory).write("end", why="killed" + (" in the step " + step if step else ""))
    page.write(directory)
    return 1 if journal.to_undo(journal.read(directory)) else 0


def supervisor_of(directory: Path) -> int:
    """Returns the process of a run that is going on, or 0."""
    record = journal.first(journal.read(directory), "supervisor")
    pid = int(record.get("pid", 0))
    return pid if pid and machine.born(pid) == record.get("born") else 0


def show_page() -> int:
    runs = private.runs()
    if not runs:
        tell("There was no run.")
        return page.NOTHING
    return page.write(runs[-1])


if __name__ == "__main__":
    sys.exit(main())
