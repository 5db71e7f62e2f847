# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Gives the OFED container a hook, which unloads nv_peer_mem before openibd unloads the RDMA core.

The hook is needed only if the module is loaded and no pod looks after it. It lies in the directory
that the OFED container shares with the node, so OPENIBD_PRE_STOP can name it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .cache import flush
from .node import OFED, Node

HOOK = Path("/usr/lib/nvidia-peer-memory/ofed-container-pre-stop")
PLACE = f"{OFED}/nv_peer_mem/pre-stop"


def write(node: Node, hook: Path = HOOK) -> bool:
    """Writes the hook if the directory is there and this pod may write to it, and returns whether
    the hook is there."""
    place = node.path(PLACE)
    if place.exists() and place.read_bytes() == hook.read_bytes():
        return True
    if not node.exists(OFED) or not os.access(node.path(OFED), os.W_OK):
        return False
    place.parent.mkdir(exist_ok=True)
    new = place.with_suffix(".new")
    shutil.copyfile(hook, new)
    new.chmod(0o755)
    flush(new)
    new.rename(place)
    return True
