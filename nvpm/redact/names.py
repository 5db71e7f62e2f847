# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Collects the names of hosts and users on this machine, so that a report can leave them out."""

import os
from typing import Iterable, Set

from ..read.machine import Machine, clean
from .patterns import OF_THE_SYSTEM

FIRST_PERSON, NOBODY = 1000, 65534

# These names identify nobody. They exist on every machine, come with an operating system, describe
# the purpose of a machine, or are short words that any text may contain.
COMMON = {
    *("localhost", "localdomain", "localhost4", "localhost6", "broadcasthost", "ip6-localhost"),
    *("ip6-loopback", "ip6-localnet", "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters"),
    *("root", "nobody", "admin", "user", "ubuntu", "debian", "rocky", "centos", "fedora", "opc"),
    *("ec2-user", "azureuser", "vagrant", "nvidia", "linux", "kernel", "host", "machine", "node"),
    *("server", "vm", "gpu", "nic", "rdma", "login", "head", "compute", "worker", "master", "test"),
    *("am", "an", "as", "at", "be", "by", "do", "go", "he", "id", "if", "in", "ip", "is", "it"),
    *("me", "mr", "my", "no", "of", "on", "or", "os", "so", "to", "up", "us", "we", "ib", "ko"),
}


def named(names: Iterable[str]) -> Set[str]:
    """Returns the NAMES that can identify somebody: no single characters, numbers or common
    names."""
    return {
        name
        for name in names
        if len(name) > 1 and not name.isdigit() and name.lower() not in COMMON
    }


# Words that stand in every report: in the kernel's messages, and in nvpm's own.
WORDS = {
    *("does", "did", "could", "can", "will", "would", "may", "must", "space", "gpus", "server"),
    *("registrations", "registration", "pointer", "verbs"),
    *(
        "about",
        "access",
        "address",
        "all",
        "alloc",
        "and",
        "application",
        "audit",
        "bar",
        "blocked",
    ),
    *("bug", "bus", "call", "cannot", "card", "client", "code", "command", "core", "cpu", "cuda"),
    *("data", "debug", "detected", "device", "disabled", "dma", "driver", "enabled", "error"),
    *("event", "failed", "failure", "fault", "file", "firmware", "for", "free", "freed", "from"),
    *(
        "flags",
        "gdr",
        "group",
        "has",
        "inode",
        "irq",
        "line",
        "node",
        "order",
        "pfn",
        "held",
        "info",
        "init",
        "invalid",
        "iommu",
        "kill",
        "killed",
    ),
    *("link", "list", "load", "loaded", "lock", "log", "main", "mapped", "max", "mem", "memory"),
    *("message", "mlx5", "mode", "model", "module", "name", "net", "network", "nfs", "none", "not"),
    *("nvrm", "oom", "page", "pages", "pci", "pcie", "peer", "pid", "pinned", "port", "probe"),
    *("process", "program", "rank", "read", "ready", "register", "registered", "report", "reset"),
    *("run", "script", "send", "service", "size", "start", "started", "state", "status", "stop"),
    *("system", "table", "task", "the", "thread", "time", "timeout", "trace", "tree", "type"),
    *("unknown", "usb", "user", "value", "version", "warning", "was", "with", "write", "xid"),
}


def ordinary(machine: Machine) -> Set[str]:
    """Returns words, in small letters, that tell nothing even if they are also somebody's name."""
    places = ("/sys/module/*", "/sys/class/infiniband/*", "/sys/class/net/*")
    return COMMON | WORDS | {os.path.basename(name).lower() for name in machine.glob(*places)}


def jobs(machine: Machine) -> Set[str]:
    """Returns the names of the running processes of people."""
    found = set()
    for process in machine.glob("/proc/[0-9]*"):
        owner = machine.owner(process)
        if owner is not None and FIRST_PERSON <= owner != NOBODY:
            found.add(clean(machine.text(f"{process}/comm")))
    return {name for name in found if not OF_THE_SYSTEM.fullmatch(name)}


def hosts(machine: Machine) -> Set[str]:
    """Returns the names of this machine and of the hosts in /etc/hosts, without their domains."""
    lines = (line.partition("#")[0].split()[1:] for line in machine.lines("/etc/hosts"))
    names = {machine.host, *(name for line in lines for name in line)}
    labels = {name.partition(".")[0] for name in names}
    # A text may contain a host's name with or without capitals, and Redactor.is_host() compares
    # small letters, so each name is added in small letters, too.
    return named(labels | {name.lower() for name in labels})


def people(machine: Machine) -> Set[str]:
    """Returns the names of users whose numbers are in the range for people, of the present user,
    and of users who have a home in /home. The homes count because a system like LDAP need not list
    its users."""
    found = {name for name, number in machine.users() if FIRST_PERSON <= number != NOBODY}
    found |= {os.environ.get(name, "") for name in ("SUDO_USER", "LOGNAME", "USER")}
    return named(found | {os.path.basename(home) for home in machine.glob("/home/*")})
