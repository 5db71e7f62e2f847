# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the machines that the lab knows, and the kernels and drivers of Debian's archive for
them."""

import functools
import os
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from layers import making
from layers.cache import CACHE, LAB, Wrong, logged, say, scratch

# The release whose programs most guests run. The table `kernels` names the releases of other
# guests.
RELEASE = "trixie"


class Machine(NamedTuple):
    """A line of the table `kernels`, whose head explains the columns."""

    name: str
    kernel: str
    suite: str
    packages: str
    compiler: str
    rust: str
    driver: str
    release: str
    kind: str
    flavour: str


class Kernel(NamedTuple):
    """A kernel of the archive: release, version of the packages, and series."""

    release: str
    version: str
    series: str

    def age(self) -> list[list[int]]:
        """Returns a value that is larger for newer kernels."""
        words = (self.release, self.version)
        return [[int(number) for number in re.findall(r"\d+", word)] for word in words]


# ---- the tables -----------------------------------------------------------------------


def table(path: str) -> list[list[str]]:
    lines = (LAB / path).read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line[:1] not in ("", "#")]


@functools.cache
def machines() -> dict[str, Machine]:
    return {words[0]: Machine(*words) for words in table("kernels")}


def suites_of(release: str) -> list[str]:
    """Returns the suites of a root file system. The lab's own root also has the suites of all
    kernels."""
    if release != RELEASE:
        return [release]
    return [release, *sorted({machine.suite for machine in machines().values()} - {release})]


def packages_of(root: str) -> list[str]:
    """Returns the packages of a root in the table `packages`."""
    rows = [words for words in table("packages") if root in words[0].split(",")]
    return [package for words in rows for package in words[1:]]


# ---- the archive ----------------------------------------------------------------------

LIST = r"""
    apt-get update
    wanted="^linux-(image|headers|source)-[0-9]|^nvidia-kernel-dkms\$"
    apt-cache madison $(apt-cache pkgnames | grep -E "$wanted") |
        tr -d " " | cut -d"|" -f1,2 | LC_ALL=C sort -uV >/out/list
"""


def archive(base: str) -> list[str]:
    """Returns the kernels and drivers of the archive as "name|version" lines, the oldest first.
    The list stays the same until `tests/run update`, so that a new package does not break a lab
    that works."""
    path = CACHE / f"archive-nvidia+{'+'.join(sorted(suites_of(RELEASE)))}"
    if not path.exists():
        say("archive", f"listing the kernels and drivers that {making.mirror()} offers")
        with scratch("archive") as where:
            list_archive(base, where)
            shutil.move(where / "list", path)
    return path.read_text(encoding="utf-8").splitlines()


def list_archive(base: str, where: Path) -> None:
    making.write_sources(where, *suites_of(RELEASE))
    binds = [f"{where}/sources.list:/etc/apt/sources.list:ro", f"{where}:/out"]
    run = functools.partial(making.in_layers, base, "bash", "-euc", LIST, binds=binds)
    logged("archive", "listing the archive", run)


def kernels_of(lines: list[str]) -> list[Kernel]:
    """Returns the kernels whose image, headers and source have one version, the oldest first."""
    there, found = set(lines), []
    for line in lines:
        image = re.fullmatch(r"linux-image-(([0-9]+\.[0-9]+)[^|]*-amd64)\|(.*)", line)
        if not image or image[1].endswith(("-cloud-amd64", "-rt-amd64")):
            continue
        release, series, version = image.groups()
        if {f"linux-headers-{release}|{version}", f"linux-source-{series}|{version}"} <= there:
            found.append(Kernel(release, version, series))
    return sorted(found, key=Kernel.age)


def wanted_kernel(machine: Machine) -> str:
    """Returns the machine's kernel. LAB_KERNEL, a release or a series, replaces "7"."""
    return os.environ.get("LAB_KERNEL", "7") if machine.kernel == "7" else machine.kernel


def find_kernel(base: str, want: str) -> tuple[Kernel, Kernel | None]:
    """Returns the newest kernel of WANT, a release or a series, and the kernel before it in the
    archive."""
    kernels = kernels_of(archive(base))
    series = (f"{want}.", f"{want}+")
    fitting = [one for one in kernels if one.release == want or one.release.startswith(series)]
    if not fitting:
        raise Wrong(
            f"the archive has no kernel '{want}' with image, headers and source of one version. "
            f"It has: {' '.join(one.release for one in kernels)}. Choose one with LAB_KERNEL=, or "
            "look again with tests/run update."
        )
    kernel = fitting[-1]
    earlier = kernels[: kernels.index(kernel)]
    return kernel, earlier[-1] if earlier else None


def driver_version(base: str, branch: str) -> str:
    """Returns the newest version of NVIDIA's own driver in a branch."""
    package = "nvidia-kernel-dkms"
    lines = [line for line in archive(base) if line.startswith(f"{package}|{branch}.")]
    if not lines:
        raise Wrong(
            f"the archive has no {package} {branch}: choose another branch in tests/lab/kernels, "
            "or look again with tests/run update."
        )
    return lines[-1].split("|")[1]
