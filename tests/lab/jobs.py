# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The jobs: the table jobs.md, what a job of each kind does, and some of them at a time."""

import contextlib
import os
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from guest import Guest, pair, seconds_since
from ktap import Result
from cache import CACHE, LAB, TOP, Wrong, locked, named, say
from layers import Layers, layers, machines
from making import in_layers

# Which jobs a command runs, by the column "in".
COMMANDS = {"test": {"test"}, "all": {"test", "all"}, "debug": {"debug"}, "soak": {"soak"}, "bench": {"bench"}}

# Where the files are that a job of some kind runs.
PLACES = {"guest": "guest/scenarios", "pair": "guest/scenarios", "system": "guest/systems", "package": "packages"}

# Checks of which one test can be run: `tests/run host models::freed`.
TESTED = {"models", "arithmetic", "kernel_crate", "c_half", "mutants"}

# Seconds after which a check or a test of the packages is ended.
LIMIT = 3600


@dataclass
class Job:
    """A line of jobs.md, and what came of it."""

    name: str
    where: str
    kind: str
    machine: str
    layers: list
    runs: list
    why: str
    # Machines of one kernel have most layers in common.
    kernel: str = "-"
    words: str = ""
    # Of a check of which one test can be run, which of its tests; empty for all.
    tests: str = ""
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        self.doing, self.ready, self.passed, self.failed, self.checks, self.heard = "its layers", False, 0, 0, 0, {}
        self.began = self.last = time.monotonic()

    def run(self):
        """Runs it; whether all of it passed."""
        self.began = self.last = time.monotonic()
        getattr(self, f"run_{self.kind}")()
        return not self.failed and self.passed >= len(self.runs)

    def report(self, result, lines=list, seed=None):
        """What one of its runs came to; LINES has what to look at if it failed."""
        seconds, self.last = seconds_since(self.last), time.monotonic()
        self.checks += result.checks
        if not result.failures:
            self.passed += 1
            say(self.name, f"{result.name} passed, {f'{result.checks} checks, ' if result.checks else ''}{seconds} s")
            return
        self.failed += 1
        command = {"guest": "scenario", "pair": "scenario", "package": "packages", "compile": "job"}.get(self.kind, self.kind)
        command = f"host {result.name}" if "host" in self.layers else f"{command} {result.name.split(',')[0]}"
        command = f"job {self.name}" if self.kind == "compile" else command if self.machine == "-" else f"{command}@{self.machine}"
        say(self.name, "\n".join([*lines(), *(f"not ok {text}" for text in result.failures)]))
        say(self.name, f"{result.name} FAILED after {seconds} s; again: {f'SEED={seed} ' if seed else ''}tests/run {command}")

    def now(self, text):
        self.doing = text

    def made(self, *words):
        """The layers of a job, which then can go on beside another of the same kernel."""
        facts = layers(self.name, *words, doing=self.now)
        self.ready, self.doing, self.last = True, "boots", time.monotonic()
        return facts

    # ---- guests ------------------------------------------------------------------

    def guest_words(self):
        return f"lab.seed={os.environ.get('SEED') or int.from_bytes(os.urandom(4), 'big')} {self.words}"

    def report_of(self, guest, result, since=0):
        """Of a scenario, with what the console had from SINCE on. Returns its size now."""
        def lines():
            yield f"--- console of {guest.who} (whole: {CACHE}/log/{guest.who}.console) ---"
            yield from console[since:].decode(errors="replace").splitlines()[-100:]
            yield from (guest.run / "qemu.log").read_text(errors="replace").splitlines()[-5:]

        console = guest.console.read_bytes() if guest.console.exists() else b""
        self.report(result, lines, guest.heard.pop("seed", [None])[0])
        return len(console)

    def run_in(self, guest, run):
        since = 0

        def ended(result):
            nonlocal since
            since = self.report_of(guest, result, since)
            self.doing = f"behind {result.name}"

        guest.ended = ended
        run()
        self.heard = guest.heard
        guest.forget()

    def run_guest(self):
        # Where time counts instructions, none passes while all processors wait: for scenarios that sleep.
        if any("Clock" in headers(name) for name in self.runs):
            self.options = {"clock": "instructions"}
        guest = Guest(self.name, self.made("guest", self.machine, *self.layers), self.runs, self.guest_words(), **self.options)
        self.run_in(guest, guest.scenarios)

    def run_system(self):
        for name in self.runs:
            guest = Guest(self.name, self.made("system", self.machine, name), [name], self.guest_words())
            self.run_in(guest, guest.system)

    def run_pair(self):
        for guest in pair(self.name, self.made("guest", self.machine, *self.layers), self.runs[0], self.guest_words()):
            for result in guest.ktap.results or guest.ktap.over("the guest could not be run"):
                self.report_of(guest, Result(f"{result.name}, {guest.name}", result.checks, result.failures))
            guest.forget()

    # ---- commands ------------------------------------------------------------------

    def run_logged(self, name, facts, *command, binds=()):
        """In layers, a command that counts its own checks, in lines `ok ...` or as cargo does; its output is kept."""
        self.doing, log = name, CACHE / "log" / f"{name}.log"
        with open(log, "w", encoding="utf-8") as out:
            try:
                status = in_layers(facts["stack"], *command, binds=[f"{TOP}:/checkout:ro", *binds], stdout=out, stderr=subprocess.STDOUT,
                                   timeout=LIMIT).returncode
            except subprocess.TimeoutExpired:
                status = f"no end after {LIMIT} s"
        text = log.read_text(errors="replace")
        for note in re.findall(r"^note (.*)", text, re.MULTILINE):
            say(self.name, f"{name}: {note}")
        cargo = [int(number) for number in re.findall(r"^test result: ok. (\d+) passed", text, re.MULTILINE)]
        checks = sum(cargo) + len(re.findall(r"^ok ", text, re.MULTILINE))
        failures = [f"{name} ended with {status}"] if status else []
        if not failures and not checks and (cargo or self.kind == "package"):
            failures = [f"{name} has tested nothing"]
        self.report(Result(name, checks, failures), lambda: [*text.splitlines()[-60:], f"--- whole output: {log} ---"])

    def run_check(self):
        facts = self.made("tools", *self.layers) if self.machine == "-" else self.made("guest", self.machine, *self.layers)
        known = os.environ | facts
        words = [f"{name}={known[name]}" for name in ("kver", "kseries", "HOST_SEED") if name in known]
        words += [f"TESTS={self.tests}"] if self.tests else []
        for name in self.runs:
            with self.kept_copy(name, facts["stack"]) as binds:
                self.run_logged(name, facts, "env", *words, "bash", "/checkout/tests/lab/check.sh", name, binds=binds)

    @contextlib.contextmanager
    def kept_copy(self, name, stack):
        """For what cargo compiles the copy of the checkout stays, so that the next time only what has changed is compiled.
        Its name has the stack's hash, for cargo does not look at what the system has installed."""
        if not {"host", "client", "bench"} & set(self.layers):
            yield []
            return
        kept = CACHE / "cargo" / named(name, stack)
        (kept / "copy").mkdir(parents=True, exist_ok=True)
        with locked(kept / "lock"):
            os.utime(kept)
            yield [f"{kept}/copy:/tmp/copy"]

    def run_package(self):
        facts = self.made("packages", self.machine)
        for name in self.runs:
            self.run_logged(name, facts, f"/checkout/tests/packages/{name}.sh", facts["kver"])

    def run_compile(self):
        """The layer is the result: it says when it was made."""
        for machine in self.runs:
            try:
                compiled = Path(self.made("compile", machine)["compiled"])
                lines = compiled.read_text(encoding="utf-8").splitlines()
                say(self.name, f"{machine}: made {time.strftime('%F %R', time.localtime(compiled.stat().st_mtime))}: {compiled}")
                self.report(Result(machine, len(lines), [] if lines else ["nothing was compiled"]))
            except Wrong as wrong:
                self.report(Result(machine, 0, [str(wrong)]))


