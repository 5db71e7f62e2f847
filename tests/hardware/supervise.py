# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the steps in a process that no terminal can end. Each step is a child with a time limit.
Before each step its name is on the disk. However the run ends, everything is undone, and the page
is written."""

import contextlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, List, Set, Tuple

import journal
import machine
import page
import traces
import undo
from context import Context
from journal import Journal
from steps import Step
from talk import Broken, NotHere

HELD, FAILED, NOT_TRIED = "held", "failed", "not tried"
HUNG, INTERRUPTED, CRASHED = "hung", "interrupted", "crashed"
# The seconds in which a killed step must be gone. A process that stays is in a driver's hands.
MERCY = 10
# The seconds between two lines that say that a step goes on.
PROGRESS = 30
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)


class Supervisor:
    def __init__(self, directory: Path, steps: List[Step], options: Any) -> None:
        self.directory, self.steps, self.options = directory, steps, options
        self.journal = Journal(directory)
        self.is_stopped = False
        self.held: Set[str] = set()

    def stop(self, number: int, frame: Any) -> None:
        self.is_stopped = True

    def run(self) -> int:
        """Runs all steps, undoes everything, and returns the exit code of the run."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in STOPS:
            signal.signal(number, self.stop)
        why = "a mistake of the test program"
        self.journal.write("supervisor", pid=os.getpid(), born=machine.born(os.getpid()))
        try:
            why = self.all_steps()
        except BaseException:
            self.journal.write("line", step="", word="bad", text=traceback.format_exc())
        finally:
            undo.ignore_signals()
            say("putting everything back")
            stays = undo.undo_all(self.journal)
            for text in stays:
                say("  !! " + text)
            self.journal.write("end", why=why, stays=stays)
            code = page.write(self.directory)
        return code

    def all_steps(self) -> str:
        before = traces.baseline()
        self.journal.write("baseline", **before)
        for at, step in enumerate(self.steps, 1):
            if self.is_stopped:
                return INTERRUPTED
            say(f"[{at}/{len(self.steps)}] {step.name} (about {step.takes} s)")
            begun = time.monotonic()
            missing = [need for need in step.needs if need not in self.held]
            if missing:
                verdict, text = NOT_TRIED, f"{missing[0]} did not hold"
                self.journal.write("step", name=step.name, limit=0)
                self.journal.write("line", step=step.name, word="not", text=text)
            else:
                verdict = self.one_step(step, before)
            seconds = round(time.monotonic() - begun, 1)
            self.journal.write("done", step=step.name, verdict=verdict, seconds=seconds)
            say(f"    {verdict} ({seconds} s)")
            if verdict == HELD:
                self.held.add(step.name)
            if verdict == HUNG:
                return HUNG
        return INTERRUPTED if self.is_stopped else "all steps were run"

    def one_step(self, step: Step, before: Any) -> str:
        """Runs a step in a process group of its own, and returns its verdict."""
        self.journal.write("step", name=step.name, limit=step.limit)
        child = os.fork()
        if not child:
            self.be_step(step, before)
        verdict = self.wait(child, step.limit)
        if verdict not in (HELD, CRASHED):
            return verdict
        lines = [
            record["word"]
            for record in self.journal.records()
            if record["is"] == "line" and record["step"] == step.name
        ]
        if verdict == CRASHED or "bad" in lines:
            return FAILED
        return HELD if "ok" in lines else NOT_TRIED

    def wait(self, child: int, limit: float) -> str:
        """Waits for the end of a step, and kills the step at its limit or if the run is stopped."""
        begun = time.monotonic()
        pause = min(PROGRESS, limit / 4)
        deadline, tell_at = begun + limit, begun + pause
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if time.monotonic() > tell_at:
                say(f"    still going on, after {round(time.monotonic() - begun)} s")
                tell_at = time.monotonic() + pause
            if ended:
                if status:
                    self.line("bad", f"the step's process ended with status {status}")
                return CRASHED if status else HELD
            is_late = time.monotonic() > deadline
            if is_late or self.is_stopped:
                return self.end(child, is_late)
            time.sleep(0.05)

    def end(self, child: int, is_late: bool) -> str:
        """Kills a step. The kernel kills the step's own children, which asked for that."""
        if is_late:
            self.line("bad", "the step hangs: " + "; ".join(stacks(child)))
        machine.kill_group(child)
        deadline = time.monotonic() + MERCY
        while time.monotonic() < deadline:
            ended, _ = os.waitpid(child, os.WNOHANG)
            if ended:
                return HUNG if is_late else INTERRUPTED
            time.sleep(0.05)
        self.line("bad", "the step cannot be killed: " + "; ".join(stacks(child)))
        return HUNG

    def line(self, word: str, text: str) -> None:
        name = journal.unfinished_step(self.journal.records())
        self.journal.write("line", step=name, word=word, text=text)

    def be_step(self, step: Step, before: Any) -> None:
        """Is the child: does the step, looks what is left of it, and ends."""
        code = 1
        try:
            os.setpgid(0, 0)
            machine.die_with_parent()
            for number in STOPS:
                signal.signal(number, signal.SIG_DFL)
            context = Context(self.directory, self.journal, self.options)
            context.step, context.pair, context.mode = step.name, step.pair, step.mode
            context.before = before
            is_marked = traces.mark(step.name)
            try:
                step.act(context)
            except NotHere as reason:
                context.no(str(reason))
            except Broken as reason:
                context.bad(str(reason))
            self.look_behind(context, step, is_marked)
            code = 0
        except BaseException:
            self.journal.write("line", step=step.name, word="bad", text=traceback.format_exc())
        finally:
            sys.stdout.flush()
            os._exit(code)

    def look_behind(self, context: Context, step: Step, is_marked: bool) -> None:
        """Checks that nothing is left of a step. Lines of this kind do not make a step held."""
        nothing: List[str] = []
        left = traces.settled(lambda: traces.leftovers(context.before), nothing)
        if left:
            context.bad("left behind: " + "; ".join(left))
        can_be_read, reports = traces.reports_since(step.name) if is_marked else (False, [])
        if reports:
            context.bad("the kernel's log: " + reports[0])
            for line in reports[1:20]:
                self.journal.write("log", step=step.name, text=line)
        elif not can_be_read:
            context.no("the kernel's log since this step cannot be read")


