# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The areas of a sweep: which files get mistakes, what the area's tests need, and which commands
run them. The same tests run in `tests/run test`."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from mistakes import RUST, SHELL, C

TOP = Path(__file__).resolve().parents[2]

CARGO = "cargo test --quiet --locked --offline"
PYTEST = "python3 -B -m pytest -q -x -p no:cacheprovider"
# These options switch off optimization, which would take most of the time, and look only at
# interleavings with few preemptions.
HOST = (
    "cd tests/host && export LOOM_MAX_PREEMPTIONS=2 && cargo "
    "--config profile.test.package.host.opt-level=0 --config profile.test.package.host.debug=false "
    "--config profile.test.package.kernel_crate.opt-level=0 test --quiet"
)
# valgrind also notices the use of memory that was freed, or never allocated.
WATCHED = (
    "export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$PWD/tests/host/kernel_crate/watched' '"
    "memcheck;"
)

# What a build makes is no part of a copy.
MADE = ("__pycache__", "target", "prebuilt")


def copied(names: list[str], to: Path) -> None:
    """Copies files and directories of the checkout."""
    for name in names:
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_dir():
            left_out = shutil.ignore_patterns(*MADE)
            shutil.copytree(TOP / name, to / name, symlinks=True, ignore=left_out)
        else:
            shutil.copy(TOP / name, to / name)


@dataclass
class Area:
    """`globs` are the files that get mistakes, `needs` what is copied. A mistake does not compile
    if one of `builds` fails. It is noticed if one of `tests`, or of the `slow` tests, fails."""

    language: str
    globs: list[str]
    needs: list[str]
    builds: list[str]
    tests: list[str]
    slow: list[str] = field(default_factory=list)
    # Parts of the names of files that get none, because they are no part of the product.
    without: list[str] = field(default_factory=list)

    def files(self) -> list[str]:
        paths = [path for pattern in self.globs for path in sorted(TOP.glob(pattern))]
        names = [str(path.relative_to(TOP)) for path in paths if path.is_file()]
        return [name for name in names if not any(part in name for part in self.without)]


# What the tests of several areas read: the programs, the scripts and the files that packages have.
PROGRAMS = ["nvpm", "init.d", "build", "src", "Kbuild", "dkms.conf", "container", "docs"]
RELEASE = [*PROGRAMS, *["preload", "build_release.sh", "debian", "rpm", "Makefile"]]
SCRIPTS = "init.d/* build/configure build/make build/identity build/find/* build/dkms/*"
SCRIPTS += " build/rust-assembly debian/*inst debian/*rm debian/post*.d/* debian/rust-metadata"
SCRIPTS += " preload/build preload/link nvpm/compile"

SCRIPT_TESTS = ["service", "dkms", "packages", "find", "make", "identity", "program"]
TABLES = ["judged", "commands", "varied", "status", "programs_by_pair", "used", "selftest"]

AREAS = {
    "nvpm": Area(
        RUST,
        ["nvpm/src/**/*.rs", "nvpm/foreign/src/*.rs"],
        [
            *RELEASE,
            *[
                "tests/nvpm",
                "tests/doubles/cuda",
                "tests/doubles/verbs",
                "tests/doubles/tool",
                "tests/explain",
                "tests/compare",
            ],
        ],
        [
            f"cd nvpm && {CARGO} --package nvpm --package nvpm-foreign --no-run",
            "cd nvpm && cargo build --quiet --locked --offline",
        ],
        [
            # This test measures time, and takes most of the time of all.
            f"cd nvpm && {CARGO} --bin nvpm-bin -- --skip the_time_for_a_line",
            f"cd nvpm && {CARGO} --test public_logs",
            *(f"cd nvpm && NVPM_FIRST=1 {CARGO} --test tables -- {table}" for table in TABLES),
        ],
        [
            f"cd nvpm && {CARGO} --package nvpm-foreign",
            f"cd nvpm && {CARGO} --test program",
            f"NVPM_BIN=$CARGO_TARGET_DIR/debug/nvpm-bin {PYTEST} tests/explain tests/compare",
        ],
        without=["src/redact/tests.rs", "src/made.rs", "foreign/src/abi.rs"],
    ),
    "keeper": Area(
        RUST,
        ["nvpm/keeper/src/*.rs"],
        [*PROGRAMS, "tests/container", "tests/explain"],
        [
            f"cd nvpm && {CARGO} --package nvpm-keeper --no-run",
            "cd nvpm && cargo build --quiet --locked --offline --workspace",
        ],
        [
            f"cd nvpm && {CARGO} --package nvpm-keeper",
            "export NVPM_BIN=$CARGO_TARGET_DIR/debug/nvpm-bin; "
            "export NVPM_KEEPER=$CARGO_TARGET_DIR/debug/nv-peer-mem; "
            f"{PYTEST} tests/container/test_keeper.py",
        ],
        without=["made.rs", "tests.rs"],
    ),
    "preload": Area(
        RUST,
        ["preload/src/*.rs"],
        [
            "preload",
            "tests/preload",
            "tests/real",
            "tests/doubles/cuda",
            "tests/doubles/preload",
            "nvpm/data",
            "docs",
        ],
        ["cd preload && cargo build --quiet --release --offline"],
        [
            "export CC=gcc-14 PRELOAD_LIBRARY=$CARGO_TARGET_DIR/release/libnvpm_preload.so; "
            f"{PYTEST} tests/preload"
        ],
    ),
    "module": Area(
        RUST,
        ["src/*.rs", "src/kernel/*.rs"],
        ["src", "tests/host", "tests/doubles/models", "tests/doubles/kernel"],
        [f"{HOST} --no-run"],
        [f"{HOST} --test {name}" for name in ("models", "arithmetic", "kernel_crate")],
        [f"{WATCHED} {HOST} --test kernel_crate"],
        without=["src/main.rs", "src/kunit.rs"],
    ),
    "c": Area(
        C,
        ["src/c/*.c", "src/callback/*.c"],
        ["src", "build/has", "tests/host/c", "tests/doubles/kernel"],
        ["tests/host/c/run no_test || [ $? -ne 2 ]"],
        ["tests/host/c/run"],
    ),
    "scripts": Area(
        SHELL,
        SCRIPTS.split(),
        [
            *RELEASE,
            *[
                "nv_peer_mem.conf",
                "README.md",
                "tests/scripts",
                "tests/nvpm",
                "tests/doubles/commands",
            ],
        ],
        [],
        [f"{PYTEST} tests/scripts/test_{part}.py" for part in SCRIPT_TESTS],
        [f"{PYTEST} tests/scripts/test_parts.py tests/scripts/test_steps.py"],
        without=[".rules", ".service", ".preset", "README"],
    ),
}
