# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A node that is made of files, as a pod of the image sees it."""

from pathlib import Path

from keeper.node import DRIVER, DRIVER_PID, HOST, OFED, OFED_READY, Node

KERNEL = "6.8.0-60-generic"


class Files(Node):
    """A node with a kernel and nothing else, to which a test adds files."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.put("/proc/sys/kernel/osrelease", f"{KERNEL}\n")

    def put(self, name: str, text: str = "") -> Path:
        file = self.path(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def drop(self, name: str) -> None:
        path = self.path(name)
        for below in sorted(path.rglob("*"), reverse=True):
            below.rmdir() if below.is_dir() else below.unlink()
        path.rmdir() if path.is_dir() else path.unlink()

    def load(self, name: str, build: str = "1", references: int = 0, state: str = "live") -> None:
        """Loads a module, of the version and the build BUILD."""
        for file, text in {
            "initstate": state,
            "refcnt": str(references),
            "version": build,
            "srcversion": f"S{build}",
            "notes/.note.gnu.build-id": f"id-{name}-{build}",
        }.items():
            self.put(f"/sys/module/{name}/{file}", f"{text}\n")

    def load_own(self, name: str, version: str = "2.0.0", references: int = 0) -> None:
        """Loads the module of this project, which registers with the core."""
        self.load(name, version, references)
        self.put(f"/sys/module/{name}/statistics/reachable_regions", "0\n")
        self.put(f"/sys/module/ib_core/holders/{name}")

    def load_core(self, build: str = "1", peer_memory: str = "ib_core") -> None:
        for name in ("ib_core", "ib_uverbs"):
            self.load(name, build)
        function = "0000000000000000 T ib_register_peer_memory_client\t[{}]\n"
        other = "0000000000000000 t x_ib_register_peer_memory_client\t[other]\n"
        self.put("/proc/kallsyms", other + (function.format(peer_memory) if peer_memory else ""))

    def contain_driver(self) -> None:
        self.put(DRIVER_PID, "4711\n")
        self.put(f"{DRIVER}/usr/bin/nvidia-smi")
        self.put("/run/nvidia/validations/.driver-ctr-ready")
        self.load("nvidia_uvm")

    def contain_ofed(self) -> None:
        self.put(f"{OFED}/.lock")
        self.put(OFED_READY)


__all__ = ["DRIVER", "HOST", "KERNEL", "OFED", "Files"]
