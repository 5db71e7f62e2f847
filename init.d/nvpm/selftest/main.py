# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The test of each GPU with each RDMA device that has an active port."""
import argparse
import os
import re
import signal
import sys

from ..commands import Parser
from . import Absent, cuda, printers, verbs
from .port import usable_port
from .reasons import Reasons
from .trial import Trial

# 2 is that of wrong options.
PASSED, FAILED, NOTHING = 0, 1, 3

LARGEST = 1 << 30


def _size(text):
    found = re.match("([0-9]{1,12})([KMG]?)$", text)
    number = int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)] if found else 0
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError("'%s' is not a size from 1 to 1G" % text)
    return number


def _natural(text):
    if not re.match("[0-9]{1,10}$", text):
        raise argparse.ArgumentTypeError("'%s' is not a number" % text)
    return int(text)


def _options(words):
    parser = Parser(
        "selftest", "For each GPU and each RDMA device with an active port: allocates GPU memory, registers it, moves a pattern through the "
        "device both ways, compares, frees the memory while it is registered.",
        "Exit codes: 0 each pair passed, 1 some did not, 2 wrong options, 3 there is nothing to test.")
    parser.add_argument("--size", type=_size, default="16M", help="bytes that are moved each way, with K, M or G behind; 16M")
    parser.add_argument("--gpu", metavar="N", help="this one only: its number in nvidia-smi, or its PCI address")
    parser.add_argument("--device", metavar="NAME", help="this RDMA device only")
    parser.add_argument("--seed", type=_natural, metavar="N", default=int.from_bytes(os.urandom(4), "little"),
                        help="of the pattern; by default another one each time")
    parser.add_argument("--timeout", type=_natural, default="30", metavar="SECONDS", help="for the transfers of a pair; 30")
    parser.add_argument("--json", action="store_true", help="one object for machines")
    return parser.parse_args(words)


def _gpus(wanted):
    """All of them, and those to test."""
    gpus = cuda.Library().gpus()
    if not gpus:
        raise Absent("no GPU", "See lspci -d 10de: and nvidia-smi: is the driver loaded, CUDA_VISIBLE_DEVICES not empty, the GPU given to "
                     "this container?")
    chosen = [gpu for gpu in gpus if not wanted or wanted.lower() in (str(gpu.index), gpu.pci)]
    if not chosen:
        raise Absent("no GPU " + wanted, "These are there: " + ", ".join("%d (%s)" % (gpu.index, gpu.pci) for gpu in gpus))
    return gpus, chosen


def _devices(library, wanted):
    """The names of all RDMA devices, and of those to test."""
    names = library.device_names()
    if not names:
        raise Absent("no RDMA device", "See /sys/class/infiniband; load the device's driver and ib_uverbs. In a container: give it "
                     "/dev/infiniband.")
    chosen = [name for name in names if wanted in (None, name)]
    if not chosen:
        raise Absent("no RDMA device " + wanted, "These are there: " + ", ".join(names))
    return names, chosen


def _unless_absent(missing, look, *words):
    """What LOOK finds. What is absent is noted, so that all of it is said at once."""
    try:
        return look(*words)
    except Absent as absent:
        missing.append(absent)
        return None


def main(machine, words):
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As an exception, so that everything is given back.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    options, missing = _options(words), []
    say = printers.Json() if options.json else printers.Text()
    gpus, chosen = _unless_absent(missing, _gpus, options.gpu) or ([], [])
    library = _unless_absent(missing, verbs.Library)
    names, devices = library and _unless_absent(missing, _devices, library, options.device) or ([], [])
    ports = [(name, *usable_port(machine, name)) for name in devices]
    usable = [port for _, port, _ in ports if port]
    if devices and not usable:
        missing.append(Absent("no RDMA device with an active port", "Bring a link up: ibstat, ip link."))
    say.begin(options, len(chosen), len(usable))
    for name, port, reason in ports:
        if not port:
            say.not_tested(name, reason)
    if missing:
        say.absent(missing)
        say.end(NOTHING, 0, 0)
        return NOTHING
    reasons, passed = Reasons(machine, [gpu.pci for gpu in gpus] + names), []
    for gpu in chosen:
        try:
            for port in usable:
                trial = Trial(machine, gpu, port, options)
                passed.append(trial.run(library))
                say.pair(trial, [] if passed[-1] else reasons.of(gpu.pci, port.device))
        finally:
            gpu.release()
    code = PASSED if all(passed) else FAILED
    say.end(code, passed.count(True), passed.count(False))
    return code
