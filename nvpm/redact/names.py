# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Collects the names of hosts and users on this machine, so that a report can leave them out."""

import os
import pwd
from typing import Iterable, Set

from ..read.machine import Machine

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
    found = {user.pw_name for user in pwd.getpwall() if FIRST_PERSON <= user.pw_uid != NOBODY}
    found |= {os.environ.get(name, "") for name in ("SUDO_USER", "LOGNAME", "USER")}
    return named(found | {os.path.basename(home) for home in machine.glob("/home/*")})
