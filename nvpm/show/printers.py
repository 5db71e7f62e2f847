# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the status for other programs: as JSON, as metrics for Prometheus, and as the line of a
Nagios plug-in."""

import json
import re
import time
from typing import Dict, Iterable, Iterator, List, NamedTuple, Tuple, Union

from .. import release
from ..facts import outcomes
from ..facts.fact import BAD, GOOD, NONE, WARN, Fact, to_do
from ..facts.status import Status
from ..read import ways
from ..read.machine import loaded_version, module_wanted, own_module
from ..read.names import folded
from ..read.pci import gpus
from . import answer
from .lines import lines_of

# The version of the JSON object, which docs/monitoring.md explains. A change of the object's
# meaning increases this number.
SCHEMA = 2

# The number of pairs or of programs on a line. srun --label cuts lines after 1,024 bytes, and a
# longer line than 4,096 bytes may be torn where several programs write to one pipe.
PAIRS = 8

LEVELS = {GOOD: 0, WARN: 1, BAD: 2}


class Figure(NamedTuple):
    """A metric for a fact with a number. The unit is that of Nagios: c stands for a counter, B for
    bytes."""

    metric: str
    kind: str
    meaning: str
    unit: str


FIGURES = {
    "use/reachable_regions": Figure(
        "reachable_regions", "gauge", "Regions of GPU memory that devices can reach now.", ""
    ),
    "use/bytes": Figure("registered_bytes", "gauge", "Bytes of these regions.", "B"),
    "use/orphans": Figure(
        "orphans",
        "gauge",
        "Registrations that have ended and whose memory is still pinned.",
        "",
    ),
    "use/registrations": Figure(
        "registrations_total", "counter", "Registrations that have succeeded.", "c"
    ),
    "use/revocations": Figure(
        "revocations_total",
        "counter",
        "Registrations that have ended because their memory was freed.",
        "c",
    ),
}
FAILED = "use/failed_"
FAILURES = Figure(
    "failed_registrations_total", "counter", "Registrations that have failed, by cause.", "c"
)
INFO = Figure(
    "info", "gauge", "The running kernel and the version of the loaded module; always 1.", ""
)
LOADED = Figure("loaded", "gauge", "Whether the module nv_peer_mem is loaded.", "")
POSSIBLE = Figure(
    "registration_possible", "gauge", "Whether GPU memory can be registered, in any way.", ""
)
ATTENTION = Figure(
    "attention",
    "gauge",
    "Facts that need attention, by verdict: warn works but could do better, bad does not work.",
    "",
)
JUDGED = Figure(
    "fact",
    "gauge",
    "What status says of each fact that it judges: "
    "0 good, 1 works but could do better, 2 does not work.",
    "",
)

# The exit codes of Nagios.
OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

NO_GPU = Fact(
    "GPUs",
    "number",
    BAD,
    "this machine has no NVIDIA GPU",
    "if that is right: nvpm check --ignore gpus/number; if not, look at slot, power and firmware",
    "gpus/number",
)

# One value of a metric, with its labels, {NAME: TEXT}.
Sample = Tuple[Dict[str, str], Union[int, str]]


def quoted(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def figures(status: Status) -> Dict[str, Fact]:
    """Returns the facts that have a number and become metrics, by their identifiers."""
    names = (*FIGURES, FAILED)
    return {
        fact.id: fact
        for fact in status.facts
        if fact.id.startswith(names) and re.match("[0-9]+$", fact.value)
    }


# ---- JSON ----


def as_json(status: Status) -> Iterator[str]:
    """Yields the lines of one JSON object. Each fact has one line, and no line is long."""
    head = {
        "schema": SCHEMA,
        "nvpm": release().partition(" ")[2],
        "host": status.machine.host,
        "kernel": status.machine.kernel,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "state": status.state,
        "exit_code": status.code,
        "to_do": len(to_do(status.facts)),
    }
    yield "{"
    for key, value in head.items():
        yield f"  {quoted(key)}: {quoted(value)},"
    yield f'  "ways": [{listed(map(quoted, ways_of(status)))}],'
    yield f'  "programs": {{{entries(outcomes.ways_found(status.machine))}}},'
    yield f'  "programs_by_pair": [{listed(programs_of(status), 1)}],'
    yield '  "facts": ['
    yield ",\n".join(f"    {quoted(as_object(fact))}" for fact in status.facts)
    yield "  ]"
    yield "}"


def ways_of(status: Status) -> List[Dict[str, object]]:
    """Returns the ways of each GPU with each RDMA device."""
    pairs = ways.of_pairs(status.machine).items()
    return [{"gpu": gpu, "device": device, "ways": found} for (gpu, device), found in pairs]


def programs_of(status: Status) -> Iterator[str]:
    """Yields an object for each group of pairs with the same ways of programs."""
    for group in outcomes.grouped(status.machine):
        pairs = [quoted({"gpu": gpu, "device": device}) for gpu, device in group.pairs]
        ways = {name: found.way for name, found in group.programs.items()}
        yield f'{{"pairs": [{listed(pairs)}], "programs": {{{entries(ways)}}}}}'


def entries(texts: Dict[str, str]) -> str:
    return listed(f"{quoted(name)}: {quoted(text)}" for name, text in texts.items())


def listed(texts: Iterable[str], count: int = PAIRS) -> str:
    """Returns the texts with commas, COUNT on a line."""
    every = list(texts)
    lines = [", ".join(every[at : at + count]) for at in range(0, len(every), count)]
    return ",\n    ".join(lines)


def as_object(fact: Fact) -> Dict[str, Union[int, str]]:
    """Returns the fact for JSON. A value that is a number becomes a number in JSON, too."""
    number = re.match("(0|[1-9][0-9]*)$", fact.value)
    found: Dict[str, Union[int, str]] = {
        "id": fact.id,
        "section": fact.section,
        "name": fact.name,
        "verdict": fact.verdict,
        "value": int(fact.value) if number else fact.value,
    }
    if fact.advice:
        found["advice"] = fact.advice
    return found


# ---- Prometheus ----


def printable(text: str) -> str:
    """Returns TEXT with question marks in place of characters that Prometheus does not take."""
    return "".join(one if one.isprintable() else "?" for one in text)


def metric(figure: Figure, *samples: Sample) -> Iterator[str]:
    """Yields the meaning, the type and all samples of one metric, each as a line."""
    name = f"nvpm_{figure.metric}"
    yield f"# HELP {name} {figure.meaning}"
    yield f"# TYPE {name} {figure.kind}"
    for labels, value in samples:
        label = ",".join(f"{key}={quoted(printable(text))}" for key, text in labels.items())
        yield f"{name}{{{label}}} {value}" if label else f"{name} {value}"


def as_metrics(status: Status) -> Iterator[str]:
    judged = [fact for fact in status.facts if fact.verdict != NONE]
    verdicts = [fact.verdict for fact in judged]
    counts = figures(status)
    machine, name = status.machine, own_module(status.machine)
    module = loaded_version(machine, name) if name else ""
    yield from metric(INFO, ({"kernel": machine.kernel, "module": module}, 1))
    if status.state != "unknown":
        yield from metric(LOADED, ({}, int(status.state == "running")))
        yield from metric(POSSIBLE, ({}, int(not ways.in_the_way(status.machine))))
    yield from metric(
        ATTENTION, *(({"verdict": verdict}, verdicts.count(verdict)) for verdict in (WARN, BAD))
    )
    yield from metric(JUDGED, *(({"id": fact.id}, LEVELS[fact.verdict]) for fact in judged))
    for name, figure in FIGURES.items():
        if name in counts:
            yield from metric(figure, ({}, counts[name].value))
    failed: List[Sample] = [
        ({"cause": name[len(FAILED) :]}, fact.value)
        for name, fact in counts.items()
        if name.startswith(FAILED)
    ]
    if failed:
        yield from metric(FAILURES, *failed)


# ---- Nagios ----

# NRPE cuts an answer after 1,024 bytes.
LONGEST = 1024
# Names of devices that take more characters are counted.
NAMES = 40


def plugin(code: int, text: str, data: str = "") -> str:
    """Returns the line of a plug-in. A bar begins the performance data, so bars in TEXT become
    slashes."""
    return f"NVPM {WORDS[code]} - {text.replace('|', '/')}" + (data and f" |{data}")


def performance(status: Status) -> str:
    data = ""
    for name, fact in figures(status).items():
        label = re.sub("[^A-Za-z0-9_]", "_", fact.name)
        data += f" {label}={fact.value}{FIGURES.get(name, FAILURES).unit}"
    return data


def matches(fact: Fact, pattern: str) -> bool:
    """Returns whether PATTERN matches the fact's identifier. A star at the end matches any rest."""
    return fact.id == pattern or (pattern.endswith("*") and fact.id.startswith(pattern[:-1]))


