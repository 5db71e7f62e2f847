# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the answer for programs."""

import json
from typing import Callable, Dict

from . import here
from .answer import Answer, nodes_of, plain, ranks_of
from .judge import Aside, Found
from .lines import hosts_of
from .scan import Hit
from .table import NAMES


def as_json(answer: Answer, quoted: Callable[[str], str]) -> str:
    verdict = answer.verdict
    return json.dumps(
        {
            "schema": 1,
            "answer": answer.kind(),
            "certain": bool(verdict.causes) and verdict.certain(),
            "log": log_object(answer, quoted),
            "causes": [cause_object(one, answer, quoted) for one in verdict.causes],
            "follows": [aside_object(one, quoted) for one in verdict.follows],
            "aside": [aside_object(one, quoted) for one in verdict.aside],
            "unknown": [line_object(hit, quoted) for hit in answer.unknown()],
        },
        indent=1,
    )


def log_object(answer: Answer, quoted: Callable[[str], str]) -> Dict[str, object]:
    facts = answer.scan.facts
    return {
        "files": list(map(quoted, answer.names)),
        "lines": answer.scan.lines,
        "facts": sorted(facts.names),
        "versions": facts.versions,
        "variables": {
            name: sorted(map(quoted, values)) for name, values in sorted(facts.variables.items())
        },
        "nodes": nodes_of(facts, answer.scan.sources),
        "ranks": ranks_of(facts, answer.scan.sources),
    }


def cause_object(found: Found, answer: Answer, quoted: Callable[[str], str]) -> Dict[str, object]:
    return {
        "cause": NAMES[found.cause],
        "says": plain(found.says()),
        "do": plain(here.to_do(found, answer.facts)),
        "sure": found.sure(),
        "score": found.score(),
        "nv_peer_mem": found.cause.ours,
        "status": plain(found.cause.status),
        "node": node_object(found, answer),
        "messages": [
            {"message": one.variant.entry.message.text, **line_object(one.hit, quoted)}
            for one in found.proofs
        ],
    }


def node_object(found: Found, answer: Answer) -> Dict[str, object]:
    fact, fits = here.word(found, answer.facts or [])
    return {"fact": fact, "fits": fits} if fact else {}


def aside_object(one: Aside, quoted: Callable[[str], str]) -> Dict[str, object]:
    message = one.variant.entry.message
    return {"message": message.text, "why": one.why, **line_object(one.hit, quoted)}


def line_object(hit: Hit, quoted: Callable[[str], str]) -> Dict[str, object]:
    return {
        "file": quoted(hit.place[0]),
        "line": hit.place[1],
        "text": quoted(hit.text),
        "count": hit.count,
        "hosts": sorted(set(map(quoted, hosts_of(hit.sources)))),
    }
