# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests each GPU with each RDMA device that has an active port."""

import argparse
import os
import re
import signal
import sys

from ..commands import Parser
from ..fact import BAD, WARN, bad
from . import Absent, cuda, printers, verbs
from .port import usable_port
from .trial import Trial

# 2 is that of wrong options.
PASSED, FAILED, NOTHING = 0, 1, 3

LARGEST = 1 << 30
NO_GPU = "See lspci -d 10de: and nvidia-smi: is the driver loaded, CUDA_VISIBLE_DEVICES not empty, the GPU given to this container?"
NO_DEVICE = "See /sys/class/infiniband; load the device's driver and ib_uverbs. In a container: give it /dev/infiniband."

# Neither what programs look for nor what the next boot does has a part in whether memory can be registered now.
ELSEWHERE = (("detection", None), ("module", "on boot"))


def size(text):
    found = re.match("([0-9]{1,12})([KMG]?)$", text)
    number = (
        int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)] if found else 0
    )
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size from 1 to 1G")
    return number


def natural(text):
    if not re.match("[0-9]{1,10}$", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return int(text)


def read_options(words):
    parser = Parser(
        "selftest",
        "For each GPU and each RDMA device with an active port: allocates GPU memory, registers it, moves a pattern through the device both ways, compares, frees the memory while it is registered.",
        "Exit codes: 0 each pair passed, 1 some did not, 2 wrong options, 3 there is nothing to test.",
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
    parser.add_argument("--json", action="store_true", help="one object for machines")
    return parser.parse_args(words)


def find_gpus(wanted):
    """All GPUs, and those to test."""
    gpus = cuda.Library().gpus()
    chosen = [gpu for gpu in gpus if not wanted or wanted.lower() in (str(gpu.index), gpu.pci)]
    if not gpus:
        raise Absent("no GPU", NO_GPU)
    if not chosen:
        raise Absent(
            "no GPU " + wanted,
            "These are there: " + ", ".join("%d (%s)" % (gpu.index, gpu.pci) for gpu in gpus),
        )
    return gpus, chosen


def find_ports(machine, wanted, say_not_tested):
    """The library, the names of all RDMA devices, and the ports to test. There may be none."""
    library = verbs.Library()
    names = library.device_names()
    chosen = [name for name in names if wanted in (None, name)]
    if not names:
        raise Absent("no RDMA device", NO_DEVICE)
    if not chosen:
        raise Absent("no RDMA device " + wanted, "These are there: " + ", ".join(names))
    found = [(name, *usable_port(machine, name)) for name in chosen]
    say_not_tested += [(name, reason) for name, port, reason in found if not port]
    return library, names, [port for _, port, _ in found if port]


def unless_absent(missing, look, *words):
    """What LOOK finds, or nothing. What is absent is noted, so that all of it is said at once."""
    try:
        return look(*words)
    except Absent as absent:
        missing.append(absent)
        return None


def status_facts(machine):
    try:
        from ..report import report

        return report(machine).facts
    except Exception:  # the failure is to be told, whatever is wrong with this
        return [bad("status", "status", "does not answer", "nvpm status says why.")]


class Reasons:
    """The lines of `nvpm status` that explain failures. Status is asked once, when something has failed. Each line is given once: what is wrong with the module is wrong for
    every pair."""

    def __init__(self, machine, names):
        self.machine, self.names, self.facts, self.said = machine, set(names), None, set()

    def of(self, *names):
        """Of what is bad those about the module, or about one of these names; where nothing is, of what is not good."""
        if self.facts is None:
            self.facts = [
                fact
                for fact in status_facts(self.machine)
                if not any(
                    fact.section == section and name in (None, fact.name)
                    for section, name in ELSEWHERE
                )
            ]
        others = self.names - set(names)
        for verdict in (BAD, WARN):
            found = [
                fact
                for fact in self.facts
                if fact.verdict == verdict
                and not others & set((fact.section + " " + fact.name).split())
            ]
            if found:
                fresh = [fact for fact in found if fact not in self.said]
                self.said.update(fresh)
                return fresh
        return []


def main(machine, words):
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As an exception, so that everything is given back.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    options, missing, passed_over, passed = read_options(words), [], [], []
    say = printers.Json() if options.json else printers.Text()
    gpus, chosen = unless_absent(missing, find_gpus, options.gpu) or ([], [])
    library, names, ports = unless_absent(
        missing, find_ports, machine, options.device, passed_over
    ) or (None, [], [])
    if library and not ports:
        missing.append(
            Absent("no RDMA device with an active port", "Bring a link up: ibstat, ip link.")
        )
    say.begin(options, len(chosen), len(ports))
    for device, reason in passed_over:
        say.not_tested(device, reason)
    if missing:
        say.absent(missing)
        say.end(NOTHING, 0, 0)
        return NOTHING
    reasons = Reasons(machine, [gpu.pci for gpu in gpus] + names)
    for gpu in chosen:
        try:
            for port in ports:
                trial = Trial(machine, gpu, port, options)
                passed.append(trial.run(library))
                say.pair(trial, [] if passed[-1] else reasons.of(gpu.pci, port.device))
        finally:
            gpu.release()
    code = PASSED if all(passed) else FAILED
    say.end(code, passed.count(True), passed.count(False))
    return code
