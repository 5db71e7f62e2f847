# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a report for machines: as JSON, as metrics of Prometheus, and as a plug-in of Nagios does."""
import json
import re
import time

from .fact import BAD, GOOD, NONE, WARN

# What the object means is in docs/monitoring.md; whoever changes that counts this up.
SCHEMA = 2


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


def _is_count(text):
    return re.match("[0-9]+$", text)


# ---- JSON ----


def as_json(report):
    head = {
        "schema": SCHEMA, "host": report.machine.host, "kernel": report.machine.kernel,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "state": report.state, "exit_code": report.code, "to_do": report.to_do()}
    lines = ["  %s: %s,\n" % (_quoted(name), _quoted(value)) for name, value in head.items()]
    return "{\n%s  \"facts\": [\n%s\n  ]\n}\n" % ("".join(lines), ",\n".join("    " + _quoted(_as_object(fact)) for fact in report.facts))


def _as_object(fact):
    """Values that are numbers are numbers. A line for each fact."""
    value = int(fact.value) if re.match("(0|[1-9][0-9]*)$", fact.value) else fact.value
    found = {"id": fact.id, "section": fact.section, "name": fact.name, "verdict": fact.verdict, "value": value}
    return dict(found, advice=fact.advice) if fact.advice else found


# ---- Prometheus ----

LEVELS = {GOOD: 0, WARN: 1, BAD: 2}
FIGURES = (
    ("regions", "gauge", "use/regions", "Regions of GPU memory that devices can reach now."),
    ("registered_bytes", "gauge", "use/bytes", "Bytes of these regions."),
    ("left_behind", "gauge", "use/left_behind", "Registrations that have ended and whose memory is still pinned."),
    ("registrations_total", "counter", "use/registrations", "Registrations that have succeeded."),
    ("revocations_total", "counter", "use/revocations", "Registrations that have ended because their memory was freed."),
)
FAILED = "use/failed_"


def _metric(name, kind, meaning, *samples):
    """Its samples stand together below its type. A sample is its label, empty or {NAME="TEXT"}, and its value."""
    head = ["# HELP nvpm_%s %s" % (name, meaning), "# TYPE nvpm_%s %s" % (name, kind)]
    return head + ["nvpm_%s%s %s" % (name, label and "{%s=%s}" % (label[0], _quoted(label[1])), value) for label, value in samples]


def as_metrics(report):
    judged = [fact for fact in report.facts if fact.verdict != NONE]
    counts = {fact.id: fact.value for fact in report.facts if _is_count(fact.value)}
    lines = _metric("info", "gauge", "The kernel that was running; always 1.", (("kernel", report.machine.kernel), 1))
    if report.state != "unknown":
        lines += _metric("loaded", "gauge", "Whether the module nv_peer_mem is loaded.", ("", int(report.state == "running")))
    lines += _metric("attention", "gauge", "Facts that need attention, by verdict: warn works but could do better, bad does not work.", *(
        (("verdict", verdict), sum(fact.verdict == verdict for fact in judged)) for verdict in (WARN, BAD)))
    lines += _metric("fact", "gauge", "What status says of each fact that it judges: 0 good, 1 works but could do better, 2 does not work.", *(
        (("id", fact.id), LEVELS[fact.verdict]) for fact in judged))
    for name, kind, identifier, meaning in FIGURES:
        if identifier in counts:
            lines += _metric(name, kind, meaning, ("", counts[identifier]))
    failed = [(("cause", name[len(FAILED):]), count) for name, count in counts.items() if name.startswith(FAILED)]
    if failed:
        lines += _metric("failed_registrations_total", "counter", "Registrations that have failed, by cause.", *failed)
    return "\n".join(lines) + "\n"


# ---- Nagios ----

OK, WARNING, CRITICAL, UNKNOWN = range(4)
WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")

# Performance data, by the identifiers of facts; c is a counter, B are bytes.
UNITS = (("use/(regions|left_behind)$", ""), ("use/bytes$", "B"), ("use/(registrations$|revocations$|failed_)", "c"))


def plugin(code, text, data=""):
    """The line of a plug-in. A bar is where performance data begins."""
    return "NVPM %s - %s%s\n" % (WORDS[code], text.replace("|", "/"), data and " |" + data)


def as_plugin(report, ignored):
    """The line and the exit code. IGNORED are identifiers that are not to be judged; a star at the end stands for
    whatever follows."""
    data = "".join(" %s=%s%s" % (re.sub("[^A-Za-z0-9_]", "_", fact.name), fact.value, unit) for fact in report.facts
                   for pattern, unit in UNITS if re.match(pattern, fact.id) and _is_count(fact.value))
    matched = {name: [fact.id for fact in report.facts if _fits(fact.id, name)] for name in ignored if name}
    # A wrong identifier would go unseen, and what it was to ignore be judged.
    wrong = "".join("; --ignore %s matches nothing" % name for name in matched if not matched[name])
    passed_over = {name for names in matched.values() for name in names}
    said = {verdict: ["%s: %s" % (fact.id, fact.value) for fact in report.facts if fact.verdict == verdict and fact.id not in passed_over]
            for verdict in (BAD, WARN)}
    state = next(fact for fact in report.facts if fact.id == "module/state")
    if report.state == "unknown":
        code, text = UNKNOWN, "%s: %s" % (state.value, state.advice)
    elif said[BAD]:
        code, text = CRITICAL, "; ".join(said[BAD] + said[WARN])
    elif said[WARN]:
        code, text = WARNING, "; ".join(said[WARN])
    else:
        code, text = OK, state.value if state.verdict == GOOD else "nothing needs attention"
    return plugin(code, text + wrong, data), code


def _fits(identifier, name):
    return identifier.startswith(name[:-1]) if name.endswith("*") else identifier == name
