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
QUAD = rf"{OCTET}(?:\.{OCTET}){{3}}"
# An address alone, the two ends of a range, and an address with the port behind it as one or two
# more numbers, as NFS and tcpdump print it.
IPV4 = (
    rf"(?<![\w.-]){QUAD}-{QUAD}(?!\w|\.\d)|(?<![\w.-]){QUAD}(?:\.\d{{1,5}}){{1,2}}(?!\w|[.-]\d)"
    rf"|(?<![\w.-]){QUAD}(?!\w|[.-]\d)"
)
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
# A hardware address without separators. Addresses of a program's memory begin with 55 to 56 and 7e
# to 7f. Addresses of the kernel and of PCI devices begin with ffff, or end at a border of pages.
PLAIN_MAC = (
    r"\b(?<!commit )(?:0x)?(?=[0-9]*[a-f])(?!ffff|5[56]|7[ef])[0-9a-f]{9}(?!000|fff)[0-9a-f]{3}\b"
)
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
    rf"(?P<{BEFORE}>\b(?:serial[ _]?(?:number|num\b|no\b\.?)?|s/n|sn)"
    rf"(?:\"?\s{{0,24}}[:=#]\s{{0,8}}\"?|\s{{1,8}}is\s{{1,8}})|\bs/n )"
    rf"(?P<{WHAT}>(?=[\w./-]*\d)[\w./-]+)"
)
# A serial number without a sign before it. Such a number has seven characters or more.
SERIAL_WORD = (
    rf"(?P<{BEFORE}>\b(?:serial|Serial|SN|sn) )"
    rf"(?P<{WHAT}>(?=[A-Z]*\d)[A-Z\d]{{7,}}\b(?!:|\.\d))"
)
# The value may stand in quotation marks, with blanks.
VALUE = rf"(?P<{WHAT}>\"[^\"\n]*\"?|'[^'\n]*'?|[^\s\"']+)"
SECRET = (
    rf"(?P<{BEFORE}>(?<![a-z])(?:pass(?:word|wd|phrase|code)?|pwd|psk|secret|token|api[_-]?key"
    r"|private[_-]?key|key|auth|authorization|credentials?|licen[cs]e)\"? ?[:=] ?"
    rf"(?:(?:bearer|basic) )?){VALUE}"
)
# A secret behind an option, or behind the word of HTTP.
SECRET_OPTION = (
    rf"(?P<{BEFORE}>(?<![\w-])--?(?:password|passwd|passphrase|secret|token|api-?key|auth) {{1,4}}"
    rf"|\bbearer )" + VALUE
)
# Secrets that are known by their own form: keys of clouds and of code hosts, tokens of the web, and
# private keys. A cookie, and a name such as LicKey or accessToken, also stands before a secret.
SECRET_FORM = (
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\b(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|sk-|hf_)[\w-]{16,}"
    r"|(?<![\w-])eyJ[\w-]{4,}\.[\w-]{4,}(?:\.[\w-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]*-----END [A-Z ]*PRIVATE KEY-----)?"
)
SECRET_NAMED = (
    rf"(?P<{BEFORE}>[a-z](?:Key|Token|Secret|Password)\"? ?[:=] ?){VALUE}",
    rf"(?P<{BEFORE}>\b(?:[Ss]et-)?[Cc]ookie: )(?P<{WHAT}>[^\n]+)",
)
USER_OPTION = rf"(?P<{BEFORE}>(?<![\w-])(?:-u|--user) {{1,4}})(?P<{WHAT}>[^\s:]+:\S+)"
CREDENTIALS = rf"(?P<{BEFORE}>://)(?P<{WHAT}>[^\s/@]+)(?=@)"
# The part after @ may be a host without a domain. A word after a slash is no mail address, because
# names in the paths of a device tree contain @.
MAIL = r"(?<![/\w.+-])[\w.+-]*\w@[a-z][\w-]*(?:\.[\w-]+)*"
HOME = rf"(?P<{BEFORE}>/home/)(?P<{WHAT}>[^/\s:\"']+)"
DOMAIN_USER = rf"(?P<{BEFORE}>(?<![\w.\\-])[A-Z][A-Z0-9.-]{{1,14}}\\)(?P<{WHAT}>[a-z][\w.-]*)"
# A user of an audit record, or of a program's message.
OF_USER = (
    rf"(?P<{BEFORE}>\bof user )(?!(?:space|mode|memory|pages?|process|namespaces?|data|buffers?)\b)"
    rf"(?P<{WHAT}>[\w-]+)"
)
# The header of a packet, whose bytes begin with two hardware addresses.
PACKET = (
    rf"(?P<{BEFORE}>\bll header: (?:[0-9a-f]{{8}}: )?)"
    rf"(?P<{WHAT}>[0-9a-f]{{2}}(?:[ :][0-9a-f]{{2}})+)"
)
ACCOUNT = rf"(?P<{BEFORE}>\b(?:acct|user|username|login|owner)=\"?)(?P<{WHAT}>[^\s\",;)]+)"
# Directories of a system. Users choose the names in all other directories, such as
# /scratch/NAME/PROJECT. A path of a device tree has @.
ROOTS = (
    r"(?:bin|sbin|usr|lib|lib32|lib64|etc|proc|sys(?!/fs/cgroup/)|dev(?!/shm/)|boot|soc|firmware"
    r"|run(?!/user/)|var/(?:lib|log|cache|run|crash))(?=/)"
)
# The name of a source file stays, because it says where the kernel has found a defect.
PATH = (
    rf"(?P<{BEFORE}>(?<![\w.:/@)}}\]*+~<-])/(?:home/[^/\s]+/)?)(?!{ROOTS}|home/)(?!\S{{0,255}}@)"
    rf"(?P<{WHAT}>[\w.,+%~-]+(?:/(?!\w+\.(?:c|h|rs|S)\b)[\w.,+%~:=-]*[\w+%~-])+"
    rf"|(?<=/)(?<!\s/)(?<!^/)[\w.,+%~-]+)"
)
# Names of storage targets are replaced, because they may contain names of hosts.
# The subsystems of NVMe over fabrics and the sessions of RTRS have any names.
NVMET = rf"(?P<{BEFORE}>\b(?:subsystem|for NQN) )(?P<{WHAT}>[^\s,\"']+)(?=[ .]|$)"
RTRS = rf"(?P<{BEFORE}>\brtrs_\w+ L\d+: <)(?P<{WHAT}>[^>\n]+)"
# File systems that a site has named.
FILE_SYSTEMS = (
    rf"(?P<{BEFORE}>\bGFS2: fsid=)(?P<{WHAT}>[\w.-]+(?::[\w.-]+)?)",
    rf"(?P<{BEFORE}>\"lock_dlm\", \")(?P<{WHAT}>[^\"\n]+)",
    rf"(?P<{BEFORE}>\bdlm: )(?P<{WHAT}>[\w.-]+)(?=: )",
    rf"(?P<{BEFORE}>\bdevice label )(?P<{WHAT}>\S+)(?= devid )",
)
# Ends of network interfaces of containers, and bridges, which people name.
INTERFACE = r"\b(?:veth|cali|tap|br-|p\d_)(?=[\w-]*[a-z])[\w-]+"
TARGET = r"\b(?:nqn|iqn)\.\d{4}-\d\d\.[^\s,\"']+|\b(?:eui|naa)\.[0-9a-f]{16,32}\b"
PUBLIC = (
    r"(?<![\w.-])(?:[a-z0-9-]+\.)*(?:nvidia\.com|kernel\.org|debian\.org|redhat\.com|github\.com)\b"
)
# A name with dots that ends with one of these is a file or a function, and no host.
SUFFIX = (
    r"(?:conf|ko|so|xz|zst|gz|py|sh|service|socket|target|rules|json|txt|log|md|cold|part|isra"
    r"|constprop|llvm|cfi|deb|rpm|noarch|elf|c|h|rs|s|o|a|bin|img|efi|pem|der|dtb|tar|tgz|fw|ucode"
    r"|dat|cfg|ini|pyz|whl|lock|pid|sock|mount|slice|scope|timer|device|path)"
)
TOP_LEVEL = r"(?:com|org|net|edu|gov|mil|local|lan|internal|intra|corp|home|example|test|invalid)"
# A host with a number, and one label after it, such as node4.hpc.
NUMBERED = rf"(?<![\w.-])[a-z][a-z-]*\d[a-z0-9-]*\.(?!{SUFFIX}\b)[a-z]{{2,}}(?![\w.-])"
FQDN = (
    rf"(?P<{KEPT}>{PUBLIC})|{NUMBERED}|(?<![\w.-])(?:[a-z0-9][a-z0-9-]*\.)"
    rf"(?:(?:[a-z0-9][a-z0-9-]*\.)+(?!{SUFFIX}\b)[a-z]{{2,}}|{TOP_LEVEL})(?![\w-])"
)

