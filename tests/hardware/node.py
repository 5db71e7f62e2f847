# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A node that is made of files, on which the tests for hardware are run by doubles of the programs
of kmod, of make, cc, dmesg and nvidia-smi, and of the client."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

HERE = Path(__file__).resolve().parent
KMOD = ("insmod", "rmmod", "modprobe", "modinfo")
TOOLS = ("make", "cc", "dmesg", "nvidia-smi", "systemctl", "nvpm")
STATE = "var/lib/nv_peer_mem-hardware"
LIMIT = 120


class Node:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir(parents=True)
        for names, double in ((KMOD, "kmod"), (TOOLS, "tools")):
            for name in names:
                (root / "bin" / name).symlink_to(HERE / "doubles" / double)
        (root / "bin/ssh").symlink_to(HERE / "doubles/ssh")
        client = (HERE / "doubles/client.py").read_text(encoding="utf-8")
        self.put("client", f"#!{sys.executable} -BS\n{client}")
        self.put("proc/sys/kernel/osrelease", "6.0-test")
        self.put("proc/sys/kernel/hostname", "secretive.example.org")
        self.put("proc/sys/kernel/random/boot_id", "first")
        self.put("proc/self/status", "CapEff:\t000001ffffffffff")
        self.put("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t H200\nIRQ: 5")
        self.put("etc/passwd", "root:x:0:0::/root:\nmallory:x:1000:1000::/home/mallory:")
        self.put("sys/module/nvidia/version", "590.1")
        self.put("sys/module/ib_core/refcnt", "3")
        self.put("sys/module/nvidia_peermem/parameters/peerdirect_support", "0")
        self.put("sys/kernel/mm/memory_peers/nv_mem/num_alloc_mrs", "7")
        self.put("sys/kernel/mm/memory_peers/nv_mem/num_dealloc_mrs", "7")
        self.put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE")
        self.put("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN")
        self.put("lib/modules/6.0-test/build/Makefile")
        self.put("usr/include/infiniband/verbs.h")
        self.put("dev/kmsg")
        self.put("calls")
        self.before = self.modules()
        self.output = ""

    def put(self, name: str, text: str = "") -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n" if text else "", encoding="utf-8")

    def modules(self) -> Dict[str, Dict[str, str]]:
        """Returns the loaded modules with their parameters, without the one that stays."""
        found = {}
        for directory in sorted((self.root / "sys/module").glob("*")):
            files = sorted(directory.glob("parameters/*"))
            found[directory.name] = {file.name: file.read_text().strip() for file in files}
        found.pop("nv_peer_mem_callback", None)
        return found

    def start(self, *words: str, **environment: str) -> "subprocess.Popen[bytes]":
        variables = dict(os.environ, NVPM_SYSROOT=str(self.root))
        variables["PATH"] = "{}/bin:{}".format(self.root, os.environ["PATH"])
        variables.update(environment)
        return subprocess.Popen(
            [sys.executable, "-B", "-E", "-s", str(HERE / "main.py"), *words],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def end(self, process: "subprocess.Popen[bytes]") -> int:
        output, _ = process.communicate(timeout=LIMIT)
        self.output = output.decode(errors="replace")
        return process.returncode

    def run(self, *words: str, **environment: str) -> int:
        return self.end(self.start(*words, **environment))

    def until(self, what: Callable[[], Any]) -> None:
        deadline = time.monotonic() + LIMIT
        while not what():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    def started_until(self, step: str, *words: str) -> "subprocess.Popen[bytes]":
        """Starts a run, and returns when the step waits at its end."""
        self.put("pause", step)
        process = self.start(*words)
        self.until(lambda: (self.root / "paused").exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()[0].decode()
        return process

    def directory(self) -> Path:
        return sorted((self.root / STATE).iterdir())[-1]

    def journal(self) -> List[Dict[str, Any]]:
        # The file is there a moment after the directory.
        self.until((self.directory() / "journal").exists)
        lines = (self.directory() / "journal").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    def supervisor(self) -> int:
        return int(next(line["pid"] for line in self.journal() if line["is"] == "supervisor"))

    def page(self) -> str:
        return (self.directory() / "page.txt").read_text(encoding="utf-8")

    def verdicts(self) -> Dict[str, str]:
        return {line["step"]: line["verdict"] for line in self.journal() if line["is"] == "done"}

    def is_as_before(self) -> bool:
        return self.modules() == self.before
