# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""facts.py TEXT JSON: compares what `status` and `status --json` have said, and prints a line
"section|name|verdict|value|advice" for each fact."""
import json
import re
import sys

lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
said = json.load(open(sys.argv[2], encoding="utf-8"))
assert said["schema"] == 2 and said["host"] and said["kernel"], said
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", said["time"]), said["time"]
assert said["state"] in ("running", "not running", "unknown"), said["state"]
assert lines[0].startswith(f"nv_peer_mem: {said['state']}; "), lines[0]
to_do = 0
ids = [fact["id"] for fact in said["facts"]]
assert len(ids) == len(set(ids)), f"ids that are there twice: {ids}"
for fact in said["facts"]:
    advice = fact.get("advice", "")
    assert re.fullmatch(r"[a-z0-9.:_-]+/[a-z0-9.:_-]+", fact["id"]), fact
    assert fact["verdict"] in ("good", "warn", "bad", "none"), fact
    if fact["verdict"] in ("warn", "bad"):
        to_do += 1
        assert advice, f"not good, but nothing to do about it: {fact}"
    assert fact["section"] in lines, fact
    assert any(line[6:].split() == f"{fact['name']} {fact['value']}".split() for line in lines), fact
    assert not advice or f"        -> {advice}" in lines, fact
    print(fact["section"], fact["name"], fact["verdict"], fact["value"], advice, sep="|")
assert to_do == said["to_do"], (to_do, said["to_do"])
print("exit_code", said["exit_code"], sep="|")
