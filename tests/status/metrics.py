# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""metrics.py METRICS JSON: whether METRICS is in the text format of Prometheus and agrees with what
`status --json` has said; prints its samples, with labels as they are meant."""
import json
import re
import sys

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')

text = open(sys.argv[1], encoding="utf-8", newline="\n").read()
said = json.load(open(sys.argv[2], encoding="utf-8"))
assert text.endswith("\n"), "the last line has no end"
helped, typed, order, samples = set(), {}, [], {}
for line in text[:-1].split("\n"):
    words = line.split(" ", 3)
    if words[:2] == ["#", "HELP"]:
        assert words[2] not in helped and words[3], line
        helped.add(words[2])
        continue
    if words[:2] == ["#", "TYPE"]:
        assert words[2] not in typed and words[2] not in order, line
        assert words[3] in ("gauge", "counter"), line
        assert (words[3] == "counter") == words[2].endswith("_total"), line
        typed[words[2]] = words[3]
        continue
    match = SAMPLE.fullmatch(line)
    assert match, f"no sample: {line!r}"
    name, labels, value = match.groups()
    labels = tuple((key, re.sub(r"\\(.)", lambda c: "\n" if c[1] == "n" else c[1], raw)) for key, raw in LABEL.findall(labels or ""))
    assert name in helped and name in typed, f"no HELP or TYPE: {line}"
    assert name not in order or order[-1] == name, f"samples of {name} do not stand together"
    order.append(name)
    assert (name, labels) not in samples, f"twice: {line}"
    assert float(value) >= 0, line
    samples[name, labels] = value
    print(name + ("{" + ",".join(f"{key}={value}" for key, value in labels) + "}" if labels else ""), value)
levels = {"good": "0", "warn": "1", "bad": "2"}
facts = {dict(labels)["id"]: value for (name, labels), value in samples.items() if name == "nvpm_fact"}
assert facts == {fact["id"]: levels[fact["verdict"]] for fact in said["facts"] if fact["verdict"] in levels}, facts
assert samples["nvpm_info", (("kernel", said["kernel"]),)] == "1"
assert samples.get(("nvpm_loaded", ())) == {"running": "1", "not running": "0", "unknown": None}[said["state"]]
