# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the output of `status --json`: a line "section|name|verdict|value|advice" for each fact."""
import json
import sys

said = json.load(sys.stdin)
assert said["state"] in ("running", "not running", "unknown"), said["state"]
to_do = 0
for fact in said["facts"]:
    advice = fact.get("advice", "")
    assert fact["verdict"] in ("good", "warn", "bad", "none"), fact
    if fact["verdict"] in ("warn", "bad"):
        to_do += 1
        assert advice, f"not good, but nothing to do about it: {fact}"
    print(fact["section"], fact["name"], fact["verdict"], fact["value"], advice, sep="|")
assert to_do == said["to_do"], (to_do, said["to_do"])
print("exit_code", said["exit_code"], sep="|")
