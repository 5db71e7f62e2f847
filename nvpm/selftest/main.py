# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests each GPU with each RDMA device that has an active port."""

import argparse
import os
import re
import sys
from typing import Callable, List, NamedTuple, Optional, Sequence, Set, Tuple, TypeVar

from ..facts.fact import BAD, WARN, Fact, bad
from ..options import Parser
from ..read import dma_buf, ways
from ..read.machine import Machine
from ..show.page import NewFile
from . import Absent, cuda, matrix, printers, verbs
from .bandwidth import Flow
from .judge import all_software
from .port import Port, usable_port
from .trial import Trial

# Exit codes. The parser of options uses 2 for wrong options.
PASSED, FAILED, WRONG, NOTHING = range(4)

LARGEST = 1 << 30
SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}

NO_GPU = (
    "See lspci -d 10de: and nvidia-smi: is the driver loaded, CUDA_VISIBLE_DEVICES not empty, "
    "the GPU given to this container?"
)
NO_DEVICE = (
    "See /sys/class/infiniband; load the device's driver and ib_uverbs. "
    "In a container: give it /dev/infiniband."
)
NO_PORT = Absent("no RDMA device with an active port", "Bring a link up: ibstat, ip link.")
NO_STATUS = bad("status", "status", "does not answer", "nvpm status says why.")

Found = TypeVar("Found")


def size(text: str) -> int:
    found = re.match("([0-9]{1,12})([KMG]?)$", text)
    number = int(found[1]) << SHIFTS[found[2]] if found else 0
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size from 1 to 1G")
    return number


