# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs a guest from QEMU's start to its end, and exchanges messages with it."""

import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from layers.cache import CACHE, Wrong, killed_with_us, new_dir, say
from layers.making import in_layers
from layers.stack import Layers
from run import qemu
from run.ktap import Ktap, Result
from run.nics import Nics
from run.qemu import USUAL, Network, Options

# Kernel messages that mean a crash.
CRASH = re.compile(rb"^\[ *[0-9.]+\] .*(BUG:|WARNING:|Oops|Call Trace|Kernel panic)", re.MULTILINE)

WENT_OFF = "the guest went off before its scenario had ended"


def seconds_since(began: float) -> int:
    return round(time.monotonic() - began)


class Guest:
    """A guest that runs the scenarios NAMES in LAYERS. Its files are in a directory of its own."""

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        who: str,
        layers: Layers,
        names: Sequence[str],
        words: str = "",
        options: Options = USUAL,
    ) -> None:
        self.who, self.layers, self.words, self.options = who, layers, words, options
        self.kernel = layers.kernel
        self.timeout = options.timeout * (2 if layers.machine.kind == "debug" else 1)
        self.run, self.lock = new_dir("run", re.sub(r"\W", "-", who))
        self.console = self.run / "console"
        self.ktap = Ktap(names)
        # The other lines that the guest reports, by their first word.
        self.heard: dict[str, list[str]] = {}
        self.rebooting = self.killed = False
        # Descriptors for the guest's network, which QEMU inherits.
        self.cable: list[int] = []
        self.network = Network()
        self.answers: dict[str, Callable[..., str]] = {"pattern": self.pattern}
        self.nics: Nics | None = None
        # This function is called with each result at once.
        self.ended: Callable[[Result], None] = lambda result: None
        with open(self.run / "bar", "wb") as bar:
            bar.truncate(options.gpu << 20)
        self.start_nics()

    def start_nics(self) -> None:
        if self.options.nics:
            self.use_nics(Nics(self.who, self.layers, [self.run], self.options.nics))

    def use_nics(self, nics: Nics, first: int = 1) -> None:
        """Gives the guest its emulated cards. FIRST is the number of the guest's first card among
        all cards of the process."""
        self.nics = nics
        self.answers["nic"] = lambda card, *words: nics.ask(str(first - 1 + int(card)), *words)

    # ---- QEMU ----------------------------------------------------------------

    def qemu(self, words: str) -> list[str]:
        return qemu.command(self.layers, self.kernel, self.run, self.network, self.options, words)

    def shell(self) -> None:
        """Runs a guest with a shell at this terminal."""
        terminal = ["-chardev", "stdio,id=tty,signal=off", "-serial", "chardev:tty"]
        command = [*self.qemu("lab.scenario=shell"), "-chardev", "null,id=lab", *terminal]
        subprocess.run(command, check=False)
        self.forget()

    def start(self, words: str) -> socket.socket:
        """Starts QEMU. Returns the lab's end of the guest's serial port."""
        ours, theirs = socket.socketpair()
        ports = [
            *("-chardev", f"socket,id=lab,fd={theirs.fileno()}", "-serial", "chardev:console"),
            *("-chardev", f"file,id=console,path={self.console},append=on"),
        ]
        with open(self.run / "qemu.log", "ab") as log, theirs:
            self.process = subprocess.Popen(
                killed_with_us(*self.qemu(words), *ports),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno(), *self.cable],
            )
        for end in self.cable:
            os.close(end)
        self.cable = []
        return ours

    def boot(self, words: str) -> str | None:
        """Boots the guest once, and reads its messages until it ends. Returns the problem if the
        guest has ended too early, and otherwise None."""
        self.rebooting = False
        with self.start(words) as port:
            port.settimeout(self.timeout)
            try:
                return self.converse(port.makefile("r", encoding="utf-8", errors="replace"), port)
            except TimeoutError:
                return f"the guest said nothing for {self.timeout} s"
            except ConnectionError:
                # QEMU was killed before it had read the lab's last answer.
                return WENT_OFF
            finally:
                self.process.kill()
                self.process.wait()

    # ---- messages --------------------------------------------------------------

    def converse(self, lines: Iterable[str], port: socket.socket) -> str | None:
        for line in lines:
            comment = self.hear(line)
            word, _, rest = (comment or "").partition(": ")
            if word == "ask":
                port.sendall((self.answer(rest) + "\n").encode())
            elif word == "reboot":
                self.rebooting = True
            elif word == "say":
                say(self.who, rest)
            elif word:
                self.heard.setdefault(word, []).append(rest)
            if self.ktap.complete:
                return None
        return WENT_OFF

    def hear(self, line: str) -> str | None:
        failed, ended = len(self.ktap.failures), len(self.ktap.results)
        comment = self.ktap.hear(line.rstrip("\r\n"))
        # The report of a scenario shows its failures when it ends. So only the failures of a
        # scenario that has not ended are shown here.
        new = self.ktap.failures[failed:] if len(self.ktap.results) == ended else []
        for text in new:
            say(self.who, f"not ok: {text}")
        if os.environ.get("LAB_VERBOSE") and line.lstrip().startswith("ok "):
            say(self.who, line.strip())
        for result in self.ktap.results[ended:]:
            self.ended(result)
        return comment

    def answer(self, question: str) -> str:
        word, *words = question.split()
        if word not in self.answers:
            return f"no: the host does not know what '{word}' is"
        return self.answers[word](*words)

    def pattern(self, offset: str, length: str, seed: str) -> str:
        """Answers a guest's question: whether the file behind the GPU's BAR contains the pattern of
        SEED, from OFFSET on."""
        command = ["gpuverbs", "pattern", "--seed", seed, "--length", length]
        made = in_layers(
            self.layers.stack, *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        if made.returncode or len(made.stdout) != int(length):
            why = made.stderr.decode(errors="replace").strip() or "no message"
            text = f"this machine could not make the bytes to compare with ({why})"
            say(self.who, text)
            raise Wrong(f"{text}: the guest's transfer was not judged.")
        with open(self.run / "bar", "rb") as bar:
            bar.seek(int(offset))
            there = bar.read(int(length))
        return "yes" if there == made.stdout else "no"

    # ---- ways to run -------------------------------------------------------------

    def scenarios(self) -> list[Result]:
        """Runs the scenarios, one after another. Returns their results."""
        wrong = self.boot(f"lab.scenario={','.join(self.ktap.names)} {self.words}")
        if not self.killed:
            self.all_over(wrong)
        return self.ktap.results

    def all_over(self, why: str | None) -> None:
        for result in self.ktap.over(why or ""):
            self.ended(result)

    def system(self) -> list[Result]:
        """Runs a whole system, which has a disk, until its last boot has ended."""
        with open(self.run / "disk", "wb") as disk:
            disk.truncate(2 << 30)
        lazy = ["-E", "lazy_itable_init,lazy_journal_init"]
        subprocess.run(["mkfs.ext4", "-q", *lazy, str(self.run / "disk")], check=True)
        words = f"lab.scenario={self.ktap.names[0]} lab.disk=vda"
        boot = 1
        while wrong := self.boot(f"{words} lab.boot={boot} systemd.show_status=error {self.words}"):
            if not self.restarts():
                break
            boot += 1
            self.kernel = self.layers.newer or self.kernel
        self.all_over(wrong)
        return self.ktap.results

    def restarts(self) -> bool:
        """Returns whether the guest has ended only in order to boot again, which it had
        announced."""
        console = self.console.read_bytes()
        end = b"".join(console.splitlines()[-3:])
        crashed = CRASH.search(console)
        return self.rebooting and not crashed and b"reboot: Restarting system" in end

    def forget(self) -> None:
        if self.console.exists():
            shutil.copy(self.console, CACHE / "log" / f"{self.who}.console")
        if self.nics:
            self.nics.end()
        shutil.rmtree(self.run, ignore_errors=True)
        os.close(self.lock)


# ---- two guests -------------------------------------------------------------------


class Told:
    """The values that two guests have sent each other. The key is the name of a value."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.values: dict[str, str] = {}


class Host(Guest):
    """One of two guests with a cable between them, called left and right. Messages between the two
    guests go through the host (tests/guest/hosts.sh)."""

    other: "Host"

    def __init__(
        self,
        name: str,
        told: Told,
        who: str,
        layers: Layers,
        scenario: str,
        words: str,
        options: Options,
    ) -> None:
        super().__init__(f"{who}-{name}", layers, [scenario], f"{words} lab.host={name}", options)
        self.name, self.told, self.over = name, told, False
        if name == "right":
            self.network.mac = "52:54:00:12:34:57"
        self.answers |= {"tell": self.tell, "hear": self.hear_of, "kill": self.kill}

    def start_nics(self) -> None:
        """Does nothing, because both hosts have their cards in one process."""

    def connect(self, end: socket.socket) -> None:
        self.cable = [end.detach()]
        self.network.backend = f"socket,fd={self.cable[0]}"

    def tell(self, key: str, *value: str) -> str:
        with self.told.changed:
            self.told.values[key] = " ".join(value)
            self.told.changed.notify_all()
        return "told"

    def hear_of(self, key: str) -> str:
        """Answers with the value KEY of the other guest, after waiting for it. Answers `gone` if
        the other guest has ended."""
        values = self.told.values
        with self.told.changed:
            self.told.changed.wait_for(lambda: key in values or self.other.over, self.timeout)
            return f"said {values[key]}" if key in values else "gone"

    def kill(self, _: str) -> str:
        """Turns the other guest's power off. The other guest's end does not count as a failure."""
        self.other.killed = True
        self.other.process.kill()
        return "killed"

    def scenarios(self) -> list[Result]:
        try:
            super().scenarios()
            if self.killed:
                self.ktap.planned = self.ktap.checks
                self.ktap.end("ok", "1", self.ktap.names[0])
            return self.ktap.results
        finally:
            with self.told.changed:
                self.over = True
                self.told.changed.notify_all()


def pair(
    who: str, layers: Layers, scenario: str, words: str, options: Options = USUAL
) -> tuple[Host, Host]:
    """Runs SCENARIO on two guests at the same time. Returns both guests, with their results."""
    told = Told()
    left, right = (
        Host(name, told, who, layers, scenario, words, options) for name in ("left", "right")
    )
    left.other, right.other = right, left
    if options.nics:
        nics = Nics(who, layers, [left.run, right.run], options.nics)
        left.use_nics(nics)
        right.use_nics(nics, options.nics + 1)
    for guest, end in zip((left, right), socket.socketpair(), strict=True):
        guest.connect(end)
    threads = [threading.Thread(target=guest.scenarios, daemon=True) for guest in (left, right)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return left, right
