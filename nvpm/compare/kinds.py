# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the kinds of nodes of a fleet. Nodes with other GPUs are of another kind, also if they are
few. Nodes with the same GPUs and another kernel, driver or RDMA core are a kind if they are many: a
few of them are nodes that an update has left out."""

from typing import Counter, Dict, List, Optional, Tuple

from .features import NO_GPU, Key

# The smallest number of nodes with the same GPUs that are a kind.
LEAST_MODELS = 2
# Nodes with the same GPUs and the same software are a kind if they are at least LEAST nodes. They
# must also be at least the share SHARE of the largest number of such nodes.
LEAST, SHARE = 3, 0.1
# A fleet has at most this number of kinds. The nodes of smaller kinds are compared with the nearest
# of these kinds.
MOST = 50

# The names for the facts of a key.
NAMES = Key("GPU", "kernel", "driver", "RDMA core")


def kinds_of(keys: Dict[str, Key]) -> Tuple[List[List[str]], List[str]]:
    """Returns the nodes of each kind, the largest kind first, and the nodes that are of no kind."""
    chosen = choose(keys)
    if not chosen:
        return [list(keys)] if keys else [], []
    kinds: Dict[Optional[Key], List[str]] = {key: [] for key in chosen}
    kinds[None] = []
    for node, key in keys.items():
        kinds[of_kind(key, kinds)].append(node)
    none = kinds.pop(None)
    return sorted(kinds.values(), key=len, reverse=True), none


def of_kind(key: Key, kinds: Dict[Optional[Key], List[str]]) -> Optional[Key]:
    """Returns the kind of a key. A kind has nodes with the same software, or all nodes with the
    same GPUs if no software of these nodes makes a kind."""
    return next((one for one in (key, just_models(key)) if one in kinds), None)


def just_models(key: Key) -> Key:
    return Key(key.models, "", "", "")


def choose(keys: Dict[str, Key]) -> List[Key]:
    """Returns the keys that are kinds. If there are more than MOST, returns the keys with the most
    nodes."""
    by_models = Counter(key.models for key in keys.values())
    by_key = Counter(keys.values())
    sizes: Dict[Key, int] = {}
    for models, count in by_models.items():
        if models in ("", NO_GPU):
            # All GPUs of a node may have failed.
            if not many(count, len(keys)):
                continue
        elif count < LEAST_MODELS:
            continue
        software = {
            key: size
            for key, size in by_key.items()
            if key.models == models and key.driver and key.core
        }
        most = max(software.values(), default=0)
        software = {key: size for key, size in software.items() if many(size, most)}
        sizes.update(software or {Key(models, "", "", ""): count})
    return sorted(sizes, key=lambda key: -sizes[key])[:MOST]


def many(count: int, of: int) -> bool:
    return count >= LEAST and count >= SHARE * of


def deciding(keys: List[Key]) -> List[int]:
    """Returns the places of the facts in which these keys differ."""
    return [place for place in range(len(NAMES)) if len({key[place] for key in keys}) > 1]


def value_of(key: Key, place: int) -> str:
    """Returns the text of a fact of a key. A node may not know the models of its GPUs; a kind may
    have several kernels, drivers or cores."""
    return key[place] or ("not known" if NAMES[place] == NAMES.models else "any")
