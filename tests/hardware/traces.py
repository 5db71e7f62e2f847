# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the machine itself says of a step: registrations of the module and the core, BAR1 by
nvidia-smi, the kernel's log. In a guest the lab's doubles are witnesses as well, and see more."""

import os
import re
import time
from typing import Any, Callable, Dict, List, Tuple, TypeVar

import look
import machine

STATISTICS = "/sys/module/nv_peer_mem/statistics/"
REGIONS = "/proc/driver/nv_peer_mem/regions"
DOUBLES = ("/sys/kernel/debug/nvidia_lab", "/sys/kernel/debug/peer_mem_lab")

# Reports of the kernel's checkers and watchdogs (tests/guest/lib.sh has the same words), and the
# errors of the GPU.
REPORTS = re.compile(
    r"WARNING:|BUG:|Oops|general protection|rcu:.*stall|Call Trace|refcount_t|KASAN:|UBSAN:"
    r"|possible (circular|recursive) locking|inconsistent lock state"
    r"|sleeping function called|DMA-API:|list_(add|del) corruption"
    r"|INFO: task .* blocked|lockup|NVRM: Xid|DMAR: .*fault|IO_PAGE_FAULT|AER: .*[Ee]rror"
)
MARK = "nv_peer_mem hardware test: "
# What the driver frees after the end of a process takes a moment.
PATIENCE = 15


def statistic(name: str) -> int:
    return machine.number(STATISTICS + name)


def bar1() -> Dict[str, List[int]]:
    """Returns for each GPU's PCI address the MiB of BAR1: in all, and in use."""
    done = machine.run(["nvidia-smi", "-q", "-d", "MEMORY"], 30)
    found = {}  # type: Dict[str, List[int]]
    gpu, inside = "", False
    for line in done.output.splitlines() if done.code == 0 else []:
        if line.startswith("GPU "):
            gpu = line.split()[1].lower()
        elif "Memory Usage" in line:
            inside = "BAR1" in line
        elif inside and ":" in line:
            key, _, value = (part.strip() for part in line.partition(":"))
            if key in ("Total", "Used") and value.split()[:1] and value.split()[0].isdigit():
                found.setdefault(short(gpu), [0, 0])[key == "Used"] = int(value.split()[0])
    return found


def short(pci: str) -> str:
    """Returns a PCI address with a domain of four digits. nvidia-smi prints eight."""
    domain, _, rest = pci.lower().partition(":")
    return domain[-4:] + ":" + rest


def mark(name: str) -> bool:
    """Writes the step's name into the kernel's log, where it stays after a panic, too."""
    try:
        # Python's own files seek to the end of a file, which is an error here.
        file = os.open(machine.at("/dev/kmsg"), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return False
    os.write(file, (MARK + name + "\n").encode())
    os.close(file)
    return True


def reports_since(name: str) -> Tuple[bool, List[str]]:
    """Returns whether the kernel's log since the step's mark can be read, and its reports."""
    done = machine.run(["dmesg"], 30)
    lines = done.output.splitlines()
    marks = [at for at, line in enumerate(lines) if line.endswith(MARK + name)]
    if done.code or not marks:
        return False, []
    return True, [line for line in lines[marks[-1] + 1 :] if REPORTS.search(line)]


def doubles() -> bool:
    """Tells whether this is a guest of the lab."""
    return machine.there(DOUBLES[0])


def seen_by_doubles() -> List[str]:
    """Returns objects that are left in the doubles, and violations that they have seen. Only a
    double can see these."""
    seen = []
    for double in DOUBLES:
        for line in machine.text(double + "/counters").splitlines():
            words = line.split()
            is_gauge = len(words) == 2 and words[0].startswith("live_")
            if is_gauge and words[0] != "live_clients" and words[1] != "0":
                seen.append(line)
        seen += machine.text(double + "/violations").splitlines()
    return seen


def baseline() -> Dict[str, Any]:
    return {
        "bar1": bar1(),
        "registrations": look.registrations(),
        "doubles": seen_by_doubles(),
    }


def leftovers(before: Dict[str, Any]) -> List[str]:
    """Returns what is there now and was not there before."""
    left = []
    count = look.registrations()
    if count > before["registrations"]:
        left.append("registrations: {}, before: {}".format(count, before["registrations"]))
    own = [line for line in machine.text(REGIONS).splitlines() if line and not line.startswith("#")]
    if own and not before["registrations"]:
        left.append(f"lines of {REGIONS}: {len(own)}")
    if statistic("orphans"):
        left.append("orphans: {}".format(statistic("orphans")))
    now = bar1()
    for gpu, (_, used) in before["bar1"].items():
        if gpu in now and now[gpu][1] > used:
            left.append(f"BAR1 of {gpu}: {now[gpu][1]} MiB in use, before: {used}")
    return left + [line for line in seen_by_doubles() if line not in before["doubles"]]


Found = TypeVar("Found")


def settled(look_at: Callable[[], Found], wanted: Found) -> Found:
    """Returns what is found as soon as it is the wanted, and after a while whatever it is. Kernel
    and driver free some things in the background."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = look_at()
        if found == wanted or time.monotonic() > deadline:
            return found
        time.sleep(0.3)