NO_VERB = r"(?!(?:does|did|is|was|has|had|could|can|will|would|may|must|cannot)\b)"
# Servers of file systems, which the kernel names without a domain.
SERVERS = (
    rf"(?P<{BEFORE}>\b(?:nfs\w*|lockd|statd|rpc\w*|sunrpc|ceph|beegfs|lustre)\b[^\n]{{0,60}}?"
    rf"\bserver ){NO_VERB}(?P<{WHAT}>[\w.-]*\w)",
    rf"(?P<{BEFORE}>\bserver ){NO_VERB}(?P<{WHAT}>[\w.-]*\w)(?= (?:has )?not )",
    rf"(?P<{BEFORE}>\bcannot (?:un)?monitor )(?P<{WHAT}>[\w.-]*\w)",
    rf"(?P<{BEFORE}>(?<![\w:/])//)(?P<{WHAT}>\w[\w.-]*/[\w$./-]+)",
    rf"(?P<{BEFORE}>(?:^|[ (]))(?P<{WHAT}>[A-Za-z][\w.-]*:/(?!/)[\w./-]+)(?=[\s,)]|$)",
    rf"(?P<{BEFORE}>\\\\)(?P<{WHAT}>[\w.-]+(?:\\[^\s\\]+)*)",
    rf"(?P<{BEFORE}>\bhost(?:name)?(?:=\"?|(?: set)? to <))(?P<{WHAT}>[\w.-]*\w)",
)
# A file system of Lustre, which is named after its site.
LUSTRE = r"\b[A-Za-z0-9_]{1,16}(?=-(?:(?:OST|MDT|MGS)[0-9a-f]{0,4}|client|clilov)\b)"
CONTAINER = r"\b[0-9a-f]{64}\b"

