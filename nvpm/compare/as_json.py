# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a fleet as one JSON object. docs/monitoring.md explains its keys."""

import json

from .fleet import Fleet
from .kinds import NAMES, deciding

# The version of the object.
SCHEMA = 2


def as_json(fleet: Fleet) -> str:
    places = deciding([kind.key for kind in fleet.kinds])
    kinds = [
        {
            "nodes": kind.nodes,
            "alike": len(kind.alike()),
            "decided_by": {NAMES[place]: kind.key[place] for place in places},
            "norm": kind.norm,
        }
        for kind in fleet.kinds
    ]
    groups = [
        {
            "nodes": group.nodes,
            "kind": group.kind,
            "like": list(group.like),
            "differences": [
                {"feature": name, "value": value, "others": group.others[name]}
                for name, value in group.differences
            ],
        }
        for group in fleet.odd
    ]
    return json.dumps(
        {
            "schema": SCHEMA,
            "nodes": fleet.total,
            "alike": fleet.alike,
            "nvpm": fleet.versions,
            "kinds": kinds,
            "groups": groups,
            "silent": [{"node": node.name, "words": node.words} for node in fleet.silent],
            "missing": fleet.missing,
            "missing_count": fleet.missing_count,
            "unexpected": fleet.unexpected,
        },
        indent=1,
        ensure_ascii=False,
    )
