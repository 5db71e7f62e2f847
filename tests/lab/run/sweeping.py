# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs a sweep of mechanical mistakes (tests/sweep) in the layers that the area's tests need."""

from layers.cache import CACHE, TOP, Wrong
from layers.making import in_layers
from layers.stack import layers

# For each area, the layer with the tools of its tests.
LAYER_OF = {
    "nvpm": "nvpmcrates",
    "keeper": "nvpmcrates",
    "preload": "nvpmcrates",
    "scripts": "nvpmcrates",
    "module": "hostsweep",
    "c": "nvpmcrates",
}


def run(words: list[str]) -> int:
    if not words or words[0] not in LAYER_OF:
        raise Wrong(f"which area? There are: {' '.join(LAYER_OF)}")
    kept = CACHE / "sweep"
    kept.mkdir(exist_ok=True)
    made = layers("sweep", "tools", LAYER_OF[words[0]])
    check = [
        "env",
        f"SWEEP={' '.join(words)}",
        "bash",
        "/checkout/tests/lab/checks/check.sh",
        "sweep",
    ]
    binds = [f"{TOP}:/checkout:ro", f"{kept}:/tmp/sweep"]
    return in_layers(made.stack, *check, binds=binds).returncode
