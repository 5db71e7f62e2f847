# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""facts.py TEXT JSON: compares what `status` and `status --json` have said, and prints a line
"section|name|verdict|value|advice" for each fact."""
import json
import sys

lines = open(sys.argv[1]).read().splitlines()
said = json.load(open(sys.argv[2]))
assert said["state"] in ("running", "not running", "unknown"), said["state"]
assert lines[0].startswith(f"nv_peer_mem: {said['state']}; "), lines[0]
to_do = 0
for fact in said["facts"]:
    advice = fact.get("advice", "")
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
