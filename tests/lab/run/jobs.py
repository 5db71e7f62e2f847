# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs a job of each kind, and keeps its result."""

import contextlib
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from layers import slowest
from layers.cache import CACHE, TOP, Wrong, locked, named, say
from layers.making import in_layers
from layers.stack import Layers, layers
from run.guest import Guest, pair, seconds_since
from run.ktap import Result
from run.qemu import USUAL, Options

# The number of seconds after which a check or a test of the packages is killed.
LIMIT = 3600

# For some kinds of jobs, the command that runs one job of the kind. The command of other kinds has
# the name of the kind.
COMMANDS_OF = {"guest": "scenario", "pair": "scenario", "package": "packages"}


def headers(scenario: str) -> dict[str, str]:
    """Returns the headers in the first comment of a scenario, as NAME: VALUE."""
    text = (TOP / f"tests/guest/scenarios/{scenario}.sh").read_text(encoding="utf-8")
    comment = re.match("(#.*\n)*", text)
    return dict(re.findall(r"^# ([A-Z]\w*): (.*)", comment[0] if comment else "", re.MULTILINE))


def options_for(scenarios: Iterable[str], extras: Iterable[str], usual: Options) -> Options:
    """Returns the options that the scenarios of a guest need. With a clock that counts
    instructions, no real time passes while all processors wait, so scenarios that sleep are
    fast."""
    each = [headers(name) for name in scenarios]
    found = {name: value for one in each for name, value in one.items()}
    clock = "instructions" if "Clock" in found else usual.clock
    nics = max(int(one.get("Nics", "1")) for one in each) if {"card", "mlx5"} & set(extras) else 0
    gpu = int(found.get("Gpu", str(usual.gpu)))
    return replace(usual, clock=clock, cards=int(found.get("Cards", "0")), nics=nics, gpu=gpu)


def nothing() -> Iterable[str]:
    return []