def stacks(group: int) -> List[str]:
    """Returns where in the kernel the processes of a step are, and their states."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            words = (directory / "stat").read_text(errors="replace").rsplit(")", 1)[-1].split()
            stack = (directory / "stack").read_text().split("\n")[:4]
        except OSError:
            continue
        # The second and third word are the parent and the process group.
        if str(group) in words[1:3]:
            found.append("{} {} {}".format(directory.name, words[0], " ".join(stack)).strip())
    return found


def say(text: str) -> None:
    print(text, flush=True)


def detach(directory: Path) -> Tuple[int, Path]:
    """Forks. The child has no terminal any more, and its output goes to a file. Returns the
    child's number to the parent, and 0 to the child."""
    said = directory / "said.txt"
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child, said
    os.setsid()
    # The sources are not needed any more, and the file system of the caller may be unmounted.
    os.chdir("/")
    empty = os.open(os.devnull, os.O_RDONLY)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    out = os.open(str(said), flags, 0o600)
    for old, new in ((empty, 0), (out, 1), (out, 2)):
        os.dup2(old, new)
    return 0, said


def follow(child: int, said: Path) -> int:
    """Shows what the supervisor says until it ends, and returns its exit code. Ctrl-C is handed on;
    the run then ends early. If this terminal is lost, the supervisor goes on."""

    def hand_on(number: int, frame: Any) -> None:
        tell("interrupted: the step is ended, and everything is put back; this takes seconds")
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGINT, hand_on)
    signal.signal(signal.SIGTERM, hand_on)
    place = 0
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        try:
            with open(str(said), "rb") as file:
                file.seek(place)
                new = file.read()
        except OSError:
            new = b""
        place += len(new)
        if new:
            tell(new.decode(errors="replace").rstrip("\n"))
        if ended:
            return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128
        time.sleep(0.1)


def tell(text: str) -> None:
    """Prints to the terminal, whose loss does not matter."""
    with contextlib.suppress(OSError):
        say(text)
