# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A system that is made of files, on which the scripts of the packages run. Doubles replace dkms
and the programs of kmod."""

import os
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
DOUBLES = Path(__file__).resolve().parents[1] / "doubles/commands"
ARCH = os.uname().machine
FILES = ("nv_peer_mem", "nv_peer_mem_callback", "nv_peer_mem_marker")
NAME = "nvidia-peer-memory"


class System:
    """The system below one directory."""

    def __init__(self, root: Path, *kernels: str) -> None:
        self.root = root
        (root / "bin").mkdir(parents=True)
        for program in ("dkms", "modinfo", "depmod"):
            (root / "bin" / program).symlink_to(DOUBLES / program)
        for kernel in kernels:
            self.kernel(kernel)
        self.put("calls")
        self.output = ""

    def put(self, name: str, text: str = "", mode: int = 0o644) -> Path:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
        return file

    def kernel(self, release: str, headers: bool = True) -> None:
        self.put(f"lib/modules/{release}/modules.dep")
        if headers:
            (self.root / f"lib/modules/{release}/build/include").mkdir(parents=True)

    def source(self, version: str, made_of: str = "first") -> Path:
        """Puts the source of a version where the packages have it. `made_of` stands for the
        contents of the source."""
        source = self.root / f"usr/src/{NAME}-{version}"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(TOP / "build/dkms", source / "build/dkms")
        shutil.copy(DOUBLES / "configure", source / "build/configure")
        conf = (TOP / "dkms.conf").read_text(encoding="utf-8")
        own = 'PACKAGE_VERSION="2.0.0"'
        assert own in conf
        (source / "dkms.conf").write_text(conf.replace(own, f'PACKAGE_VERSION="{version}"'))
        (source / "made-of").write_text(made_of)
        return source

    def run(self, *command: str | Path, **environment: str) -> int:
        """Runs a command, keeps its output, and returns its exit code."""
        done = subprocess.run(
            list(map(str, command)),
            env={
                "NVPM_SYSROOT": str(self.root),
                "PATH": f"{self.root}/bin:{os.environ['PATH']}",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            check=False,
            timeout=60,
        )
        self.output = done.stdout.decode(errors="replace").replace(str(self.root), "")
        return done.returncode

    def versions(self, version: str, *words: str) -> int:
        return self.run("dash", self.root / f"usr/src/{NAME}-{version}/build/dkms/versions", *words)

    def by_hand(self, version: str, *words: str) -> int:
        return self.run("dash", self.root / f"usr/src/{NAME}-{version}/build/dkms/kernel", *words)

    def hook(self, version: str, *words: str) -> int:
        return self.by_hand(version, "add", *words)

    def calls(self) -> list[str]:
        """Returns the calls of the doubles since the last time."""
        file = self.root / "calls"
        calls = file.read_text(encoding="utf-8").replace(f"{NAME}/", "").splitlines()
        file.write_text("")
        return calls

    def module(self, kernel: str) -> str:
        """Returns version and contents of the module's files of a kernel, which must agree."""
        found = {
            file.read_text(encoding="utf-8").strip()
            for name in FILES
            for file in (self.root / f"lib/modules/{kernel}").rglob(f"{name}.ko*")
        }
        number = len(list((self.root / f"lib/modules/{kernel}").rglob("*.ko*")))
        assert len(found) <= 1 and number in (0, len(FILES)), (found, number)
        return found.pop() if found else ""

    def active(self, kernel: str) -> str:
        """Returns the version that dkms has installed for a kernel."""
        link = self.root / f"var/lib/dkms/{NAME}/kernel-{kernel}-{ARCH}"
        if not link.is_symlink():
            return ""
        assert (link / "module").is_dir(), f"{link} leads nowhere"
        version, of, arch = os.readlink(link).split("/")
        assert (of, arch) == (kernel, ARCH)
        return version

    def known(self) -> set[str]:
        """Returns the versions that dkms knows."""
        return {link.parent.name for link in self.root.glob(f"var/lib/dkms/{NAME}/*/source")}
