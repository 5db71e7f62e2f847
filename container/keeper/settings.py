# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the settings, which are variables of the container's environment."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from .node import OWN_NAMES

RELEASE = Path("/usr/src/nvidia-peer-memory")
CACHE = Path("/var/lib/nv_peer_mem")
# The port of the metrics.
PORT = 9989


class Wrong(Exception):
    """A setting is wrong."""


class Settings(NamedTuple):
    """The name of the module, its parameters, the port for metrics (0: no port), and the identity
    of the release in the image, which each of its modules has as its version."""

    name: str
    parameters: list[str]
    port: int
    version: str


def settings(environment: Mapping[str, str], release: Path = RELEASE) -> Settings:
    name = environment.get("NVPM_NAME") or OWN_NAMES[0]
    if name not in OWN_NAMES:
        raise Wrong(f"NVPM_NAME={name}: the module is called {' or '.join(OWN_NAMES)}")
    parameters = environment.get("NVPM_PARAMETERS", "").split()
    # The release's own source says which parameters the module has.
    source = (release / "src/c/module.c").read_text(encoding="utf-8")
    switches = re.findall(r"^module_param_cb\((\w+), &nvpm_switch,", source, re.MULTILINE)
    for parameter in parameters:
        switch, _, value = parameter.partition("=")
        if switch not in switches or value not in ("0", "1"):
            known = " and ".join(f"{switch}=0 or 1" for switch in switches)
            raise Wrong(
                f"NVPM_PARAMETERS has {parameter!r}: the parameters are {known}, separated by "
                "blanks"
            )
    port = environment.get("NVPM_METRICS_PORT", str(PORT))
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise Wrong(f"NVPM_METRICS_PORT={port}: this is no port; 0 stands for no metrics")
    # Another image of the same version may have other sources.
    try:
        identity = subprocess.check_output(["sh", str(release / "build/identity")], text=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Wrong(
            f"the image is broken: {release}/build/identity has failed ({error})"
        ) from error
    return Settings(name, parameters, int(port), identity.strip())
