# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The whole table of nv_peer_mem's own messages."""

from . import build, module, nvpm, others, packages, pod, preload, release, service

GROUPS = (
    *build.GROUPS,
    *packages.GROUPS,
    *release.GROUPS,
    *service.GROUPS,
    *pod.GROUPS,
    *module.GROUPS,
    *others.GROUPS,
    *nvpm.GROUPS,
    *preload.GROUPS,
)
MESSAGES = tuple(message for group in GROUPS for message in group.messages)
BY_ID = {message.id: message for message in MESSAGES}
