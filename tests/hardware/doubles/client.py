# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The client (client/) on a machine made of files: answers as the contract says. The file /wrong
has lines `COMMAND ANSWER`, with which a test plants a mistake; the answer `hang` never comes. A
command may be followed by its first words, as in `compare+0+7`. The file /leak has the number of
registrations that stay after `calm`. With the file /keep, the GPU does not get back the memory of a
dma-buf that is closed, nor that of a process that ends."""

import os
import sys
import time

ROOT = os.environ["NVPM_SYSROOT"]
MODULE = ROOT + "/sys/module/nv_peer_mem/"
USE = ROOT + "/use"
KEEP = ROOT + "/keep"
ALL = 1 << 33
REFUSED = {"pool", "managed", "vmm-plain"}


def text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return ""


def count(name: str, value: int) -> None:
    if os.path.isdir(MODULE + "statistics"):
        with open(MODULE + "statistics/" + name, "w") as file:
            file.write(str(value))


def lives(pid: str) -> bool:
    return os.path.exists("/proc/" + pid)


class Client:
    def __init__(self) -> None:
        self.buffers = {}  # type: ignore[var-annotated]
        self.regions = {}  # type: ignore[var-annotated]
        self.place = 1 << 32
        self.word = 0
        self.freed = False
        # The size of the dma-buf of each buffer, also of those that are freed.
        self.exports = {}  # type: ignore[var-annotated]

    def say_use(self) -> None:
        """Writes how much of the GPU this process uses. A dma-buf keeps what is freed."""
        sizes = {name: buffer[2] for name, buffer in self.buffers.items()}
        sizes.update(self.exports)
        os.makedirs(USE, exist_ok=True)
        with open(f"{USE}/{os.getpid()}", "w") as file:
            file.write(str(sum(sizes.values())))

    def answer(self, word: str, words: list) -> str:  # type: ignore[type-arg]
        revocable = text(MODULE + "parameters/persistent_api_support") == "0"
        if word == "alloc":
            self.buffers[words[0]] = (words[1], self.place, int(words[2]))
            self.place += 2 << 20
            self.freed = False
        elif word == "free":
            self.freed = True
            if revocable and words[0] in self.regions.values():
                count("revocations", int(text(MODULE + "statistics/revocations") or 0) + 1)
            del self.buffers[words[0]]
        elif word == "where":
            return "ok {} {}".format(*self.buffers[words[0]][1:])
        elif word == "reg":
            self.regions[words[0]] = words[1]
            os.makedirs(ROOT + "/busy", exist_ok=True)
            with open(f"{ROOT}/busy/{os.getpid()}", "w"):
                pass
            return "EFAULT" if self.buffers[words[1]][0] in REFUSED else "ok"
        elif word == "regraw":
            inside = [
                start <= int(words[1]) and int(words[1]) + int(words[2]) <= start + (2 << 20)
                for _, start, _ in self.buffers.values()
            ]
            return "ok" if any(inside) else "EFAULT"
        elif word == "dereg":
            self.regions.pop(words[0], None)
        elif word == "child":
            return "EFAULT"
        elif word == "storm":
            count("reachable_regions", int(words[2]))
        elif word == "calm":
            count("reachable_regions", int(text(ROOT + "/leak") or 0))
        elif word == "room":
            self.say_use()
            keeps = os.path.exists(KEEP)
            used = [int(text(f"{USE}/{pid}")) for pid in os.listdir(USE) if keeps or lives(pid)]
            return f"ok {ALL - sum(used)} {ALL}"
        elif word == "export":
            kind = self.buffers[words[0]][0]
            if kind in ("managed", "host") or int(words[1]) % 4096:
                return "CUDA_ERROR_INVALID_VALUE"
            self.exports[words[0]] = int(words[1])
            return f"ok {words[1]}"
        elif word == "unexport":
            if not os.path.exists(KEEP):
                self.exports.pop(words[0])
        elif word == "time-export":
            return "ok 40000 20000"
        elif word == "key":
            return "ok 4096 7"
        elif word == "link":
            return "ok 1 2 5 " + "00" * 16
        elif word == "word":
            return "ok {}".format(self.word - 7 if words[0] == "0" else self.word)
        elif word == "do" and words[1] == "atomic":
            self.word += 7
        elif word in ("do", "halt") and self.freed and revocable:
            return "LOC_PROT_ERR" + (" 5" if word == "halt" else "")
        elif word == "halt":
            return "ok 5"
        elif word == "time":
            time.sleep(0 if int(words[2]) < 1000 else 100)
            return "ok 30000 15000"
        elif word == "gpus":
            return "ok;0000:01:00.0 H200"
        elif word in ("rate", "latency"):
            return "ok 1000000"
        return "ok"

    def serve(self) -> None:
        for line in sys.stdin:
            word, *words = line.split()
            said = self.answer(word, words)
            for planted in text(ROOT + "/wrong").splitlines():
                if ("+".join(line.split()) + "+").startswith(planted.split()[0] + "+"):
                    said = planted.split(" ", 1)[1]
            if said == "hang":
                time.sleep(1000)
            self.say_use()
            print(said, flush=True)


Client().serve()
