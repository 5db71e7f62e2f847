# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The bus addresses that an object of a card holds."""

from dataclasses import dataclass, field

Spans = list[tuple[int, int]]


@dataclass
class Held:
    """The bus addresses that a device holds in an object. Each span has a first address and an end.
    `frames` names the GPU memory at these addresses."""

    name: str
    spans: Spans = field(default_factory=list)
    frames: set[int] = field(default_factory=set)