def natural(text: str) -> int:
    if not re.match("[0-9]{1,10}$", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return int(text)


def read_options(machine: Machine, words: List[str]) -> argparse.Namespace:
    parser = Parser(
        "selftest",
        "For each GPU and each RDMA device with an active port: allocates GPU memory, registers "
        "it, moves a pattern through the device both ways, compares, frees the memory while it is "
        "registered.",
        "Exit codes: 0 each pair passed, 1 some did not, 2 wrong options or --html FILE "
        "cannot be written, 3 there is nothing to test.",
    )
    parser.add_argument(
        "--size",
        type=size,
        default="16M",
        help="bytes that are moved each way, with K, M or G behind; 16M",
    )
    parser.add_argument(
        "--gpu", metavar="N", help="this one only: its number in nvidia-smi, or its PCI address"
    )
    parser.add_argument("--device", metavar="NAME", help="this RDMA device only")
    parser.add_argument(
        "--seed",
        type=natural,
        metavar="N",
        default=int.from_bytes(os.urandom(4), "little"),
        help="of the pattern; by default another one each time",
    )
    parser.add_argument(
        "--timeout",
        type=natural,
        default="30",
        metavar="SECONDS",
        help="for the transfers of a pair; 30",
    )
    parser.add_argument(
        "--bandwidth",
        action="store_true",
        help="measures instead: sustained transfers with many messages at a time, both ways, one "
        "pair after the other; other jobs get less from these devices meanwhile",
    )
    parser.add_argument(
        "--seconds",
        type=natural,
        default="1",
        metavar="N",
        help="with --bandwidth: for each direction of each pair; 1",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="with --bandwidth: also writes a page for a browser, FILE, which must be new",
    )
    parser.add_argument("--json", action="store_true", help="one object for machines")
    options = parser.read(machine, words)
    if options.html and not options.bandwidth:
        parser.error("--html shows rates: name --bandwidth with it")
    return options


# ---- the GPUs and ports to test ----


class Gpus(NamedTuple):
    all: List[cuda.Gpu]
    chosen: List[cuda.Gpu]


class Ports(NamedTuple):
    library: verbs.Library
    devices: List[str]
    ports: List[Port]
    # Names of the devices that are not tested, with the reasons.
    not_tested: List[Tuple[str, str]]


def find_gpus(wanted: Optional[str]) -> Gpus:
    gpus = cuda.Library().gpus()
    if not gpus:
        raise Absent("no GPU", NO_GPU)
    if wanted is None:
        return Gpus(gpus, gpus)
    chosen = [gpu for gpu in gpus if wanted.lower() in ("", str(gpu.index), gpu.pci)]
    if not chosen:
        there = ", ".join(f"{gpu.index} ({gpu.pci})" for gpu in gpus)
        raise Absent(f"no GPU {wanted}", f"These are there: {there}")
    return Gpus(gpus, chosen)


def find_ports(machine: Machine, wanted: Optional[str]) -> Ports:
    library = verbs.Library()
    names = library.device_names()
    if not names:
        raise Absent("no RDMA device", NO_DEVICE)
    if wanted is not None and wanted not in names:
        raise Absent(f"no RDMA device {wanted}", "These are there: " + ", ".join(names))
    found = Ports(library, names, [], [])
    for name in names if wanted is None else [wanted]:
        port, reason = usable_port(machine, name)
        if port:
            found.ports.append(port)
        else:
            found.not_tested.append((name, reason))
    return found


def unless_absent(missing: List[Absent], look: Callable[[], Found]) -> Optional[Found]:
    """Returns the result of LOOK. If LOOK raises Absent, adds the exception to MISSING, so that all
    missing things can be named at once, and returns None."""
    try:
        return look()
    except Absent as absent:
        missing.append(absent)
        return None


# ---- the lines of status that explain a failure ----


def status_facts(machine: Machine) -> List[Fact]:
    try:
        from ..facts.status import status_of

        return status_of(machine).facts
    except Exception:  # the failure must be printed in any case
        return [NO_STATUS]


def matters(fact: Fact) -> bool:
    """Returns whether the fact can explain a failure. Facts about how programs detect GPUDirect
    RDMA, and facts about the next boot, cannot explain a failure."""
    return fact.section != "detection" and (fact.section, fact.name) != ("module", "on boot")


class Reasons:
    """Selects the lines of `nvpm status` that explain failures. Status is computed once, after the
    first failure. Each line is returned only once, because a defect of the module concerns every
    pair."""

    def __init__(self, machine: Machine, names: List[str]) -> None:
        self.machine, self.names = machine, set(names)
        self.facts: Optional[List[Fact]] = None
        self.said: Set[Fact] = set()

    def of(self, *names: str) -> List[Fact]:
        """Returns the bad facts that are about NAMES or about no device. If there are no such
        facts, returns the warnings. Facts that were returned before are left out."""
        if self.facts is None:
            self.facts = [fact for fact in status_facts(self.machine) if matters(fact)]
        others = self.names - set(names)
        about = [
            fact for fact in self.facts if not others & {*fact.section.split(), *fact.name.split()}
        ]
        for verdict in (BAD, WARN):
            found = [fact for fact in about if fact.verdict == verdict]
            if found:
                fresh = [fact for fact in found if fact not in self.said]
                self.said.update(fresh)
                return fresh
        return []


# ---- the test ----


def main(machine: Machine, words: List[str]) -> int:
    options = read_options(machine, words)
    if not options.html:
        return test(machine, options, None)
    try:
        file = NewFile(options.html)
    except OSError as error:
        return not_written(options.html, error)
    try:
        with file:
            return test(machine, options, file)
    finally:
        if not file.kept:
            sys.stderr.write(f"nvpm selftest: {options.html} is not written\n")


def not_written(path: str, error: OSError) -> int:
    sys.stderr.write(f"nvpm selftest: {path} cannot be written: {error.strerror}\n")
    return WRONG


def test(machine: Machine, options: argparse.Namespace, file: Optional[NewFile]) -> int:
    say = printer(options)
    missing: List[Absent] = []
    gpus = unless_absent(missing, lambda: find_gpus(options.gpu))
    ports = unless_absent(missing, lambda: find_ports(machine, options.device))
    if ports and not ports.ports:
        missing.append(NO_PORT)
    say.begin(options, len(gpus.chosen) if gpus else 0, len(ports.ports) if ports else 0)
    for device, reason in ports.not_tested if ports else []:
        say.not_tested(device, reason)
    if missing or not gpus or not ports:
        say.absent(missing)
        say.end(NOTHING, 0, 0)
        return NOTHING
    passed = test_all(machine, gpus, ports, options, say)
    code = PASSED if all(passed) and not say.slow else FAILED
    say.end(code, passed.count(True), passed.count(False))
    if file and isinstance(say, (matrix.Text, matrix.Json)):
        try:
            write(machine, file, say.flows, ports.not_tested)
        except OSError as error:
            return not_written(options.html, error)
    return code


def write(
    machine: Machine,
    file: NewFile,
    flows: Sequence[Flow],
    not_tested: List[Tuple[str, str]],
) -> None:
    from .page import as_page

    file.keep(as_page(machine.host, flows, not_tested, all_software(machine, flows)))


def printer(options: argparse.Namespace) -> printers.Text:
    if options.bandwidth:
        return matrix.Json() if options.json else matrix.Text()
    return printers.Json() if options.json else printers.Text()


def ways_to_test(machine: Machine, gpu: str, port: Port) -> List[bool]:
    """Returns the ways to test with a pair: False stands for a pointer, True for a dma-buf. A pair
    without a way is tested by pointer, because the failure then tells the reason."""
    by_dma_buf = port.device in dma_buf.taken_by(machine)
    by_pointer = ways.pointer_way_of(machine, gpu, port.device) or not by_dma_buf
    return [way for way, there in ((False, by_pointer), (True, by_dma_buf)) if there]


def test_all(
    machine: Machine, gpus: Gpus, ports: Ports, options: argparse.Namespace, say: printers.Text
) -> List[bool]:
    """Tests each pair by each way. Returns for each test whether it passed."""
    passed: List[bool] = []
    trials: List[Trial] = []
    kind = Flow if options.bandwidth else Trial
    reasons = Reasons(machine, [gpu.pci for gpu in gpus.all] + ports.devices)
    for gpu in gpus.chosen:
        try:
            for port in ports.ports:
                for by_dma_buf in ways_to_test(machine, gpu.pci, port):
                    trial = kind(machine, gpu, port, by_dma_buf, options)
                    say.progress(trial, len(passed))
                    passed.append(trial.run(ports.library))
                    trials.append(trial)
                    say.pair(trial, [] if passed[-1] else reasons.of(gpu.pci, port.device))
        finally:
            gpu.release()
    say.judged(machine, trials)
    return passed
