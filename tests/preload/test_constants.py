# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The library has no C headers, so it writes their constants itself. These tests compare each with
the headers, for both processors."""

import re
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "preload/src"
NUMBER = r"-?(?:0x[\da-f]+|0o[0-7]+|\d+)"
NUMBERS = re.compile(rf"{NUMBER}(?: (?:<<|\|) {NUMBER})*")
CONSTANT = re.compile(r"\bconst (\w+): [^=;]+ = ([^;]+);")

HEADERS = """
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#define VALUE(name, value) printf("%s %lld\\n", name, (long long)(value));
int main(void)
{
"""
# For each file the constants whose names the headers have, too.
SAME = {
    "libc.rs": "EAGAIN ENOMEM EFAULT ENFILE EMFILE EPROTONOSUPPORT EOPNOTSUPP AT_FDCWD O_CLOEXEC "
    "PTHREAD_CANCEL_DISABLE S_IFMT S_IFSOCK SIG_BLOCK SIG_SETMASK",
    "elf.rs": "PT_LOAD PT_DYNAMIC DT_NULL DT_PLTRELSZ DT_HASH DT_STRTAB DT_SYMTAB DT_RELA "
    "DT_RELASZ DT_SONAME DT_JMPREL DT_GNU_HASH DT_VERSYM STT_FUNC SHN_UNDEF",
}
# The constants with names of their own.
OTHERS = {
    "libc.rs": {
        "FUTEX_WAIT": "FUTEX_WAIT_PRIVATE",
        "FUTEX_CMP_REQUEUE": "FUTEX_CMP_REQUEUE_PRIVATE",
        "FUTEX_WAKE_OP": "FUTEX_WAKE_OP_PRIVATE",
        "ADD_NOTHING": "FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)",
    },
    "audit.rs": {
        "BIND_TO": "LA_FLG_BINDTO",
        "BIND_FROM": "LA_FLG_BINDFROM",
        "NO_ENTER": "LA_SYMB_NOPLTENTER",
        "NO_EXIT": "LA_SYMB_NOPLTEXIT",
        "BY_DLSYM": "LA_SYMB_DLSYM",
        "BASE": "LM_ID_BASE",
    },
    "uverbs.rs": {
        "REQUEST": "RDMA_VERBS_IOCTL",
        "ACCESS_MW_BIND": "IBV_ACCESS_MW_BIND",
        "ACCESS_ZERO_BASED": "IBV_ACCESS_ZERO_BASED",
        "ACCESS_ON_DEMAND": "IBV_ACCESS_ON_DEMAND",
        "ACCESS_HUGETLB": "IBV_ACCESS_HUGETLB",
        "ACCESS_RELAXED_ORDERING": "IBV_ACCESS_RELAXED_ORDERING",
        "ACCESS_OPTIONAL": "IB_UVERBS_ACCESS_OPTIONAL_RANGE",
        "DEVICE": "UVERBS_OBJECT_DEVICE",
        "MR": "UVERBS_OBJECT_MR",
        "DEVX_UMEM": "MLX5_IB_OBJECT_DEVX_UMEM",
        "DEVICE_INVOKE_WRITE": "UVERBS_METHOD_INVOKE_WRITE",
        "MR_REG_DMABUF": "UVERBS_METHOD_REG_DMABUF_MR",
        "DEVX_UMEM_REG": "MLX5_IB_METHOD_DEVX_UMEM_REG",
        "DRIVER_MLX5": "RDMA_DRIVER_MLX5",
        "WRITE_REG_MR": "IB_USER_VERBS_CMD_REG_MR",
        "HANDLE": "UVERBS_ATTR_REG_DMABUF_MR_HANDLE",
        "PD": "UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE",
        "OFFSET": "UVERBS_ATTR_REG_DMABUF_MR_OFFSET",
        "LENGTH": "UVERBS_ATTR_REG_DMABUF_MR_LENGTH",
        "IOVA": "UVERBS_ATTR_REG_DMABUF_MR_IOVA",
        "FD": "UVERBS_ATTR_REG_DMABUF_MR_FD",
        "ACCESS": "UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS",
        "LKEY": "UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY",
        "RKEY": "UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY",
        "MANDATORY": "UVERBS_ATTR_F_MANDATORY",
    },
}


def constants(file: str, is_arm: bool = False) -> dict[str, int]:
    """Returns the numbers among the constants of a source."""
    found = {}
    for name, value in CONSTANT.findall((SOURCES / file).read_text(encoding="utf-8")):
        choice = re.fullmatch(r"if IS_ARM \{ (.+) \} else \{ (.+) \}", value)
        if choice:
            value = choice[1 if is_arm else 2]
        value = value.replace("_", "")
        if NUMBERS.fullmatch(value):
            # Python computes such a value as Rust does.
            found[name] = eval(value, {})
    return found


def in_headers(directory: Path, names: dict[str, str]) -> dict[str, int]:
    """Returns the values of C expressions, each with the name of its constant."""
    lines = [f'VALUE("{name}", {value})' for name, value in names.items()]
    source, program = directory / "values.c", directory / "values"
    source.write_text("\n".join([HEADERS, *lines, "}\n"]), encoding="utf-8")
    # The headers are the same on each processor, so the program is one for this machine.
    subprocess.run(["gcc", "-w", str(source), "-o", str(program)], check=True)
    printed = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return {name: int(value) for name, value in map(str.split, printed.splitlines())}


@pytest.mark.parametrize("file", sorted({*SAME, *OTHERS}))
def test_constants_of_headers(file: str, tmp_path: Path) -> None:
    names = {name: name for name in SAME.get(file, "").split()} | OTHERS.get(file, {})
    mine = constants(file)
    assert {name: mine.get(name) for name in names} == in_headers(tmp_path, names)


@pytest.mark.parametrize(
    ("header", "is_arm"), [("asm/unistd_64.h", False), ("asm-generic/unistd.h", True)]
)
def test_system_calls(header: str, is_arm: bool) -> None:
    """arm64 has the numbers of the generic header."""
    mine = {name: value for name, value in constants("libc.rs", is_arm).items() if "SYS_" in name}
    assert len(mine) == 6
    names = {name: f"__NR_{name[4:].lower()}" for name in mine}
    text = "".join(f"{name} {value}\n" for name, value in names.items())
    # The generic header leaves out what only some processors have, and arm64 has this.
    macros = ["-D__BITS_PER_LONG=64", "-D__ARCH_WANT_NEW_STAT"]
    words = ["gcc", "-E", "-P", *macros, "-include", header, "-"]
    ran = subprocess.run(words, input=text, capture_output=True, text=True, check=True)
    last = [line.split() for line in ran.stdout.splitlines() if line.startswith("SYS_")]
    assert {name: int(value) for name, value in last} == mine
