# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs nvpm on machines that are made of files, and defines the language of the tables machines,
commands, selftest, varied, judged and programs_by_pair.

A machine begins with its [title], and has no defect at first (machine.py). The lines below the
title are executed in order: changes, then a command, then expectations. The first expectation may
follow a change or a command on the same line, after `=>`. Changes:

    /FILE = TEXT    makes a file with this text; \\n and others as in C; with := the text has no
                    newline at its end, with += the text is a further line
    /FILE -> TARGET    makes a symbolic link
    /DIRECTORY/     makes a directory
    - /FILE...      removes files and directories; a machine that has neither the file
                    /modinfo/nv_peer_mem nor the configuration has nothing of the packages
    env NAME=VALUE  sets a variable for the commands
    WORD...         calls a method of Machine
    each A | B      repeats the whole machine for A and for B, which replace each %
    not good ID...  from here on these facts may be `warn` or `bad` without an expectation

`nvpm WORD...` is run inside this process. `$ COMMAND` is run by the shell in the directory of the
installed files, which is in PATH, as is nvpm. `said MODULE TEXT` asks nvpm for advice, as if
modprobe had printed TEXT about MODULE. The text after `=>` must be a part of the advice.
Expectations without a command are about `nvpm status`. All its forms are run, and must agree.
Each piece of advice is judged, too: its commands must do something on the machine (useful.py).
Expectations of status:

    VERDICT ID,ID...[: VALUE][ -> ADVICE]    these facts exist, with parts of these texts;
                    each other fact that is `warn` or `bad` is a failure
    no ID           this fact does not exist
    metric SAMPLE   this sample for Prometheus exists, without quotation marks

Expectations of any command:

    exit CODE [TEXT]    the exit code, 0 by default; TEXT is a part of the output
    prints TEXT     TEXT is the whole output; \\n as in `=`
    line TEXT       TEXT is a whole line, with single blanks
    says TEXT       TEXT is a part of the output; ` ... ` stands for any text
    lines N TEXT    N lines contain TEXT
    json WHAT       the Python expression WHAT about the object `j` is true