def marked(facts: List[Fact], verdict: str) -> List[str]:
    """Returns texts about the facts with this verdict. The same fact about several devices is one
    text, with the identifier of the first device's fact, because a monitor cuts long lines."""
    # The advice is not printed here, and may differ between devices.
    chosen = (fact._replace(advice="") for fact in facts if fact.verdict == verdict)
    said = []
    for line in lines_of(chosen):
        names = ", ".join(folded(line.devices)) if len(line.devices) > 1 else ""
        if len(names) > NAMES:
            names = f"{len(line.devices)} devices"
        said.append(f"{line.fact.id}: {line.fact.value}" + (names and f" [{names}]"))
    return said


def fitting(texts: List[str], room: int) -> str:
    """Returns the first of TEXTS that fit into ROOM bytes, with the number of the others."""
    said = ""
    for number, text in enumerate(texts):
        added = f"; {text}" if said else text
        left = len(texts) - number - 1
        more = f"; and {left} more: nvpm status" if left else ""
        if len((said + added + more).encode(errors="replace")) > room and said:
            return f"{said}; and {left + 1} more: nvpm status"
        said += added
    return said


def no_gpu(status: Status) -> bool:
    """Returns whether the machine has no GPU, and has loaded neither the driver nor the module,
    like a login node with the packages of all nodes."""
    machine = status.machine
    return not (gpus(machine) or machine.loaded("nvidia") or own_module(machine))


