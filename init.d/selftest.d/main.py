# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm selftest: whether GPU memory can be registered and reached, on this machine as it
is. Exit codes: 0 each pair passed, 1 some did not, 2 usage, 3 there is nothing to test."""
import argparse
import os
import re
import signal
import sys

import cuda
import machine
import report
import verbs
from explain import Status
from failure import Absent
from trial import Trial

# 2 is argparse's, of wrong options.
PASSED, FAILED, NOTHING = 0, 1, 3

LARGEST = 1 << 30


def size(text):
    found = re.fullmatch(r"([0-9]{1,12})([KMG]?)", text)
    number = int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)] if found else 0
    if not 1 <= number <= LARGEST:
        raise argparse.ArgumentTypeError("'%s' is not a size from 1 to 1G" % text)
    return number


def natural(text):
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise argparse.ArgumentTypeError("'%s' is not a number" % text)
    return int(text)


def read_options():
    parser = argparse.ArgumentParser(prog="nvpm selftest", description=(
        "For each GPU and each RDMA device with an active port: allocates GPU memory, registers it, moves a pattern "
        "through the device both ways, compares, frees the memory while it is registered."), epilog=(
            "Exit codes: 0 each pair passed, 1 some did not, 2 wrong options, 3 there is nothing to test."))
    parser.add_argument("--size", type=size, default="16M", help="bytes that are moved each way, with K, M or G behind; 16M")
    parser.add_argument("--gpu", metavar="N", help="this one only: its number in nvidia-smi, or its PCI address")
    parser.add_argument("--device", metavar="NAME", help="this RDMA device only")
    parser.add_argument("--seed", type=natural, metavar="N", help="of the pattern; by default another one each time")
    parser.add_argument("--timeout", type=natural, default="30", metavar="SECONDS", help="for the transfers of a pair; 30")
    parser.add_argument("--json", action="store_true", help="one object for machines")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "little")
    return options


def find(missing, look):
    """What look() finds; what is absent is noted, so that all of it is said at once."""
    try:
        return look()
    except Absent as absent:
        missing.append(absent)
        return None


def find_gpus(options):
    gpus = cuda.Library().gpus()
    if not gpus:
        raise Absent("no GPU", "See lspci -d 10de: and nvidia-smi: is the driver loaded, CUDA_VISIBLE_DEVICES not empty, the GPU "
                     "given to this container?")
    wanted = options.gpu and options.gpu.lower()
    chosen = [gpu for gpu in gpus if wanted in (None, str(gpu.index), gpu.pci)]
    if not chosen:
        raise Absent("no GPU %s" % options.gpu, "These are there: %s" % ", ".join(
            "%d (%s)" % (gpu.index, gpu.pci) for gpu in gpus))
    return gpus, chosen


def find_ports(options, report_to):
    """The library, names of all devices, and the ports to test."""
    library = verbs.Library()
    names = library.device_names()
    if not names:
        raise Absent("no RDMA device", "See /sys/class/infiniband; load the device's driver and ib_uverbs. In a container: give "
                     "it /dev/infiniband.")
    chosen = [name for name in names if options.device in (None, name)]
    if not chosen:
        raise Absent("no RDMA device %s" % options.device, "These are there: %s" % ", ".join(names))
    ports = []
    for name in chosen:
        port, reason = machine.usable_port(name)
        if port:
            ports.append(port)
        else:
            report_to.append((name, reason))
    return library, names, ports


def main():
    options = read_options()
    say = report.Json() if options.json else report.Text()
    missing, passed_over = [], []
    gpus = find(missing, lambda: find_gpus(options))
    found = find(missing, lambda: find_ports(options, passed_over))
    if found and not found[2]:
        missing.append(Absent("no RDMA device with an active port", "Bring a link up: ibstat, ip link."))
    say.begin(options, len(gpus[1]) if gpus else 0, len(found[2]) if found else 0)
    for device, reason in passed_over:
        say.not_tested(device, reason)
    if missing:
        say.absent(missing)
        say.end(NOTHING, 0, 0)
        return NOTHING
    return test(options, say, gpus, found)


def test(options, say, gpus, found):
    library, names, ports = found
    status = Status([gpu.pci for gpu in gpus[0]], names)
    passed = failed = 0
    for gpu in gpus[1]:
        try:
            for port in ports:
                trial = Trial(gpu, port, options.size, options.seed, options.timeout)
                if trial.run(library):
                    passed += 1
                    say.pair(trial, [])
                else:
                    failed += 1
                    say.pair(trial, status.explain(gpu.pci, port.device))
        finally:
            gpu.release()
    code = FAILED if failed else PASSED
    say.end(code, passed, failed)
    return code


def stop(number, _frame):
    # As an exception, so that everything is given back.
    sys.exit(128 + number)


if __name__ == "__main__":
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