# The places in the kernel's log where a process is named. The name has at most 15 characters, and
# may contain blanks. START is the beginning of a message.
NAME = rf"(?P<{WHAT}>[^\n]{{1,15}}?)"
START = (
    r"(?:^|\] |kernel: |(?:traps|note|mmap|detection|WARNING|signal): )"
    r"(?!(?:traps|kernel|note|mmap|x86/\w+): )"
)
# The words of messages that begin with the name of a process, and say what the process has done.
DOES = (
    r"(?=(?::? (?:using (?:deprecated|unsupported|old) |calling unsupported "
    r"|attempt to access beyond )| (?:calls setitimer|passes broken|requested AGP|tried to set rate"
    r"|wrote to |forgot to set "
    r"|is broken and |wants too many |tries to shift |sets custom speed )))"
)
# An extension of Python, and no library of the system, has the version of Python in its name.
NO_LIBRARY = r"(?!(?!\S{0,255}\.cpython-)\S{1,255}\.so\b)"
QUOTED = rf"(?P<{WHAT}>\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',]+)"
JOBS = (
    rf"(?P<{BEFORE}>\bpid=\d+, name=)(?P<{WHAT}>[^\n]{{1,15}}?)(?=, |$)",
    rf"(?P<{BEFORE}>\bname=(?![\"']))(?P<{WHAT}>[^,\n]{{1,15}})",
    rf"(?P<{BEFORE}>\b(?:comm|exe|proctitle|cwd|ocomm|cmd|name|profile|peer|label)=)(?=[\"'])"
    + QUOTED,
    rf"(?P<{BEFORE}>\b(?:comm|exe|proctitle|cwd|ocomm|cmd)=)(?![\"'])" + QUOTED,
    rf"(?P<{BEFORE}>\bpid: \d+, name: ){NAME}(?=$)",
    rf"(?P<{BEFORE}>\b[Cc]omm: ?){NAME}(?= Not tainted| Tainted| Kdump| Pid:|, no |$)",
    rf"(?P<{BEFORE}>\bcomm )(?=\"){QUOTED}(?=, pid)",
    rf"(?P<{BEFORE}>\bcomm )(?!\"){NAME}(?=: |$)",
    rf"(?P<{BEFORE}>\bLockdown: |\brandom: ){NAME}(?=: )",
    rf"(?P<{BEFORE}>\bPAT: ){NAME}(?=:\d+ )",
    rf"(?P<{BEFORE}>{START}){NAME}(?=:\d+ freeing invalid memtype)",
    rf"(?P<{BEFORE}>\bXFS(?: \([^)\n]{{1,32}}\))?: ){NAME}(?=\(\d+\) possible| should use )",
    rf"(?P<{BEFORE}>\btask=\d+:){NAME}(?= cpu=)",
    rf"(?P<{BEFORE}>, killing ){NAME}(?=!)",
    rf"(?P<{BEFORE}>(?:user space address [0-9a-f]+|\bissue) in ){NAME}(?=$)",
    rf"(?P<{BEFORE}>\b(?:[Kk]illing|SIGBUS to|signal to) ){NAME}(?=:\d+)",
    rf"(?P<{BEFORE}>(?:^|[:\]] ))(?P<{WHAT}>[^\s:\]]{{1,15}}){DOES}",
    rf"(?P<{BEFORE}>['`\"])(?P<{WHAT}>[^\n'`\"]{{1,15}})"
    r"(?=['\"](?:: attribute | \((?:pid )?\d+\)| wants ))",
    rf"(?P<{BEFORE}>\b\d{{2,7}}\(){NAME}(?=\):? )",
    rf"(?P<{BEFORE}>\w\(){NAME}(?=:\d{{2,7}}\): )",
    rf"(?P<{BEFORE}>\bprogram ){NAME}(?= (?:is|not|has|uses) )",
    rf"(?P<{BEFORE}>(?:^|: )process )(?P<{WHAT}>[A-Za-z][\w.+-]{{0,14}})"
    r"(?= (?:did|has|is|was|uses) )",
    rf"(?P<{BEFORE}>\")(?P<{WHAT}>[^\n\"]{{1,255}})(?=\"\[\d+\])",
    rf"(?P<{BEFORE}>['`])(?P<{WHAT}>[^\n'`]{{1,15}})(?=' (?:uses|used|is using|has) )",
    rf"(?P<{BEFORE}>stuck for [^\n\[]{{0,40}}\[){NAME}(?=:\d+\])",
    rf"(?P<{BEFORE}>\btask ){NAME}(?=:\d+)",
    rf"(?P<{BEFORE}>\btask:){NAME}(?= *state:)",
    rf"(?P<{BEFORE}>\b(?:by task |while atomic: |held by |by: )){NAME}(?=[/:]\d+| \(pid)",
    rf"(?P<{BEFORE}>#(?:AC|DB): ){NAME}(?=/\d+ took )",
    rf"(?P<{BEFORE}>\bin process ){NAME}(?=  |$| p[a-z]{{2}}:)",
    rf"(?P<{BEFORE}>\bprocess (?:id )?\d+ \(){NAME}(?=\))",
    rf"(?P<{BEFORE}>\b[Pp]rocess ){NAME}(?= \(pid|\[\d+\]|/\d+)",
    rf"(?P<{BEFORE}>\b(?:process|program|task|application|command) ['`\"])(?P<{WHAT}>[^\n'`\"]+)",
    rf"(?P<{BEFORE}>{START})(?P<{WHAT}>[^\n\[\]]{{1,15}}?)"
    r"(?=\[\d+\]:? (?:segfault|trap|general protection|vsyscall|bad frame|exited with)"
    r"| invoked oom-killer|: page allocation (?:failure|stalls)"
    r"|: vmalloc|: Corrupted page table| uses obsolete | +[RSDTtXZPI] [0-9a-f]{8,16} +\d"
    r"| +[RSDTtXZPI] +(?:running task|stack:)"
    r"|/\d+(?: is | just | still |: potentially unexpected|: reached | took | \[)"
    r"| \(\d+\)(?:: | used | uses )"
    r"|\[\d+\] (?:bad frame|undefined|uses |trapped|vm86|cmdline|unhandled|trying))",
    # The next pattern matches the name of a file in the report of a fault. Libraries stay, because
    # their names tell nothing about users. The last four patterns match reports about a lack of
    # memory.
    rf"(?P<{BEFORE}>\berror(?: |:)[0-9a-f]+ in ){NO_LIBRARY}(?P<{WHAT}>[^\n\[]{{1,255}})(?=\[)",
    rf"(?P<{BEFORE}>\bin ){NO_LIBRARY}(?P<{WHAT}>[^\s\[]{{1,255}})(?=\[[0-9a-f]+\+[0-9a-f]+\])",
    rf"(?P<{BEFORE}>\btask=){NAME}(?=,pid=)",
    rf"(?P<{BEFORE}>\b(?:task_|oom_)memcg=|\bcpuset=(?!/,))(?P<{WHAT}>[^,\n]+)",
    rf"(?P<{BEFORE}>\b(?:[Tt]ask in|as a result of limit of|stats for|controller in) )"
    rf"(?P<{WHAT}>/[^\s:]+)",
    rf"(?P<{BEFORE}>\[ *\d+\](?: +-?\d+){{7,9}} +){NAME}(?=$)",
)
# Forms that a process has in messages of any kind: NAME/PID, NAME[PID], NAME (PID), [NAME:PID].
# Other words may have these forms too, so a word in such a form is replaced only where it stands.
WORD = r"[A-Za-z_][\w.+-]{0,14}"
LOOSE_JOBS = (
    rf"(?P<{BEFORE}>(?<![\w/.:+-]))(?P<{WHAT}>{WORD})(?=/\d{{2,7}}(?![\w/.]|:[0-9a-f]))",
    rf"(?P<{BEFORE}>(?:^|[ :(]))(?P<{WHAT}>{WORD})(?=\[\d{{2,7}}\](?:[:, ]|$))",
    rf"(?P<{BEFORE}>(?:^|[ :(]))(?P<{WHAT}>{WORD})(?= \((?:pid:? ?)?\d{{2,7}}\))",
    rf"(?P<{BEFORE}>\[)(?P<{WHAT}>{WORD})(?=:\d{{2,7}}\])",
    rf"(?P<{BEFORE}>[ (])(?P<{WHAT}>(?![\w.+-]+\.(?:c|h|rs|S):){WORD})(?=:\d{{2,7}}(?: |\)|$))",
    rf"(?P<{BEFORE}>\d{{3,7}} \()(?P<{WHAT}>{WORD})(?=\))",
    rf"(?P<{BEFORE}> )(?P<{WHAT}>{WORD})(?=/(?:0x)?[0-9a-f]+/(?:0x)?[0-9a-f]+$)",
)
# Processes with these names stay: threads of the kernel and programs of the system, whose names
# tell nothing about users. The kernel cuts a name after 15 characters.
OF_THE_SYSTEM = re.compile(
    r"<[^>]*>|job-\d+"
    # threads of the kernel
    r"|kworker(?:/.*)?|(?:ksoftirqd|migration|swapper|cpuhp|idle_inject|rcuo[a-z]|rcuc|rcub)/\d+"
    r"|swapper|rcu_[a-z_]+|irq/\d+-.*|khungtaskd|kswapd\d+|kthreadd|watchdogd?(?:/\d+)?"
    r"|kcompactd\d+|khugepaged|ksmd|kauditd|oom_reaper|writeback|scsi_eh_\d+|jbd2/.*"
    r"|xfs\w*[/-].*"
    r"|nv_queue|nvidia-modeset/?.*|UVM .*|mlx\d?_[a-z_]+|mlx5_.*_wq|rdma_cm|rxe_[a-z_]+|nvme-wq"
    r"|ib[-_](?:addr|comp|mcast|nl|cm|mad)\w*|nvmet?-.*"
    # programs of the system
    r"|nvpm(?:-reader)?|nvidia-(?:smi|persiste.*|modprobe|powerd|fabric.*|instal.*|contai.*|cuda-mps.*)"
    r"|nv-(?:fabricmanage.*|hostengine)|modprobe|insmod|rmmod|lsmod|depmod|kmod|modinfo|lspci|ip"
    r"|systemd(?:-[a-z]+)?|\(?udev-worker\)?|\(systemd\)|python(?:\d(?:\.\d+)?)?|(?:ba|da|k|z|c|tc)?sh"
    r"|apt(?:-get)?|dpkg|dnf|yum|zypper|rpm|dkms|make|cc1|gcc|ld|slurmd|slurmstepd|slurmctld|srun"
    r"|kubelet|containerd(?:-shim.*)?|dockerd|runc|crun|conmon|crio|opensm|sshd|crond?|sudo|su|init"
    r"|rdma|ibstat|perftest|ib_(?:write|read|send|atomic)_(?:bw|lat)|ibv_[a-z]+|mpirun|orted|prted"
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
JOB_WORD = re.compile(r"\w[\w.+-]*\w")
# Programs that belong to the system.
SYSTEM_PATH = re.compile(r"/(?:usr/)?s?bin/|/usr/lib(?:exec|64)?/|/lib/")
USER_WORD = re.compile(rf"(?P<{WHAT}>[\w-]+(?:\.[\w-]+)*)")


class Rule(NamedTuple):
    word: str
    pattern: Pattern[str]


def rule(word: str, pattern: str) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE))


