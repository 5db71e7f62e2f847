# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a report for machines: as JSON, as metrics for Prometheus, and as a Nagios plug-in does."""

import json
import re
import time
from typing import Dict, Iterator, List, Tuple

from .fact import BAD, GOOD, NONE, WARN, Fact
from .report import Report

# docs/monitoring.md explains the object. Whoever changes that counts this up.
SCHEMA = 2

LEVELS = {GOOD: 0, WARN: 1, BAD: 2}

# Facts that are figures: the name of the metric, its type and its meaning, and the unit in Nagios: c is a counter, B are bytes.
FIGURES = {
    "use/regions": ("regions", "gauge", "Regions of GPU memory that devices can reach now.", ""),
    "use/bytes": ("registered_bytes", "gauge", "Bytes of these regions.", "B"),
    "use/left_behind": (
        "left_behind",
        "gauge",
        "Registrations that have ended and whose memory is still pinned.",
        "",
    ),
    "use/registrations": (
        "registrations_total",
        "counter",
        "Registrations that have succeeded.",
        "c",
    ),
    "use/revocations": (
        "revocations_total",
        "counter",
        "Registrations that have ended because their memory was freed.",
        "c",
    ),
}
FAILED = "use/failed_"

# The exit codes of Nagios.
OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def quoted(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def figures(report: Report) -> Dict[str, Fact]:
    """The facts that are figures, by their identifiers."""
    return {
        fact.id: fact
        for fact in report.facts
        if re.match("[0-9]+$", fact.value) and fact.id.startswith((*FIGURES, FAILED))
    }


def as_json(report: Report) -> Iterator[str]:
    """A fact is one line. A value that is a number is one in JSON, too."""
    facts = []
    for fact in report.facts:
        value = int(fact.value) if re.match("(0|[1-9][0-9]*)$", fact.value) else fact.value
        one = {
            "id": fact.id,
            "section": fact.section,
            "name": fact.name,
            "verdict": fact.verdict,
            "value": value,
            "advice": fact.advice,
        }
        facts.append(
            "    " + quoted({key: text for key, text in one.items() if key != "advice" or text})
        )
    head = {
        "schema": SCHEMA,
        "host": report.machine.host,
        "kernel": report.machine.kernel,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "state": report.state,
        "exit_code": report.code,
        "to_do": sum(fact.verdict in (WARN, BAD) for fact in report.facts),
    }
    lines = "".join(f"  {quoted(key)}: {quoted(value)},\n" for key, value in head.items())
    yield '{{\n{}  "facts": [\n{}\n  ]\n}}'.format(lines, ",\n".join(facts))


def metric(name, kind, meaning, *samples):
    """Samples are pairs of a label, {} or {NAME: TEXT}, and a number. They stand together below their type."""
    yield f"# HELP nvpm_{name} {meaning}"
    yield f"# TYPE nvpm_{name} {kind}"
    for label, value in samples:
        yield "nvpm_{}{} {}".format(
            name, "".join(f"{{{key}={quoted(text)}}}" for key, text in label.items()), value
        )


def as_metrics(report: Report) -> List[str]:
    judged, counts = [fact for fact in report.facts if fact.verdict != NONE], figures(report)
    lines = [
        *metric(
            "info",
            "gauge",
            "The kernel that was running; always 1.",
            ({"kernel": report.machine.kernel}, 1),
        )
    ]
    if report.state != "unknown":
        lines += metric(
            "loaded",
            "gauge",
            "Whether the module nv_peer_mem is loaded.",
            ({}, int(report.state == "running")),
        )
    lines += metric(
        "attention",
        "gauge",
        "Facts that need attention, by verdict: warn works but could do better, bad does not work.",
        *(
            ({"verdict": verdict}, sum(fact.verdict == verdict for fact in judged))
            for verdict in (WARN, BAD)
        ),
    )
    lines += metric(
        "fact",
        "gauge",
        "What status says of each fact that it judges: 0 good, 1 works but could do better, 2 does not work.",
        *(({"id": fact.id}, LEVELS[fact.verdict]) for fact in judged),
    )
    for name, (figure, kind, meaning, _) in FIGURES.items():
        if name in counts:
            lines += metric(figure, kind, meaning, ({}, counts[name].value))
    failed = [
        ({"cause": name[len(FAILED) :]}, fact.value)
        for name, fact in counts.items()
        if name.startswith(FAILED)
    ]
    if failed:
        lines += metric(
            "failed_registrations_total",
            "counter",
            "Registrations that have failed, by cause.",
            *failed,
        )
    return lines


def plugin(code: int, text: str, data: str = "") -> str:
    """The line of a plug-in. A bar is where performance data begins."""
    return "NVPM {} - {}{}".format(WORDS[code], text.replace("|", "/"), data and " |" + data)


def as_plugin(report: Report, ignored: List[str]) -> Tuple[str, int]:
    """The line and the exit code. IGNORED are the identifiers of facts that are not judged; a star at the end matches any rest."""
    matched = {
        name: [
            fact
            for fact in report.facts
            if fact.id == name or name.endswith("*") and fact.id.startswith(name[:-1])
        ]
        for name in ignored
        if name
    }
    passed_over = [fact for facts in matched.values() for fact in facts]
    bad, warn = (
        [
            f"{fact.id}: {fact.value}"
            for fact in report.facts
            if fact.verdict == verdict and fact not in passed_over
        ]
        for verdict in (BAD, WARN)
    )
    state = next(fact for fact in report.facts if fact.id == "module/state")
    if report.state == "unknown":
        code, text = UNKNOWN, f"{state.value}: {state.advice}"
    elif bad or warn:
        code, text = CRITICAL if bad else WARNING, "; ".join(bad + warn)
    else:
        code, text = OK, state.value if state.verdict == GOOD else "nothing needs attention"
    # A wrong identifier would go unseen, and what it was to ignore be judged.
    text += "".join(f"; --ignore {name} matches nothing" for name in matched if not matched[name])
    data = "".join(
        " {}={}{}".format(
            re.sub("[^A-Za-z0-9_]", "_", fact.name), fact.value, FIGURES.get(name, "c")[-1]
        )
        for name, fact in figures(report).items()
    )
    return plugin(code, text, data), code