def as_plugin(status: Status, ignored: List[str]) -> Tuple[str, int]:
    """Returns the line and the exit code. IGNORED are identifiers of facts that are not judged; see
    matches()."""
    patterns = [pattern for pattern in ignored if pattern]
    judged = [
        fact for fact in status.facts if not any(matches(fact, pattern) for pattern in patterns)
    ]
    bad, warn = marked(judged, BAD), marked(judged, WARN)
    room = LONGEST - len(plugin(CRITICAL, "", performance(status)))
    loaded = [fact for fact in status.facts if fact.id == "module/state" and fact.verdict == GOOD]
    if status.state == "unknown":
        state = status.facts[0]
        code, text = UNKNOWN, f"{state.value}: {state.advice}"
    elif no_gpu(status):
        # The GPU may be missing because it has failed, so a machine without a GPU is OK only if the
        # administrator ignores this fact.
        expected = any(matches(NO_GPU, pattern) for pattern in patterns)
        code, text = (
            (OK, NO_GPU.value) if expected else (UNKNOWN, f"{NO_GPU.value}; {NO_GPU.advice}")
        )
    elif not bad and ways.in_the_way(status.machine) and module_wanted(status.machine):
        code, text = CRITICAL, fitting([answer.headline(status.machine), *warn], room)
    elif bad or warn:
        code, text = CRITICAL if bad else WARNING, fitting(bad + warn, room)
    else:
        code, text = OK, loaded[0].value if loaded else answer.headline(status.machine)
        caveat = answer.caveat(status.machine) if loaded else ""
        text += caveat and f"; {caveat}"
    # An identifier that matches no fact is reported, because the fact that the administrator meant
    # is still judged.
    for pattern in dict.fromkeys(patterns):
        if not any(matches(fact, pattern) for fact in status.facts):
            text += f"; --ignore {pattern} matches nothing"
    return plugin(code, text, performance(status)), code