# ---- the table ----------------------------------------------------------------


def headers(scenario):
    """What the comment at the beginning of a scenario says of it, as NAME: VALUE."""
    text = (TOP / f"tests/guest/scenarios/{scenario}.sh").read_text(encoding="utf-8")
    comment = re.match("(#.*\n)*", text).group()
    return dict(re.findall(r"^# ([A-Z]\w*): (.*)", comment, re.MULTILINE))


def check_headers(scenario):
    """A misspelt one would silently be none."""
    known = {"Shows": ".+", "Clock": "instructions, .*|instructions"}
    found = headers(scenario)
    for name, value in found.items():
        if name not in known or not re.fullmatch(known[name], value):
            raise Wrong(f"tests/guest/scenarios/{scenario}.sh: '# {name}: {value}' means nothing; there are: {', '.join(known)}")
    if "Shows" not in found:
        raise Wrong(f"tests/guest/scenarios/{scenario}.sh: a line '# Shows: ...' is missing")


def read_table():
    """The jobs, each of whose words means something; and each scenario is in one of them."""
    jobs = []
    known = {
        "where": set().union(*COMMANDS.values()),
        "machine": {*machines(), "-"},
        "layers": {name.removeprefix("extra_") for name in vars(Layers) if name.startswith("extra_")} | {"base", "host", "client", "debian11"},
        "check": set(re.findall(r"^check_(\w+)\(\)", (LAB / "check.sh").read_text(encoding="utf-8"), re.MULTILINE)),
        "compile": set(machines()),
    }
    for kind, place in PLACES.items():
        known[kind] = {path.stem for path in (TOP / "tests" / place).glob("*.sh")}
    # What the tests of the packages share.
    known["package"].discard("lib")
    used = {kind: set() for kind in PLACES}
    for line in [line for line in (TOP / "tests/jobs.md").read_text(encoding="utf-8").splitlines() if line.startswith("|")][2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 7 or not cells[0]:
            raise Wrong(f"tests/jobs.md: seven columns are wanted: {line}")
        job = Job(*cells[:4], cells[4].split(), cells[5].split(), cells[6])
        if one := machines().get(job.machine):
            job.kernel = f"{one.kwant} {one.kpackages} {one.krelease} {one.kflavour}"
        if job.kind not in known or job.name in {other.name for other in jobs}:
            raise Wrong(f"tests/jobs.md: {job.name}: '{job.kind}' is no kind, or the name is there twice")
        for what, words in (("where", [job.where]), ("machine", [job.machine]), ("layers", job.layers), (job.kind, job.runs or ["nothing"])):
            for word in words:
                if word not in known[what]:
                    raise Wrong(f"tests/jobs.md: {job.name}: there is no '{word}' ({what})")
        used.setdefault(job.kind, set()).update(job.runs)
        jobs.append(job)
    for scenario in known["guest"]:
        check_headers(scenario)
    used["guest"] |= used["pair"]
    used["pair"] = used["guest"]
    for kind in PLACES:
        if idle := known[kind] - used[kind]:
            raise Wrong(f"tests/jobs.md: in no job: {' '.join(sorted(idle))} ({kind})")
    return jobs


def chosen(jobs, kinds, words):
    """Those of these kinds that run one of WORDS (NAME or NAME@MACHINE, or NAME::TEST of a check that cargo
    runs), for it alone, each word on the first machine that has it; or all of them."""
    those = [job for job in jobs if job.kind in kinds and job.where not in ("soak", "bench")]
    if not words:
        return those
    found = []
    for word in words:
        word, _, tests = word.partition("::")
        name, _, machine = word.partition("@")
        those_with = [job for job in those if name in job.runs]
        if not those_with:
            raise Wrong(f"there is no '{name}' here, only: {' '.join(sorted({name for job in those for name in job.runs}))}")
        if tests and name not in TESTED:
            raise Wrong(f"'{name}' has no tests to choose from; these have: {' '.join(sorted(TESTED))}")
        if machine and machine not in machines():
            raise Wrong(f"there is no machine '{machine}', only: {' '.join(machines())}")
        job = next((job for job in those_with if job.machine == machine), those_with[0])
        label = f"{name}@{machine or job.machine}" if job.machine != "-" else name
        found.append(replace(job, name=label, machine=machine or job.machine, runs=[name], tests=tests))
    return found


# ---- some at a time -----------------------------------------------------------


def slots():
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    return int(os.environ.get("LAB_JOBS") or max(1, min(len(os.sched_getaffinity(0)), memory // 3)))


class Run:
    """Jobs, in the table's order; but none waits for layers that another makes, while a third could run."""

    def __init__(self, title, jobs, kept=None):
        self.title, self.waiting, self.kept, self.number = title, list(jobs), kept, len(jobs)
        self.running, self.passed, self.failed, self.checks = [], [], [], 0
        self.changed = threading.Condition()

    def all(self):
        began = spoken = time.monotonic()
        for job in [job for job in self.waiting if self.kept and (self.kept / job.name).exists()]:
            self.waiting.remove(job)
            self.passed.append(job)
            say(job.name, f"passed before, on this commit: {(self.kept / job.name).read_text(encoding='utf-8')}")
        with self.changed:
            while self.waiting or self.running:
                while len(self.running) < slots() and (job := self.next()):
                    self.waiting.remove(job)
                    self.running.append(job)
                    threading.Thread(target=self.one, args=[job], daemon=True).start()
                self.changed.wait(1)
                if time.monotonic() - spoken >= 30:
                    self.progress()
                    spoken = time.monotonic()
        for job in self.failed:
            say(self.title, f"failed: {job.name}")
        say(self.title, f"took {seconds_since(began)} s: {self.checks} checks")
        print(f"{len(self.passed)} passed, {len(self.failed)} failed", flush=True)
        return 1 if self.failed else 0

    def next(self):
        made_now = {job.kernel for job in self.running if not job.ready} - {"-"}
        return next((job for job in self.waiting if job.kernel not in made_now), None)

    def one(self, job):
        passed = False
        try:
            passed = job.run()
        except Wrong as wrong:
            say(job.name, f"FAILED: {wrong}")
        finally:
            with self.changed:
                job.ready = True
                self.running.remove(job)
                (self.passed if passed else self.failed).append(job)
                self.checks += job.checks
                if passed and self.kept:
                    (self.kept / job.name).write_text(f"{job.checks} checks, {time.strftime('%F %R')}", encoding="utf-8")
                self.changed.notify()

    def progress(self):
        now = ", ".join(f"{job.name} ({seconds_since(job.began)} s: {job.doing[:60]})" for job in self.running)
        say(self.title, f"{len(self.passed) + len(self.failed)} of {self.number} jobs done; running: {now}")
