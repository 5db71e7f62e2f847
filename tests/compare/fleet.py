# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes outputs of nodes, in the forms in which tools collect them, and compares them by the
program."""

import functools
import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from program import Said, nvpm

Status = dict[str, Any]
# The lines of a screen, and its columns.
HEIGHT, WIDTH = 24, 100


class Group(NamedTuple):
    nodes: list[str]
    differences: list[tuple[str, str]]
    like: list[str]


class Fleet:
    """What the program says of the nodes in LINES."""

    def __init__(self, lines: Iterable[str], *options: str) -> None:
        self.lines, self.options = "\n".join(lines), options
        self.said = self.ask("--json")
        assert self.said.code < 2, self.said.err
        found = json.loads(self.said.out)
        self.total, self.alike = found["nodes"], found["alike"]
        self.kinds, self.missing = found["kinds"], found["missing"]
        self.used = found["used"]
        self.missing_count, self.unexpected = found["missing_count"], found["unexpected"]
        self.silent = {one["node"]: one["words"] for one in found["silent"]}
        self.nodes = [node for kind in self.kinds for node in kind["nodes"]]
        self.odd = [
            Group(
                one["nodes"], [(d["feature"], d["value"]) for d in one["differences"]], one["like"]
            )
            for one in found["groups"]
        ]

    def ask(self, *words: str) -> Said:
        return nvpm("compare", *self.options, *words, text=self.lines)

    @functools.cached_property
    def text(self) -> list[str]:
        """The lines of one screen."""
        return self.ask().out.splitlines()

    @property
    def words(self) -> str:
        """The screen in one line."""
        return " ".join(" ".join(self.text).split())

    def all(self) -> list[str]:
        return self.ask("--all").out.splitlines()


# ---- outputs of nodes ----


def fact(section: str, name: str, value: str, verdict: str = "good") -> dict[str, str]:
    words = f"{section}/{name}".lower().replace(" ", "_")
    return {"id": words, "section": section, "name": name, "verdict": verdict, "value": value}


def status(host: str) -> Status:
    return {
        "schema": 2,
        "host": host,
        "kernel": "6.8.0-45-generic",
        "time": f"2026-11-26T03:00:{len(host):02}Z",
        "ways": [{"gpu": "0000:03:00.0", "device": "mlx5_0", "ways": ["nv_peer_mem"]}],
        "programs": {"NCCL, newer": "nv_peer_mem"},
        "facts": [
            fact("driver", "nvidia", "loaded, version 590.48.01"),
            fact(
                "GPU 0000:03:00.0", "link", "2.5 GT/s x16, can 32 GT/s: GPUs are slower when idle"
            ),
            fact("GPU 0000:43:00.0", "link", "32.0 GT/s x16"),
            fact("GPU 0000:03:00.0", "BAR1", "128 GiB"),
            fact("GPU 0000:43:00.0", "BAR1", "128 GiB"),
            fact("RDMA device mlx5_0", "link", "32.0 GT/s x16"),
            fact("use", "registrations", str(len(host) * 7)),
            fact("use", "failed_driver", "0"),
            fact("use", "orphans", "0"),
        ],
    }


def printed(said: Status) -> list[str]:
    """Returns the lines in which nvpm prints a status."""
    head = [f"  {json.dumps(key)}: {json.dumps(said[key])}," for key in said if key != "facts"]
    pairs = [f"    {json.dumps(pair)}" for pair in said["ways"]]
    head[list(said).index("ways")] = "\n".join(['  "ways": [', ",\n".join(pairs), "  ],"])
    head = "\n".join(head).split("\n")
    facts = ",\n".join(f"    {json.dumps(one)}" for one in said["facts"]).split("\n")
    return ["{", *head, '  "facts": [', *facts, "  ]", "}"]


def with_labels(nodes: dict[str, Status], form: str = "{}: {}") -> list[str]:
    return [form.format(name, line) for name, said in nodes.items() for line in printed(said)]


def numbered(nodes: dict[str, Status]) -> list[str]:
    """Returns the lines in the form of srun --label. The lines of two tasks are mixed."""
    columns = [
        [f"{number:>2}: {line}" for line in printed(said)]
        for number, said in enumerate(nodes.values())
    ]
    return [line for lines in zip(*columns, strict=True) for line in lines]


def in_groups(nodes: dict[str, Status]) -> list[str]:
    rule = "-" * 15
    return [line for name, said in nodes.items() for line in (rule, name, rule, *printed(said), "")]


def by_ansible(nodes: dict[str, Status]) -> list[str]:
    lines = []
    for number, (name, said) in enumerate(nodes.items()):
        text = printed(said)
        if number % 2:
            text[-1] += "non-zero return code"
        how = "FAILED | rc=3 >>" if number % 2 else "CHANGED | rc=0 >>"
        if number % 2:
            lines += [
                "[ERROR]: Task failed: non-zero return code",
                "Origin: <adhoc 'raw' task>",
                "",
            ]
        lines += [f"{name} | {how}", *text]
    return lines


def by_module(nodes: dict[str, Status]) -> list[str]:
    """Returns the lines in which Ansible prints the result of a module. The result contains the
    output of nvpm."""
    lines = []
    for name, said in nodes.items():
        result = {"changed": True, "rc": 0, "stdout": "\n".join(printed(said))}
        lines += [f"{name} | SUCCESS => {line}" for line in json.dumps(result).split("\n")]
    return lines


def unchanged(_said: Status) -> None:
    """Changes nothing."""


def fleet(count: int, **changes: Callable[[Status], None]) -> Fleet:
    """Makes a fleet. CHANGES has functions that change a status, by the name of the node."""
    nodes = {}
    for number in range(count):
        name = f"node{number:03}"
        nodes[name] = status(name)
        changes.get(name, unchanged)(nodes[name])
    return Fleet(with_labels(nodes))


def changed(name: str, value: str, at: int = 0) -> Callable[[Status], None]:
    def change(said: Status) -> None:
        [one for one in said["facts"] if one["name"] == name][at]["value"] = value

    return change


def selftest(host: str, to_gpu: float, from_gpu: float, failure: str | None = None) -> Status:
    """Returns the output of `nvpm selftest --bandwidth --json` on a node with one pair."""
    pair = {"gpu": 0, "device": "mlx5_0", "way": "pointer", "passed": failure is None}
    pair.update(failure=failure, to_gpu=int(to_gpu), from_gpu=int(from_gpu))
    return {"schema": 1, "host": host, "bandwidth": True, "pairs": [pair], "absent": []}


def selftest_lines(results: dict[str, Status]) -> list[str]:
    return [
        f"{name}: {line}"
        for name, said in results.items()
        for line in json.dumps(said, indent=2, sort_keys=True).split("\n")
    ]


def used(state: str, *verdicts: str, without: int = 0) -> Status:
    """Returns the output of `nvpm used --json` with processes that have these verdicts, and some
    processes that have GPUs and no RDMA device open."""
    processes = [{"process": at, "verdict": one} for at, one in enumerate(verdicts)]
    others = [{"process": 50 + at, "command": "train"} for at in range(without)]
    code = {"direct": 0, "partly": 0, "host": 1, "without_rdma": 3, "idle": 3}.get(state, 4)
    said: Status = {"schema": 1, "answer": "an answer", "state": state, "exit_code": code}
    return {**said, "processes": processes, "devices": [], "without_rdma": others}


def kind(**facts: str) -> Callable[[Status], None]:
    """Returns a function that changes a status to that of another kind of node."""

    def change(said: Status) -> None:
        said["kernel"] = facts.get("kernel", said["kernel"])
        said["nvpm"] = facts.get("nvpm", "2.0.0 (commit 0123456789ab)")
        if "model" in facts:
            said["facts"].insert(0, fact("GPU 0000:03:00.0", "model", facts["model"]))
        if "driver" in facts:
            verdict = "good" if "version" in facts["driver"] else "bad"
            changed("nvidia", facts["driver"])(said)
            next(one for one in said["facts"] if one["name"] == "nvidia")["verdict"] = verdict
        if "link" in facts:
            changed("link", facts["link"], -1)(said)

    return change


def mixed(*kinds: tuple[int, Callable[[Status], None]]) -> Fleet:
    """Makes a fleet with so many nodes of each kind."""
    changes = [change for count, change in kinds for _ in range(count)]
    return fleet(len(changes), **{f"node{at:03}": change for at, change in enumerate(changes)})