@dataclass
class Job:
    """A line of jobs.md, and the result of the job."""

    name: str
    where: str
    kind: str
    machine: str
    layers: list[str]
    runs: list[str]
    why: str
    # Machines of one kernel have most layers in common.
    kernel: str = "-"
    # Further words for the kernel's command line, and options for the emulator.
    words: str = ""
    options: Options = USUAL
    # Questions that only this job's guest may ask.
    answers: dict[str, Callable[..., str]] = field(default_factory=dict)
    # The only test that a check shall run, or an empty string for all tests.
    tests: str = ""
    # Directories that a check shares with the host, as FROM:TO.
    shares: list[str] = field(default_factory=list)
    # The command that repeats the job, if the usual command would run another job.
    again: str = ""

    # The current activity, whether the layers are complete, and the results so far.
    doing: str = field(default="its layers", init=False)
    ready: bool = field(default=False, init=False)
    passed: int = field(default=0, init=False)
    failed: int = field(default=0, init=False)
    checks: int = field(default=0, init=False)
    failures: list[str] = field(default_factory=list, init=False)
    # The other lines that the guest has reported.
    heard: dict[str, list[str]] = field(default_factory=dict, init=False)
    # The beginning of the job, and the end of its last run.
    began: float = field(default_factory=time.monotonic, init=False)
    last: float = field(default_factory=time.monotonic, init=False)

    def run(self) -> bool:
        """Runs the job. Returns whether all its runs passed."""
        self.began = self.last = time.monotonic()
        getattr(self, f"run_{self.kind}")()
        return not self.failed and self.passed >= len(self.runs)

    def report(
        self,
        result: Result,
        lines: Callable[[], Iterable[str]] = nothing,
        seed: str | None = None,
    ) -> None:
        """Reports the result of one run. LINES gives the output to show after a failure."""
        seconds, self.last = seconds_since(self.last), time.monotonic()
        slowest.took(f"{self.name}: {result.name}", seconds)
        self.checks += result.checks
        if not result.failures:
            self.passed += 1
            checks = f"{result.checks} checks, " if result.checks else ""
            say(self.name, f"{result.name} passed, {checks}{seconds} s")
            return
        self.failed += 1
        self.failures += result.failures
        again = f"SEED={seed} " if seed else ""
        again += f"tests/run {self.command_for(result.name)}"
        say(self.name, "\n".join([*lines(), *(f"not ok {text}" for text in result.failures)]))
        say(self.name, f"{result.name} FAILED after {seconds} s; again: {again}")

    def command_for(self, name: str) -> str:
        """Returns the command that repeats the run NAME, without the guest's name after a comma."""
        if self.again:
            return self.again
        if self.kind == "compile":
            return f"job {self.name}"
        command = f"{COMMANDS_OF.get(self.kind, self.kind)} {name.split(',')[0]}"
        if "host" in self.layers:
            command = f"host {name}"
        return command if self.machine == "-" else f"{command}@{self.machine}"

    def now(self, text: str) -> None:
        self.doing = text

    def made(self, kind: str, *words: str) -> Layers:
        """Makes the layers of a job. After that, other jobs with the same kernel may also start."""
        made = layers(self.name, kind, *words, doing=self.now)
        self.ready, self.doing, self.last = True, "boots", time.monotonic()
        return made

    # ---- guests ------------------------------------------------------------------

    def guest_words(self) -> str:
        seed = os.environ.get("SEED") or int.from_bytes(os.urandom(4), "big")
        return f"lab.seed={seed} {self.words}"

    def report_of(self, guest: Guest, result: Result, since: int = 0) -> int:
        """Reports the result of a scenario, with the output that the console has after its first
        SINCE bytes. Returns the number of bytes that the console has now."""
        console = guest.console.read_bytes() if guest.console.exists() else b""

        def lines() -> Iterator[str]:
            yield f"--- console of {guest.who} (whole: {CACHE}/log/{guest.who}.console) ---"
            yield from console[since:].decode(errors="replace").splitlines()[-100:]
            yield from (guest.run / "qemu.log").read_text(errors="replace").splitlines()[-5:]

        seeds = guest.heard.pop("seed", [])
        self.report(result, lines, seeds[-1] if seeds else None)
        return len(console)

    def run_in(self, guest: Guest, run: Callable[[], object]) -> None:
        since = 0

        def ended(result: Result) -> None:
            nonlocal since
            since = self.report_of(guest, result, since)
            self.doing = f"behind {result.name}"

        guest.ended = ended
        run()
        self.heard = guest.heard
        guest.forget()

    def run_guest(self) -> None:
        self.options = options_for(self.runs, self.layers, self.options)
        made = self.made("guest", self.machine, *self.layers)
        guest = Guest(self.name, made, self.runs, self.guest_words(), self.options)
        guest.answers |= self.answers
        self.run_in(guest, guest.scenarios)

    def run_system(self) -> None:
        for name in self.runs:
            made = self.made("system", self.machine, name)
            guest = Guest(self.name, made, [name], self.guest_words())
            self.run_in(guest, guest.system)

    def run_pair(self) -> None:
        made = self.made("guest", self.machine, *self.layers)
        options = options_for(self.runs, self.layers, self.options)
        for guest in pair(self.name, made, self.runs[0], self.guest_words(), options):
            results = guest.ktap.results or guest.ktap.over("the guest could not be run")
            for result in results:
                name = f"{result.name}, {guest.name}"
                self.report_of(guest, Result(name, result.checks, result.failures))
            guest.forget()

    # ---- commands ------------------------------------------------------------------

    def run_logged(
        self, name: str, stack: str, *command: object, binds: Iterable[str] = ()
    ) -> None:
        """Runs a command in layers, with its output in a log. The command counts its own checks, in
        lines `ok ...` or as cargo does."""
        self.doing, log = name, CACHE / "log" / f"{name}.log"
        ended = logged_end(log, stack, *command, binds=[f"{TOP}:/checkout:ro", *binds])
        text = log.read_text(errors="replace")
        for note in re.findall(r"^note (.*)", text, re.MULTILINE):
            say(self.name, f"{name}: {note}")
        cargo = re.findall(r"^test result: ok. (\d+) passed", text, re.MULTILINE)
        checks = sum(map(int, cargo)) + len(re.findall(r"^ok ", text, re.MULTILINE))
        failures = [f"{name} ended with {ended}"] if ended else []
        if not failures and not checks and (cargo or self.kind == "package"):
            failures = [f"{name} has tested nothing"]
        end = [*text.splitlines()[-60:], f"--- whole output: {log} ---"]
        self.report(Result(name, checks, failures), lambda: end)

    def run_check(self) -> None:
        if self.machine == "-":
            made = self.made("tools", *self.layers)
        else:
            made = self.made("guest", self.machine, *self.layers)
        words = [f"kver={made.kver}", f"kseries={made.kseries}"]
        if "HOST_SEED" in os.environ:
            words.append(f"HOST_SEED={os.environ['HOST_SEED']}")
        if self.tests:
            words.append(f"TESTS={self.tests}")
        for name in self.runs:
            check = ["env", *words, "bash", "/checkout/tests/lab/checks/check.sh", name]
            with self.kept_copy(name, made.stack) as binds:
                self.run_logged(name, made.stack, *check, binds=[*binds, *self.shares])

    @contextlib.contextmanager
    def kept_copy(self, name: str, stack: str) -> Iterator[list[str]]:
        """Keeps the copy of the checkout for checks that use cargo, so that the next run compiles
        only changed files. The name contains the hash of the stack, because cargo does not look at
        the packages of the system."""
        if not {"host", "client", "bench"} & set(self.layers):
            yield []
            return
        kept = CACHE / "cargo" / named(name, stack)
        (kept / "copy").mkdir(parents=True, exist_ok=True)
        with locked(kept / "lock"):
            os.utime(kept)
            yield [f"{kept}/copy:/tmp/copy"]

    def run_package(self) -> None:
        made = self.made("packages", self.machine)
        for name in self.runs:
            program = f"/checkout/tests/packages/{name}.sh"
            self.run_logged(name, made.stack, program, made.kver)

    def run_compile(self) -> None:
        """Reports each layer `compile` as a result. The report says when the layer was made,
        because an unchanged module is not compiled again."""
        for machine in self.runs:
            try:
                compiled = self.made("compile", machine).compiled
            except Wrong as wrong:
                self.report(Result(machine, 0, [str(wrong)]))
                continue
            lines = compiled.read_text(encoding="utf-8").splitlines()
            made = time.strftime("%F %R", time.localtime(compiled.stat().st_mtime))
            say(self.name, f"{machine}: made {made}: {compiled}")
            failures = [] if lines else ["nothing was compiled"]
            self.report(Result(machine, len(lines), failures))


def logged_end(log: Path, stack: str, *command: object, binds: list[str]) -> int | str:
    """Runs COMMAND in layers, with the output in LOG. Returns the exit status, or the problem."""
    with open(log, "w", encoding="utf-8") as out:
        try:
            return in_layers(
                stack,
                *command,
                binds=binds,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=LIMIT,
            ).returncode
        except subprocess.TimeoutExpired:
            return f"no end after {LIMIT} s"
