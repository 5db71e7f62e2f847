# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The features by which nodes are compared. A feature is a fact of the status without the parts
that differ between equal nodes, such as addresses, counters, and the speed of an idle link."""

import functools
import re
from sys import intern
from typing import Dict, FrozenSet, List, NamedTuple, Set, Tuple, cast

ADDRESS = re.compile(r"[0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
DEVICE = re.compile("(GPU|RDMA device) (.*)")
# GPUs slow their link down while they are idle.
SPEED = re.compile(r"[0-9.]+ GT/s (x\d+).*")
# Matches the facts that are no features: facts about the present moment, and facts that repeat
# other facts.
PASSING = re.compile(r"use/(?!failed_|orphans)|distance/.*_nearest$|.*/process_\d+$")

# The key that signs modules on Ubuntu has the name of the host.
SIGNED = "signed by"

# The verdicts that count when nodes have different versions of nvpm.
JUDGED = ("warn", "bad")
VERSION = re.compile(r"version (\S+)")
NO_GPU, ABSENT = "no GPU", "none"

Json = Dict[str, object]
Features = Dict[str, str]
# The features that are warn or bad, each with its verdict.
Verdicts = FrozenSet[Tuple[str, str]]


class Key(NamedTuple):
    """Four facts decide the kind of a node: the models of the GPUs, the kernel, the version of the
    driver, and the RDMA core. A fact is empty if it is not good, because a fault makes no kind."""

    models: str
    kernel: str
    driver: str
    core: str


class Seen(NamedTuple):
    """A node by its status."""

    features: Features
    verdicts: Verdicts = frozenset()
    nvpm: str = ""
    key: Key = Key("", "", "", "")


# Most nodes have the same verdicts and the same key, so equal verdicts and equal keys are kept
# once.
same_verdicts = functools.lru_cache(maxsize=1 << 12)(lambda verdicts: verdicts)
same_key = functools.lru_cache(maxsize=1 << 12)(Key)


def seen(status: Json) -> Seen:
    """Returns the compared facts of a node."""
    verdicts: Set[Tuple[str, str]] = set()
    models: Set[str] = set()
    gpus, driver, core = False, ABSENT, ABSENT
    for fact in cast(List[Json], status.get("facts") or []):
        verdict, section = fact.get("verdict"), str(fact.get("section"))
        if verdict in JUDGED:
            words = (str(fact.get(key)) for key in ("id", "section", "name", "value"))
            verdicts.add((intern(feature(*words)[0]), str(verdict)))
        if section.startswith("GPU "):
            gpus = True
            if fact.get("name") == "model":
                models.add(str(fact.get("value")))
        elif fact.get("id") == "driver/nvidia":
            found = VERSION.search(str(fact.get("value")))
            driver = "" if verdict == "bad" else found[1].rstrip(",;:") if found else ABSENT
        elif fact.get("id") == "rdma_core/built_for":
            core = "" if verdict in JUDGED else str(fact.get("value"))
    key = same_key(
        " and ".join(sorted(models)) if gpus else NO_GPU, str(status.get("kernel")), driver, core
    )
    nvpm = intern(str(status.get("nvpm") or ""))
    return Seen(features(status), same_verdicts(frozenset(verdicts)), nvpm, key)


def features(status: Json) -> Features:
    """Returns the value of each feature of a node."""
    values: Dict[str, List[Tuple[str, str]]] = {"kernel": [("", str(status.get("kernel")))]}
    host = str(status.get("host") or "").split(".")[0]
    for fact in cast(List[Json], status.get("facts") or []):
        words = (str(fact.get(key)) for key in ("id", "section", "name", "value"))
        name, device, value = feature(*words)
        if host and SIGNED in name:
            value = value.replace(host, "*")
        if name:
            values.setdefault(name, []).append((device, value))
    for pair in cast(List[Json], status.get("ways") or []):
        device = f"{pair['gpu']} {pair['device']}"
        found = " and ".join(cast(List[str], pair["ways"])) or "no way"
        values.setdefault("ways", []).append((device, found))
    for program, way in cast(Dict[str, str], status.get("programs") or {}).items():
        values.setdefault(f"program {program}", []).append(("", way or "finds no way"))
    return {intern(name): intern(summed(found)) for name, found in values.items()}


# The results are kept, because most facts of a node are the same on the other nodes.
@functools.lru_cache(maxsize=1 << 16)
def feature(id: str, section: str, name: str, value: str) -> Tuple[str, str, str]:
    """Returns the name of the feature that a fact belongs to, the device, and the value. The name
    is empty for a fact that is no feature."""
    if PASSING.match(id):
        return "", "", ""
    if section == "distance":
        return "distance", name, value
    if section == "use":
        value = "0" if value == "0" else "not 0"
    device = DEVICE.match(section)
    if not device:
        return f"{section}, {ADDRESS.sub('*', name)}", "", ADDRESS.sub("*", value)
    if device[1] == "GPU" and name == "link":
        value = SPEED.sub(r"\1", value) if "idle" in value or ":" not in value else value
    return f"{device[1]}, {name}", device[2], ADDRESS.sub("*", value)


def summed(found: List[Tuple[str, str]]) -> str:
    """Returns a text with the values of a feature and the number of devices with each value, the
    most frequent value first. The names of the devices follow each value except the most
    frequent."""
    by_value: Dict[str, List[str]] = {}
    for device, value in found:
        by_value.setdefault(value, []).append(device)
    if len(found) == 1:
        return found[0][1]
    ordered = sorted(by_value.items(), key=lambda item: (-len(item[1]), item[0]))
    texts = [f"{len(ordered[0][1])} x {ordered[0][0]}"]
    for value, devices in ordered[1:]:
        texts.append(f"{len(devices)} x {value} ({', '.join(devices[:4])})")
    return "; ".join(texts)
