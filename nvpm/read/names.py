# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Names of GPUs and RDMA devices, as people count them."""

import re
from typing import Dict, List

from . import ways
from .machine import Machine


def gpu_numbers(machine: Machine) -> Dict[str, int]:
    """Returns the number of each GPU in nvidia-smi, which numbers GPUs in the order of their
    addresses."""
    return {gpu.name: number for number, gpu in enumerate(ways.driven_gpus(machine))}


def folded(names: List[str]) -> List[str]:
    """Folds three or more names with consecutive numbers into "FIRST to LAST"."""
    runs: List[List[str]] = []
    for name in names:
        if runs and follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return [text for run in runs for text in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]


def follows(name: str, other: str) -> bool:
    """Returns whether OTHER is NAME with the next number."""
    one, two = (re.match(r"(.*?)(\d+)$", word) for word in (name, other))
    if not one or not two:
        return False
    return one.group(1) == two.group(1) and int(one.group(2)) + 1 == int(two.group(2))


def pair_names(machine: Machine, pairs: List[ways.Pair]) -> str:
    """Returns the names of the RDMA devices of PAIRS. If PAIRS do not have all usable GPUs, adds
    the names of the GPUs."""
    devices = list(dict.fromkeys(device for _, device in pairs))
    gpu_names = list(dict.fromkeys(gpu for gpu, _ in pairs))
    text = ", ".join(folded(devices))
    if len(gpu_names) == len(ways.usable_gpus(machine)):
        return text
    numbers = gpu_numbers(machine)
    return f"{text} and GPU {', '.join(folded([str(numbers[name]) for name in gpu_names]))}"