def exact(word: str, pattern: str) -> Rule:
    """Returns a rule in which capitals and small letters differ."""
    return Rule(word, re.compile(pattern, re.MULTILINE))


# Rules whose matches are names of processes, users and hosts, and nothing else. A name that such a
# rule has found is replaced in the whole report.
SURE = (
    *(exact("job", pattern) for pattern in JOBS),
    exact("user", DOMAIN_USER),
    rule("user", ACCOUNT),
    rule("user", OF_USER),
    rule("user", HOME),
    *(rule("host", pattern) for pattern in SERVERS),
)
RULES = (
    exact("secret", SECRET_FORM),
    *(exact("secret", pattern) for pattern in SECRET_NAMED),
    rule("secret", CREDENTIALS),
    rule("secret", SECRET),
    rule("secret", SECRET_OPTION),
    exact("secret", USER_OPTION),
    rule("target", TARGET),
    exact("target", LUSTRE),
    exact("target", RTRS),
    rule("target", NVMET),
    *(exact("target", pattern) for pattern in FILE_SYSTEMS),
    rule("user", MAIL),
    rule("uuid", UUID),
    rule("serial", SERIAL),
    exact("serial", SERIAL_WORD),
    rule("container", CONTAINER),
    exact("container", INTERFACE),
    rule("address", NAMED_BY_ADDRESS),
    rule("address", SHORT_GUID),
    rule("address", PACKET),
    rule("address", f"{REGISTER}|{MAC}|{GUID}|{MAPPED}|{IPV6}|{IPV4}|{PLAIN_MAC}"),
    *SURE,
)
# Rules that do not hold for nvpm's own words.
FOREIGN = (exact("path", PATH), *(exact("job", pattern) for pattern in LOOSE_JOBS))
DOMAINS = rule("host", FQDN)
