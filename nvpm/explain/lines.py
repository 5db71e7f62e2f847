# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Splits a line of a log into its prefixes and the message, and says which host and process printed
the line. Programs, starters of programs and collectors of logs each add a prefix."""

import re
from typing import Dict, Iterable, Match, NamedTuple, Set, Tuple

ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")

# Each item is a form of prefix. A line can have several of them in any order.
ITEMS = (
    rb"(?:> ?)+",  # a quotation in Markdown
    rb"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\]?:?",
    rb"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?",
    rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?= )",
    rb"(?P<log_host>[\w.-]+) kernel:",
    rb"\[[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}\]",  # dmesg -T
    rb"\[ *\d+\.\d+\]",  # dmesg, UCX
    # mpirun --timestamp-output
    rb"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[)",
    rb"\[\d+,(?P<mpi_rank>\d+)\]<std\w+>:",  # mpirun --tag-output
    rb"\[[\w.-]+@\d+,(?P<prte_rank>\d+)\]<std\w+>:",  # mpirun of Open MPI 5
    rb"\[(?:rank|Rank )(?P<torch_rank>\d+)\]:?",
    rb"\[default\d+\]:",  # torchrun, with a number that each node counts anew
    rb"(?P<task>\d+):(?= (?:\[|\S+:\d+:\d+ \[|[IWEF]\d{4} ))",  # srun --label
    # pdsh, clush
    rb"(?P<label>(?=[A-Za-z][A-Za-z-]{0,62}\d)[A-Za-z][A-Za-z0-9.-]{1,252}):"
    rb"(?= (?:\[|\d+:|\S+:\d+:\d+ \[))",
    rb"[\w./-]+ +\|(?= )",  # docker compose
    rb"\[pod/[\w./-]+\]",  # kubectl --prefix
    rb"\((?P<worker>[A-Za-z][\w ]*) ?pid=\d+(?:, ip=[\d.]+)?\)",  # Ray, vLLM
    rb"(?P<nccl_host>[A-Za-z0-9][\w.-]*):(?P<nccl_pid>\d+):\d+ \[(?P<nccl_gpu>-?\d+)\]",
    rb"\[(?P<ucx_host>[A-Za-z0-9][\w.-]*):(?P<ucx_pid>\d+)(?::\d+)*\]",
)
PREFIX = re.compile(rb"(?:\s*(?:" + b"|".join(ITEMS) + rb"))+ *")
HOSTS = ("nccl_host", "ucx_host", "log_host", "label")
RANKS = ("mpi_rank", "prte_rank", "torch_rank", "task")
# Names before a colon that are devices or programs, and no hosts.
NO_HOST = re.compile(r"(?:mlx\d|nvidia\d*|ib\d|eth\d|gpu\d|cuda\d|libfabric|rank\d|hfi\d|nvme)")


class Source(NamedTuple):
    """The program that printed a line. Unknown parts are empty. A process is named by its number,
    and by its GPU if NCCL prints the GPU."""

    host: str = ""
    process: str = ""
    rank: str = ""


NOBODY = Source()
# The sources are kept, because most prefixes without a time occur again and again.
KNOWN: Dict[bytes, Source] = {}
MOST_KNOWN = 4096


def hosts_of(sources: Iterable[Source]) -> Set[str]:
    """Returns the hosts that the sources name."""
    return {one.host for one in sources if one.host}


def split(line: bytes) -> Tuple[Source, bytes]:
    """Returns the source of a line and the message without prefixes."""
    if b"\x1b" in line:
        line = ANSI.sub(b"", line)
    found = PREFIX.match(line)
    if not found:
        return NOBODY, line
    source = KNOWN.get(found.group())
    if source is None:
        source = source_of(found)
        if len(KNOWN) < MOST_KNOWN:
            KNOWN[found.group()] = source
    return source, line[found.end() :]


def source_of(found: Match[bytes]) -> Source:
    groups = {name: text.decode("utf-8", "replace") for name, text in found.groupdict(b"").items()}

    def first(names: Iterable[str]) -> str:
        return next((groups[name] for name in names if groups[name]), "")

    # Domains do not count, because the same host is printed with and without a domain.
    host = first(HOSTS)
    host = host if host.replace(".", "").isdigit() else host.partition(".")[0]
    process = groups["nccl_pid"] and f"{groups['nccl_pid']}:{groups['nccl_gpu']}"
    return Source(
        "" if NO_HOST.match(host) else host, process or first(("ucx_pid", "worker")), first(RANKS)
    )
