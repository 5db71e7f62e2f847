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


def listed(kind):
    """The devices that the section of KIND names below its heading."""
    names = []
    for line in lines[lines.index(kind) + 1:]:
        if not line.startswith("      "):
            return names
        names += line.replace(",", " ").split()
    return names


def in_matrix(gpu, device, value):
    """The text's matrix says the same."""
    start = lines.index("distance of GPU and RDMA device")
    devices = lines[start + 1].split()
    row = next(line for line in lines[start:] if line[6:].startswith(gpu))[6:].split()
    if device == "nearest":
        assert " ".join(row[len(devices):]) == value, (gpu, row, value)
    else:
        assert row[1 + devices.index(device)] == value, (gpu, device, row, value)


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
    if fact["section"] == "distance":
        in_matrix(*fact["name"].split(), fact["value"])
    else:
        assert any(line[6:].split(" [")[0].split() == f"{fact['name']} {fact['value']}".split() for line in lines), fact
        kind, _, device = fact["section"].rpartition(" ")
        if kind in ("GPU", "RDMA device"):
            assert device in listed(kind + "s"), fact
        else:
            assert fact["section"] in lines, fact
    assert not advice or f"        -> {advice}" in lines, fact
    print(fact["section"], fact["name"], fact["verdict"], fact["value"], advice, sep="|")
assert to_do == said["to_do"], (to_do, said["to_do"])
print("exit_code", said["exit_code"], sep="|")
