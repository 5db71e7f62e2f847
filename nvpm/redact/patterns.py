# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Contains patterns of names and numbers that identify people, hosts, jobs and cards. Most of these
names and numbers have a form that a pattern can recognize. Names of hosts and users have no such
form, so each word of a text is compared with the names that names.py has found on this machine."""

import re
from typing import NamedTuple, Pattern

# Groups of a pattern: BEFORE is the text before the part to replace, WHAT is the part to replace,
# and KEPT is a text that only looks like such a part, and stays.
BEFORE, WHAT, KEPT = "before", "what", "kept"

OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
IPV4 = rf"(?<![\w.-]){OCTET}(?:\.{OCTET}){{3}}(?!\w|[.-]\d)"
# These texts look like addresses, but they stay. They are registers and page table entries in the
# report of a crash, the random number of such a report, and versions.
REGISTER = (
    rf"(?P<{KEPT}>\b(?:(?:orig_)?r[a-z]{{2}}|r\d{{1,2}}|cr\d|dr\d|(?:knl)?[fg]s|x\d{{1,2}}|sp|pc|lr)"
    r" ?: ?(?:[0-9a-f]{4}:)?[0-9a-f]{16}\b|end trace [0-9a-f]{16}"
    r"|\b(?:pgd|p4d|pud|pmd|pte)=[0-9a-f]{16}\b|\bidle=[0-9a-f]+/\d+/0x[0-9a-f]{16}\b"
    r"|\bversion ?[:=]\s{0,16}v?\d+(?:\.\d+)+)"
)
# A number of 16 digits that begins with one of these is no GUID, but an address in the kernel,
# poison of freed memory or of lists, or a small number.
KERNEL_VALUE = r"(?:f{3}[0-9a-f]|dead|0000|6b6b|5a5a|a5a5|bbbb|cccc)"
GUID = (
    rf"\b[0-9a-f]{{4}}(?::[0-9a-f]{{4}}){{3}}\b"
    rf"|\b0x(?!{KERNEL_VALUE})[0-9a-f]{{16}}\b|\b(?!{KERNEL_VALUE})[0-9a-f]{{16}}\b"
    r"|\b[0-9a-f]{32}\b"
)
# The kernel may print a GUID without its leading zeros.
SHORT_GUID = rf"(?P<{BEFORE}>guid ?[:=]? ?(?:0x)?)(?P<{WHAT}>[0-9a-f]{{9,16}})\b"
# A hardware address has 6 bytes on Ethernet, 8 as a GUID, and 20 with IP over InfiniBand.
MAC = r"\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}\b"
# MAPPED is an IPv6 address that ends with an IPv4 address. IPV6 has eight groups, or fewer groups
# around two colons, which stand for zeros.
MAPPED = rf"(?<![\w:.])(?=[0-9a-f:]*::)[0-9a-f:]{{1,39}}:{OCTET}(?:\.{OCTET}){{3}}(?!\w|\.\d)"
IPV6 = (
    r"(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
    r"|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|(?:[0-9a-f]{1,4}:){2,7}:"
    r"|::(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4})(?![\w:])"
)
# The names of some network interfaces and RDMA devices contain their hardware address.
NAMED_BY_ADDRESS = (
    rf"(?P<{BEFORE}>(?<![a-z0-9])(?:enx|wlx|wwx|ibx|rocex|iwx|opax))"
    rf"(?P<{WHAT}>[0-9a-f]{{12}}(?:[0-9a-f]{{4}})?)(?![0-9a-f])"
)
UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
SERIAL = (
    rf"(?P<{BEFORE}>\b(?:serial[ _]?(?:number|num\b|no\b\.?)?|s/n|sn)\"? ?[:=] ?\"?|\bs/n )"
    rf"(?P<{WHAT}>(?=[\w./-]*\d)[\w./-]+)"
)
SECRET = (
    rf"(?P<{BEFORE}>(?:password|passwd|passphrase|secret|token|api_?key) ?[:=] ?)(?P<{WHAT}>\S+)"
)
CREDENTIALS = rf"(?P<{BEFORE}>://)(?P<{WHAT}>[^\s/@]+)(?=@)"
# The part after @ may be a host without a domain. A word after a slash is no mail address, because
# names in the paths of a device tree contain @.
MAIL = r"(?<![/\w.+-])[\w.+-]*\w@[a-z][\w-]*(?:\.[\w-]+)*"
HOME = rf"(?P<{BEFORE}>/home/)(?P<{WHAT}>[^/\s:\"']+)"
# Names of storage targets are replaced, because they may contain names of hosts.
TARGET = r"\b(?:nqn|iqn)\.\d{4}-\d\d\.[^\s,\"']+|\b(?:eui|naa)\.[0-9a-f]{16,32}\b"
PUBLIC = (
    r"(?<![\w.-])(?:[a-z0-9-]+\.)*(?:nvidia\.com|kernel\.org|debian\.org|redhat\.com|github\.com)\b"
)
# A name with dots that ends with one of these is a file or a function, and no host.
SUFFIX = (
    r"(?:conf|ko|so|xz|zst|gz|py|sh|service|socket|target|rules|json|txt|log|md|cold|part|isra"
    r"|constprop|llvm|cfi|deb|rpm|noarch|elf)"
)
TOP_LEVEL = r"(?:com|org|net|edu|gov|mil|local|lan|internal|intra|corp|home|example|test|invalid)"
FQDN = (
    rf"(?P<{KEPT}>{PUBLIC})|(?<![\w.-])(?:[a-z0-9][a-z0-9-]*\.)"
    rf"(?:(?:[a-z0-9][a-z0-9-]*\.)+(?!{SUFFIX}\b)[a-z]{{2,}}|{TOP_LEVEL})(?![\w-])"
)

# The places in the kernel's log where a process is named. The name has at most 15 characters, and
# may contain blanks.
NAME = rf"(?P<{WHAT}>[^\n]{{1,15}}?)"
JOBS = (
    rf"(?P<{BEFORE}>\bname=)(?P<{WHAT}>[^,\n]{{1,15}})",
    rf"(?P<{BEFORE}>\bComm: ){NAME}(?= Not tainted| Tainted| Kdump|$)",
    rf"(?P<{BEFORE}>stuck for [^\n\[]{{0,40}}\[){NAME}(?=:\d+\])",
    rf"(?P<{BEFORE}>\btask ){NAME}(?=:\d+ blocked for)",
    rf"(?P<{BEFORE}>\btask:){NAME}(?= *state:)",
    rf"(?P<{BEFORE}>\bby task |while atomic: ){NAME}(?=/\d+)",
    rf"(?P<{BEFORE}>\bin process ){NAME}(?=  |$)",
    rf"(?P<{BEFORE}>\bprocess \d+ \(){NAME}(?=\))",
    rf"(?P<{BEFORE}>\bProcess ){NAME}(?= \(pid: )",
    rf"(?P<{BEFORE}>(?:^|\] |kernel: |traps: ))(?!traps: |kernel: )(?P<{WHAT}>[^\n\[\]]{{1,15}}?)"
    r"(?=\[\d+\]:? (?:segfault|trap|general protection|vsyscall|bad frame)| invoked oom-killer)",
    # The next pattern matches the name of a file in the report of a fault. Libraries stay, because
    # their names tell nothing about users. The last three patterns match reports about a lack of
    # memory.
    rf"(?P<{BEFORE}>\berror(?: |:)[0-9a-f]+ in )(?!\S+\.so\b)(?P<{WHAT}>[^\n\[]+)(?=\[)",
    rf"(?P<{BEFORE}>\btask=){NAME}(?=,pid=)",
    rf"(?P<{BEFORE}>\b(?:task_|oom_)memcg=)(?P<{WHAT}>[^,\n]+)",
    rf"(?P<{BEFORE}>\[ *\d+\](?: +-?\d+){{7,9}} +){NAME}(?=$)",
)
# Processes whose names begin like these stay: threads of the kernel and programs of the system,
# whose names tell nothing about users.
OF_THE_SYSTEM = re.compile(
    r"<|kworker|ksoftirqd|migration|swapper|rcu|irq|khungtaskd|kswapd|kthreadd|watchdog|kcompactd"
    r"|khugepaged|cpuhp|nv_|nvidia|nvpm|UVM|mlx|ib_|rdma|modprobe|insmod|rmmod|depmod|systemd"
    r"|\(?udev|python|(ba|da)?sh$|apt|dpkg|dnf|rpm|dkms|make$|slurmd|slurmstepd|kubelet|containerd"
    r"|dockerd|opensm|job-\d"
)

# The alternatives before WHAT match PCI addresses, lists of bytes and registers, whose parts must
# not be taken for names of hosts.
HOST_WORD = re.compile(
    r"[0-9a-f]{4,5}:[0-9a-f]{2}(?![0-9a-z])(?::[0-9a-f]{2})?|\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
    r"|\[[0-9a-f]{2}(?:-[0-9a-f]{2})?\]|\bCode: [^\n]*|\bx\d+ ?:"
    rf"|(?P<{WHAT}>[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*)"
)
# The greatest length of a host's name without its domain. host_word() also uses it as the greatest
# number of parts of a name. A name has an odd number of parts, so this number must be odd.
LONGEST_LABEL = 63
BETWEEN = re.compile(r"([_-])")
USER_WORD = re.compile(rf"(?P<{WHAT}>[\w-]+(?:\.[\w-]+)*)")


class Rule(NamedTuple):
    word: str
    pattern: Pattern[str]


def rule(word: str, pattern: str) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE))


RULES = (
    rule("secret", CREDENTIALS),
    rule("secret", SECRET),
    rule("target", TARGET),
    rule("user", MAIL),
    rule("uuid", UUID),
    rule("serial", SERIAL),
    rule("address", NAMED_BY_ADDRESS),
    rule("address", SHORT_GUID),
    rule("address", f"{REGISTER}|{MAC}|{GUID}|{MAPPED}|{IPV6}|{IPV4}"),
    rule("user", HOME),
    *(Rule("job", re.compile(pattern, re.MULTILINE)) for pattern in JOBS),
)
DOMAINS = rule("host", FQDN)