"""

import codecs
import contextlib
import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import useful
from installed import SERVICE
from machine import ALIASES, Machine

from nvpm import commands
from nvpm.read import machine as subject

# Lines of a table, each with its number.
Lines = list[tuple[int, str]]
# The output of a command, and the command's exit code.
Ended = tuple[str, object]

HERE = Path(__file__).resolve().parent
TOOLS = ("modinfo", "mokutil", "ofed_info", "rpm", "systemctl")
FORMS = ("status --all", "status --json", "status --prometheus")

FACT = re.compile(r"(good|warn|bad|none) (\S+?)(?:: (.*?))?(?: -> (.*))?")
LABEL = r'([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"'
SAMPLE = re.compile(rf"([a-z_]+)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (?P<value>\d+)")
EXPECTATIONS = (
    "good",
    "warn",
    "bad",
    "none",
    "no",
    "metric",
    "exit",
    "prints",
    "line",
    "says",
    "lines",
    "json",
)
LEVELS = {"good": "0", "warn": "1", "bad": "2"}


def unescaped(text: str) -> bytes:
    return codecs.escape_decode(text.encode())[0]


def has(text: object, parts: str) -> bool:
    pattern = ".*".join(map(re.escape, parts.split(" ... ")))
    return re.search(pattern, str(text), re.DOTALL) is not None


def check_json(said: dict[str, Any]) -> None:
    assert set(said) == {
        "schema",
        "nvpm",
        "host",
        "kernel",
        "time",
        "state",
        "exit_code",
        "to_do",
        "facts",
        "ways",
        "programs",
        "programs_by_pair",
    }, said
    assert (said["schema"], said["host"]) == (2, "machine") and said["kernel"], said
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", said["time"]), said["time"]
    assert len({fact["id"] for fact in said["facts"]}) == len(said["facts"]), (
        "an identifier is there twice"
    )
    for fact in said["facts"]:
        assert set(fact) | {"advice"} == {"id", "section", "name", "verdict", "value", "advice"}, (
            fact
        )
        assert re.fullmatch(r"[a-z0-9.:_-]+/[a-z0-9.:_-]+", fact["id"]), fact
        assert (
            fact["verdict"] in ("good", "none") or fact["verdict"] in LEVELS and fact["advice"]
        ), fact
    assert said["to_do"] == sum(fact["verdict"] in ("warn", "bad") for fact in said["facts"]), said[
        "to_do"
    ]


def check_text(said: dict[str, Any], text: str) -> None:
    """Checks that status prints the same facts in its text and in its JSON output."""
    lines = text.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("nv_peer_mem: "))
    answer, lines = lines[: first - 1], lines[first:]
    assert 1 <= len(answer) <= 12 and max(map(len, answer)) <= 100, answer
    assert lines[0].startswith(f"nv_peer_mem: {said['state']}; "), lines[0]
    for fact in said["facts"]:
        section, name, value = fact["section"], fact["name"], str(fact["value"])
        kind, _, device = section.rpartition(" ")
        if section == "distance":
            gpu, other = name.split()
            below = lines[lines.index("distance of GPU and RDMA device") + 1 :]
            devices, row = (
                below[0].split(),
                next(line for line in below if line[6:].startswith(gpu))[6:].split(),
            )
            said_there = (
                " ".join(row[len(devices) :])
                if other == "nearest"
                else row[1 + devices.index(other)]
            )
            assert said_there == value, (fact, row)
        else:
            assert any(
                line[6:].split(" [")[0].split() == [*name.split(), *value.split()] for line in lines
            ), fact
        if kind in ("GPU", "RDMA device"):
            listed = "\n".join(lines[lines.index(kind + "s") + 1 :])
            named = re.match("(      .*\n)*", listed)
            assert named and device in re.split("[, \n]+", named[0]), fact
        else:
            assert section == "distance" or section in lines, fact
        assert "advice" not in fact or f"        -> {fact['advice']}" in lines, fact


def check_metrics(said: dict[str, Any], text: str) -> list[str]:
    """Checks that the samples have the text format of Prometheus and agree with the JSON output.
    Returns the samples."""
    assert text.endswith("\n"), "the last line has no end"
    helped = typed = ""
    samples: dict[str, str] = {}
    for line in text[:-1].split("\n"):
        match = SAMPLE.fullmatch(line)
        if match:
            labels = (f"{name}={value}" for name, value in re.findall(LABEL, match[2] or ""))
            label = re.sub(r"\\(.)", r"\1", f"{{{','.join(labels)}}}") if match[2] else ""
            assert match[1] == typed and typed + label not in samples, (
                f"not below its type, or twice: {line}"
            )
            samples[typed + label] = match["value"]
        elif line.startswith("# HELP "):
            helped, text = line.split(" ", 3)[2:]
            assert text and not any(sample.split("{")[0] == helped for sample in samples), (
                f"not together: {line}"
            )
        else:
            assert (
                line == f"# TYPE {helped} {'counter' if helped.endswith('_total') else 'gauge'}"
            ), line
            typed = helped
    judged = {
        f"nvpm_fact{{id={fact['id']}}}": LEVELS[fact["verdict"]]
        for fact in said["facts"]
        if fact["verdict"] != "none"
    }
    assert judged == {
        sample: value for sample, value in samples.items() if sample.startswith("nvpm_fact{")
    }, samples
    info = f"nvpm_info{{kernel={said['kernel']},module="
    assert [value for sample, value in samples.items() if sample.startswith(info)] == ["1"], samples
    assert (
        samples.get("nvpm_loaded")
        == {"running": "1", "not running": "0", "unknown": None}[said["state"]]
    ), samples
    return [f"{sample} {value}" for sample, value in samples.items()]


def called(machine: subject.Machine, environment: dict[str, str], *words: str) -> Ended:
    """Runs nvpm inside this process. The user is the one whose number is in the machine's file
    /uid, or else root. The file /asked has the answers of RDMA devices about dma-buf: each line
    begins with the name of a device. Returns the output and the exit code."""
    uid = int(machine.text("/uid") or 0)
    lines = (line.partition(" ") for line in machine.all_text("/asked").splitlines())
    answers = {name: answer for name, _, answer in lines}
    said = io.StringIO()
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch("os.geteuid", lambda: uid),
        mock.patch("nvpm.read.dma_buf.asked", lambda _machine: answers),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        try:
            code: object = commands.main(machine, list(words))
        except SystemExit as end:
            code = end.code
    return said.getvalue(), code


def run(environment: dict[str, str], command: str) -> Ended:
    """Runs a shell command. Returns output and exit code."""
    done = subprocess.run(
        ["dash", "-c", command],
        cwd=SERVICE,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode(errors="surrogateescape"), done.returncode


class Look:
    """Runs a command on a machine, and compares the output with the expectations of a table."""

    def __init__(
        self,
        environment: dict[str, str],
        passed_over: set[str],
        words: list[str] | None = None,
        command: str = "",
    ) -> None:
        self.environment, self.passed_over = dict(environment), passed_over
        self.words, self.command = words, command
        self.expected: Lines = []
        # The output and the exit code of the command. After `status`, there are also its facts and
        # samples.
        self.output = ""
        self.code: object = None
        self.facts: dict[str, dict[str, Any]] = {}
        self.samples: list[str] = []

    def ask(self, words: list[str]) -> Ended:
        return called(subject.Machine(self.environment["NVPM_SYSROOT"]), self.environment, *words)

    def run(self) -> Lines:
        """Runs the command, and returns the failures, each with the number of its line."""
        wrong = []
        if self.command or self.words is not None:
            self.run_command()
        else:
            wrong += self.run_status()
        for number, line in self.expected:
            if what := self.not_held(line):
                wrong.append((number, what))
        wrong += [(0, f"{name}: is warn or bad without an expectation") for name in self.not_good()]
        wrong += [(0, f"does nothing on this machine: {part}") for part in self.useless()]
        return [(number or self.expected[0][0], what) for number, what in wrong]

    def useless(self) -> list[str]:
        """Returns the parts of all advice that would do nothing on this machine."""
        advices = [fact.get("advice", "") for fact in self.facts.values()]
        if self.words and self.words[0] == "advise":
            advices.append(self.output)
        root = self.environment["NVPM_SYSROOT"]
        return [part for advice in advices for part in useful.useless(root, advice)]

    def run_command(self) -> None:
        if self.command:
            self.output, self.code = run(self.environment, self.command)
        else:
            self.output, self.code = self.ask(self.words or [])
        if not any(line.startswith("exit ") for _, line in self.expected):
            self.expected.append((0, "exit 0"))

    def run_status(self) -> Lines:
        machine = subject.Machine(self.environment["NVPM_SYSROOT"])
        said = [called(machine, self.environment, *form.split()) for form in FORMS]
        self.output, self.code = said[0]
        try:
            self.read_status([code for _, code in said], [text for text, _ in said])
        except (AssertionError, LookupError, ValueError, StopIteration) as error:
            return [(0, f"{type(error).__name__}: {error}")]
        return []

    def not_held(self, line: str) -> str:
        """Returns the failure of an expectation, or "" if the expectation holds."""
        try:
            return "" if self.holds(*line.split(" ", 1)) else line
        except (LookupError, TypeError, ValueError) as error:
            return f"{line}: {type(error).__name__}: {error}"

    def not_good(self) -> set[str]:
        """Returns the facts that are `warn` or `bad` without an expectation."""
        marked = {name for name, fact in self.facts.items() if fact["verdict"] in ("warn", "bad")}
        for _, line in self.expected:
            if fact := FACT.fullmatch(line):
                marked -= set(fact[2].split(","))
        return marked - self.passed_over

    def read_status(self, codes: list[object], outputs: list[str]) -> None:
        modules = Path(self.environment["NVPM_SYSROOT"], "sys/module")
        said = json.loads(outputs[1])
        state = next(fact for fact in said["facts"] if fact["id"] == "module/state")
        # If there is another way, a missing module is no defect, and status does not mark it.
        no_way = not any(pair["ways"] for pair in said["ways"])
        missed = said["state"] != "running" and (no_way or state["verdict"] in ("warn", "bad"))
        code = (3 if missed else 0) if modules.exists() else 4
        names = (modules / "nv_peer_mem", modules / "nvidia_peermem/statistics")
        assert any(map(Path.exists, names)) == (said["state"] == "running"), said["state"]
        assert [*codes, said["exit_code"]] == [code, code, 0, code], (
            f"exit codes {codes}, {said['exit_code']} of {code}"
        )
        self.facts = {fact["id"]: fact for fact in said["facts"]}
        check_json(said)
        check_text(said, outputs[0])
        self.samples = check_metrics(said, outputs[2])

    def holds(self, word: str, rest: str = "") -> bool:
        if word in ("good", "warn", "bad", "none"):
            return self.is_fact(f"{word} {rest}")
        lines = self.output.splitlines()
        number, _, text = rest.partition(" ")
        printed = self.output.rstrip("\n").encode(errors="surrogateescape")
        met: dict[str, Callable[[], object]] = {
            "no": lambda: rest not in self.facts,
            "metric": lambda: rest in self.samples,
            "exit": lambda: self.code == int(number) and has(self.output, text),
            "prints": lambda: printed == unescaped(rest),
            "line": lambda: rest in [" ".join(line.split()) for line in lines],
            "says": lambda: has(self.output, rest),
            "lines": lambda: int(number) == sum(text in line for line in lines),
            "json": lambda: eval(rest, {"j": json.loads(self.output)}),  # the tables are trusted
        }
        return bool(met[word]())

    def is_fact(self, line: str) -> bool:
        match = FACT.fullmatch(line)
        assert match, line
        verdict, names, value, advice = match.groups(default="")
        unknown = {"verdict": "", "value": ""}
        facts = [self.facts.get(name, unknown) for name in names.split(",")]
        return all(
            fact["verdict"] == verdict
            and has(fact["value"], value)
            and has(fact.get("advice", ""), advice)
            for fact in facts
        )


class Player:
    """Executes the lines of a machine in a new directory."""

    def __init__(self, scratch: Path, **more: str) -> None:
        (scratch / "bin").mkdir()
        for name in TOOLS:
            (scratch / "bin" / name).symlink_to(HERE / "tool")
        (scratch / "bin/nvpm").symlink_to(SERVICE / "nvpm.sh")
        path = f"{scratch}/bin:{SERVICE}:{os.environ['PATH']}"
        self.environment = {
            **os.environ,
            "NVPM_SYSROOT": str(scratch / "machine"),
            "SERVICE": str(SERVICE),
            "PATH": path,
            "PYTHONDONTWRITEBYTECODE": "",
            **more,
        }
        self.looks = 0
        # The facts that may be `warn` or `bad` although no expectation names them.
        self.passed_over: set[str] = set()

    def play(self, lines: Lines) -> list[str]:
        """Executes the lines. Returns the failures, as lines of text."""
        machine = Machine(self.environment["NVPM_SYSROOT"])
        look: Look | None = None
        wrong: list[str] = []
        for number, line in [*lines, (0, "end")]:
            if line.partition(" ")[0] in EXPECTATIONS:
                look = look or Look(self.environment, self.passed_over)
                look.expected.append((number, line))
                continue
            wrong += self.result(look) if look else []
            look = self.look_of(line)
            if not look and line != "end":
                self.change(machine, line)
        return wrong

    def look_of(self, line: str) -> Look | None:
        """Returns the look that runs the command of this line. Returns None if the line is a
        change."""
        word, _, rest = line.partition(" ")
        if word == "$":
            return Look(self.environment, self.passed_over, command=rest)
        if word == "nvpm":
            return Look(self.environment, self.passed_over, shlex.split(rest))
        if word == "said":
            module, _, text = rest.partition(" ")
            said = unescaped(f"modprobe: ERROR: could not insert '{module}': {text}").decode()
            return Look(self.environment, self.passed_over, ["advise", module, said])
        return None

    def change(self, machine: Machine, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "env":
            name, _, value = rest.partition("=")
            self.environment[name] = value
        elif word == "not":
            self.passed_over.update(rest.split()[1:])
        else:
            machine.change(line)

    def result(self, look: Look) -> list[str]:
        self.looks += 1
        wrong = [f"line {number}: {what}" for number, what in look.run()]
        return [*wrong, look.output[-4000:]] if wrong else []


def read_table(table: str) -> Iterator[tuple[str, Lines]]:
    """Yields the title of each machine with the machine's lines. Each line is one change, one
    command or one expectation."""
    title = ""
    lines: Lines = []
    text = (HERE / table).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        for alias, meant in ALIASES.items():
            line = line.replace(alias, meant)
        if line.startswith("["):
            if title:
                yield title, lines
            title, lines = line.strip("[]"), []
        elif line and not line.startswith("#"):
            assert title, f"line {number} is before the first title"
            change, _, expected = line.partition(" => ")
            lines.append((number, change))
            if expected:
                said = change.startswith("said ")
                lines.append((number, f"says {expected}" if said else expected))
    yield title, lines


def machines(table: str) -> Iterator[tuple[str, Lines]]:
    """Yields the machines of the table. If a machine has lines `each`, it is yielded once for every
    value in these lines. The value then takes the place of %."""
    for title, lines in read_table(table):
        own = [(number, line) for number, line in lines if not line.startswith("each ")]
        each = [line[5:].split(" | ") for _, line in lines if line.startswith("each ")]
        if not each:
            yield title, own
        for value in (value for values in each for value in values):
            of_value = [(number, line.replace("%", value)) for number, line in own]
            yield f"{title} ({value})", of_value
