# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Talks to the client (client/): a line for each command, and a line for each answer."""

import contextlib
import os
import select
import subprocess
import time
from types import TracebackType
from typing import List, NamedTuple, Optional, Sequence, Type

import machine
from journal import Journal

ANSWER_LIMIT = 120


class NotHere(Exception):
    """Something does not exist on this machine, so a step cannot be tried."""


class Broken(Exception):
    """The client died, gave no answer, or something failed on which a step depends."""


class Pair(NamedTuple):
    """A GPU and an RDMA device. An empty name stands for the first device, and the port 0 for no
    device at all."""

    gpu: int
    pci: str
    device: str
    port: int

    @property
    def name(self) -> str:
        return f"gpu{self.gpu}-{self.device}" if self.device else f"gpu{self.gpu}"


class Client:
    """A client process. A command INSTEAD starts it on another machine."""

    def __init__(
        self, program: str, pair: Pair, journal: Journal, instead: Sequence[str] = ()
    ) -> None:
        command = [program, "--gpu", pair.pci, "--device", pair.device, "--port", str(pair.port)]
        self.read = b""
        self.process = subprocess.Popen(
            list(instead) or command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=machine.die_with_parent,
        )
        pid = self.process.pid
        journal.undo("kill", str(pid), machine.born(pid))
        if pair.port:
            self.sure("verbs")

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def ask(self, *words: object, limit: float = ANSWER_LIMIT) -> str:
        """Returns the client's answer."""
        assert self.process.stdin and self.process.stdout
        line = " ".join(str(word) for word in words)
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise Broken("the client died before: " + line) from None
        deadline = time.monotonic() + limit
        while b"\n" not in self.read:
            ready, _, _ = select.select([self.process.stdout], [], [], deadline - time.monotonic())
            got = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not ready:
                raise Broken(f"no answer in {limit:g} s to: {line}")
            if not got:
                raise Broken("the client died at: " + line)
            self.read += got
        answer, self.read = self.read.split(b"\n", 1)
        return answer.decode(errors="replace")

    def sure(self, *words: object, limit: float = ANSWER_LIMIT) -> List[str]:
        """Returns the words of an answer that must be ok."""
        said = self.ask(*words, limit=limit)
        first, _, rest = said.partition(" ")
        if first == "not":
            raise NotHere(rest)
        if first != "ok" and not first.startswith("ok;"):
            raise Broken("{}: {}".format(" ".join(str(word) for word in words), said))
        return rest.split()

    def kill(self) -> None:
        """Kills the client while it may have registrations and transfers."""
        self.process.kill()
        self.process.wait(timeout=60)

    def close(self) -> None:
        """Ends the client, which gives everything back by ending."""
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        if self.process.stdout:
            self.process.stdout.close()


class Loop:
    """Two connected links, of one client or of two: the first makes transfers to the second."""

    def __init__(self, here: Client, there: Client, first: int = 0, second: int = 1) -> None:
        self.here, self.there, self.first, self.second = here, there, first, second
        ours = here.sure("link", first)
        theirs = there.sure("link", second)
        here.sure("connect", first, *theirs)
        there.sure("connect", second, *ours)

    def do(
        self, operation: str, local: int, skip: int, length: int, remote: int, *more: object
    ) -> str:
        """Makes a transfer between the region LOCAL here and the region REMOTE there, from its
        beginning. Returns its status."""
        if operation == "send":
            self.there.sure("recv", self.second, remote, 0, length)
            said = self.here.ask("do", self.first, "send", local, skip, length)
            return said if said != "ok" else self.there.ask("received", self.second)
        key = self.there.sure("key", remote)
        return self.here.ask("do", self.first, operation, local, skip, length, *key, *more)

    def begin(self, operation: str, local: int, length: int, remote: int) -> None:
        """Makes transfers until `end`."""
        key = self.there.sure("key", remote)
        self.here.sure("go", self.first, operation, local, 0, length, *key)

    def end(self) -> List[str]:
        return self.here.ask("halt", self.first).split()

    def close(self) -> None:
        self.here.sure("unlink", self.first)
        self.there.sure("unlink", self.second)
