# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A report keeps the lines that explain a crash, and names no people, hosts, jobs or cards."""

import json
import pwd
import re
import time
from pathlib import Path

import pytest
from crashes import CRASHES, QUIET
from machine import Machine
from tables import Player, called

from nvpm.read import kernel_log, reader
from nvpm.read import machine as subject
from nvpm.redact.redactor import Redactor

HOSTS = "10.0.0.1 n1.corp.example.com n1\n10.0.0.2 node-1\n10.0.0.3 node-12 # node-99\n10.0.0.4 c3 gpu_node7"


def redactor_of(tmp_path: Path, host: str = "n1", **files: str) -> Redactor:
    root = tmp_path / "machine"
    machine = Machine(str(root))
    machine.put("/proc/sys/kernel/hostname", host)
    machine.put("/etc/hosts", HOSTS)
    for home in "jdoe", "jdoe2", "anna.b":
        machine.put(f"/home/{home}/x", "")
    for path, text in files.items():
        machine.put(path, text)
    return Redactor(subject.Machine(str(root)), ["28.39.1002.5"])


# Each text with its redacted text. In a redacted text, equal names have equal numbers.
REDACTED = [
    ("n1 and N1, n1.corp.example.com, n1-ib0, enp1_n1 a-n1", "host-1 and host-1, host-1, host-1-ib0, enp1_host-1 a-n1"),
    ("n11 xn1 n1x 1n1", "n11 xn1 n1x 1n1"),
    ("node-12 node-1 node-12-ib0 node-123 node", "host-1 host-2 host-1-ib0 node-123 node"),
    ("node-99", "node-99"),
    ("gpu_node7 gpu_node7-ib0 x_gpu_node7", "host-1 host-1-ib0 x_host-1"),
    ("total-vm VM vm", "total-vm VM vm"),
    ("c3 at 0000:c3:00.0, c3:00.0 -[c3]- [c1-c3] PCI:0000:c3:00", "host-1 at 0000:c3:00.0, c3:00.0 -[c3]- [c1-c3] PCI:0000:c3:00"),
    ("Code: 48 8b c3 90 n1\nc3", "Code: 48 8b c3 90 n1\nhost-1"),
    ("rpcrdma: connection to nfs01.corp.example.com:20049", "rpcrdma: connection to host-1:20049"),
    ("store.lan a.b.site.de", "host-1 host-2"),
    ("see https://docs.nvidia.com/x, www.kernel.org", "see https://docs.nvidia.com/x, www.kernel.org"),
    ("nvidia.ko.xz my.module.conf a.isra.cold mlx5.foo.service 5.14.0-503.el9.x86_64", "nvidia.ko.xz my.module.conf a.isra.cold mlx5.foo.service 5.14.0-503.el9.x86_64"),
    ("Linux (jdoe@buildbox) (x@a-b.example.org) gcc", "Linux (user-1) (user-2) gcc"),
    ("/soc/pcie@10000000/rp", "/soc/pcie@10000000/rp"),
    ("jdoe jdoe2 JDoe jdoe-x anna.b anna", "user-1 user-2 JDoe jdoe-x user-3 anna"),
    ("/home/zoe/a", "/home/user-1/path-1"),
    ("id_ext 0002c903000f1366, 0x0002c903000f1366", "id_ext address-1, address-1"),
    ("GUID 0x2c903000f1366, 0002:c903:000f:1366, 0x0002C903000F1366", "GUID 0xaddress-1, address-1, address-1"),
    ("0c42:a103:0064:1234 and f0:e1:d2:c3:b4:a5", "address-1 and address-2"),
    ("enxb8cef6123456 rocex525400c0fe123455 ibx0c42a10300641234: up", "enxaddress-1 rocexaddress-2 ibxaddress-3: up"),
    ("S/N MT2143X12345 SN: A1234 Serial Number: 0323 sn=12ab", "S/N serial-1 SN: serial-2 Serial Number: serial-3 sn=serial-4"),
    ('"serial_number": "MT21X", Serial: 8250/16550 no serial here', '"serial_number": "serial-1", Serial: serial-2 no serial here'),
    ("nqn.2014-08.org.nvmexpress:uuid:n1, iqn.1993-08.org.debian:01:ab", "target-1, target-2"),
    ("10.1.2.3 28.39.1002.5 ::ffff:10.1.2.3 fe80::1 2001:db8::1", "address-1 28.39.1002.5 address-2 address-3 address-4"),
    ("12345678-1234-1234-1234-123456789abc", "uuid-1"),
    ("token=abc https://joe:pw@x.lan/", "token=secret-2 https://secret-1@host-1/"),
    # The texts below are lines in which the kernel names a process. The lines are about Xids,
    # lockups and other events.
    ("NVRM: Xid (PCI:0000:03:00): 31, pid=4711, name=secret job, Ch 00000010", "NVRM: Xid (PCI:0000:03:00): 31, pid=4711, name=job-1, Ch 00000010"),
    ("NVRM: Xid (PCI:0000:03:00): 31, pid='<unknown>', name=<unknown>, Ch", "NVRM: Xid (PCI:0000:03:00): 31, pid='<unknown>', name=<unknown>, Ch"),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [secretjob:4711]", "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [job-1:4711]"),
    ("INFO: task my job:4711 blocked for more than 120 seconds.", "INFO: task job-1:4711 blocked for more than 120 seconds."),
    ("task:secretjob       state:D stack:0", "task:job-1       state:D stack:0"),
    ("CPU: 3 PID: 4711 Comm: my job Tainted: P\nCPU: 3 PID: 1 Comm: my job Kdump: loaded\nCPU: 0 Comm: modprobe Not tainted", "CPU: 3 PID: 4711 Comm: job-1 Tainted: P\nCPU: 3 PID: 1 Comm: job-1 Kdump: loaded\nCPU: 0 Comm: modprobe Not tainted"),
    ("Read of size 8 at addr ffff88810a2b3c40 by task secretjob/4711", "Read of size 8 at addr ffff88810a2b3c40 by task job-1/4711"),
    ("BUG: scheduling while atomic: secretjob/4711/0x00000002", "BUG: scheduling while atomic: job-1/4711/0x00000002"),
    ("BUG: Bad page state in process secretjob  pfn:1", "BUG: Bad page state in process job-1  pfn:1"),
    ("[ 12.5] secretjob[4711]: segfault at 0\ntraps: secretjob[7] general protection", "[ 12.5] job-1[4711]: segfault at 0\ntraps: job-1[7] general protection"),
    ("Out of memory: Killed process 4711 (secretjob) total-vm:1kB", "Out of memory: Killed process 4711 (job-1) total-vm:1kB"),
    ("[ 12.5] my job[4711]: segfault at 0 ip 0 sp 0 error 4 in my_long_job_name[400000+1000]", "[ 12.5] job-1[4711]: segfault at 0 ip 0 sp 0 error 4 in job-2[400000+1000]"),
    ("kernel: traps: my job[7] trap invalid opcode ip:1 sp:2 error:0 in libc.so.6[7f00+1000]", "kernel: traps: job-1[7] trap invalid opcode ip:1 sp:2 error:0 in libc.so.6[7f00+1000]"),
    ("[ 12.5] my job invoked oom-killer: gfp_mask=0x0", "[ 12.5] job-1 invoked oom-killer: gfp_mask=0x0"),
    ("oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/slurm/uid_1234/job_77,task=my job,pid=4711,uid=1234", "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=job-2,task=job-1,pid=4711,uid=1234"),
    ("[ 12.5] [   4711]  1234  4711    12345     6789   110592        0             0 my job", "[ 12.5] [   4711]  1234  4711    12345     6789   110592        0             0 job-1"),
    ("node guid 0x2c90300a1b2c3, port_guid=2c90300a1b2c4", "node guid 0xaddress-1, port_guid=address-2"),
    ("64:ff9b::10.1.2.3 and ::ffff:10.1.2.3", "address-1 and address-2"),
    ("version:        5.8.2.1", "version:        5.8.2.1"),
    ("pgd=0800000012345003 pte=0068000012345703 idle=1c4/1/0x4000000000000002", "pgd=0800000012345003 pte=0068000012345703 idle=1c4/1/0x4000000000000002"),
    ("[10de:2330] [0000:03:00.0] mlx5_core 0000:04:00.0: x", "[10de:2330] [0000:03:00.0] mlx5_core 0000:04:00.0: x"),
]  # fmt: skip

# Values in the report of a crash that look like GUIDs but are none. They must stay.
KERNEL_VALUES = (
    "RAX: 1234567890abcdef RBX: dead000000000122 R08: 8b5f3a2c19d7e640 CR2: 00007f12a4b3c000",
    "FS:  0000000000000000(0000) GS:ffff88903f8c0000(0000) knlGS:0000000000000000",
    "x29: ffff80008b5f3a20 x28: 9b5f3a2c19d7e640 x3 : 8b5f3a2c19d7e640",
    "at 0xdead000000000122, 0xffff88810a2b3c40, 0xffffffffc0a81234, 0x00007f12a4b3c000",
    "6b6b6b6b6b6b6b6b 0x6b6b6b6b6b6b6b6b fffffbfff1234567",
    "BUG: unable to handle page fault for address: ffffc90012345678",
)


@pytest.mark.parametrize(("text", "expected"), REDACTED, ids=[text[:40] for text, _ in REDACTED])
def test_redacted(tmp_path: Path, text: str, expected: str) -> None:
    redactor = redactor_of(tmp_path)
    assert redactor.text(text) == expected
    # If the same text or the redacted text is redacted again, the numbers must be the same.
    assert redactor.text(text) == expected and redactor.text(expected) == expected


@pytest.mark.parametrize("text", KERNEL_VALUES)
def test_values_of_the_kernel_stay(tmp_path: Path, text: str) -> None:
    assert redactor_of(tmp_path).text(text) == text


def test_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three kinds of users count as people: users with a number for people, the user who runs nvpm,
    and users with a directory in /home."""
    numbers = {"system": 999, "first": 1000, "last": 60000, "nobody": 65534, "later": 70000}
    users = [pwd.struct_passwd((name, "x", uid, 0, "", "/", "/")) for name, uid in numbers.items()]
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    for variable in "SUDO_USER", "LOGNAME", "USER":
        monkeypatch.setenv(variable, variable.lower())
    # The process that asks is a copy of this one.
    reader.stop()
    found = redactor_of(tmp_path).users
    reader.stop()
    assert found == {
        *("first", "last", "later", "sudo_user", "logname"),
        *("jdoe", "jdoe2", "anna.b"),
    }


def test_names_in_any_order(tmp_path: Path) -> None:
    """If a name begins with another name, the whole name is recognized. The order of the names
    makes no difference."""
    for names in ("node", "node-1", "node-12"), ("node-12", "node-1", "node"):
        redactor = redactor_of(tmp_path)
        redactor.hosts = set(names) | {"web"}
        assert redactor.text("node-12 node-1 node web-node-1 node-13") == (
            "host-1 host-2 host-3 web-host-2 host-3-13"
        )


# ---- the kernel's log ----------------------------------------------------------------


@pytest.mark.parametrize("name", CRASHES)
def test_whole_crash(name: str, tmp_path: Path) -> None:
    """A log has a crash and other lines. Each line of the crash is kept, with its addresses, but
    without the name of the job."""
    lines = CRASHES[name].strip("\n").split("\n")
    ended = "end trace" in lines[-1]
    after = QUIET if ended else QUIET * kernel_log.CRASH_LINES
    found = kernel_log.wanted([*QUIET, *lines, *after])
    assert found[: len(lines)] == lines
    assert len(found) == (len(lines) if ended else max(kernel_log.CRASH_LINES, len(lines)))
    text = "\n".join(lines)
    redacted = redactor_of(tmp_path).text(text)
    assert "secretjob" in text and "secretjob" not in redacted
    hexadecimal = re.compile(r"\b(?:0x)?[0-9a-f]{16}\b")
    assert hexadecimal.findall(redacted) == hexadecimal.findall(text)
    assert re.sub(r"job-\d+", "secretjob", redacted) == text


def test_lines_of_the_log() -> None:
    lines = [
        "[1] Kernel command line: nvidia ks=x",
        "[2] NVRM: loading",
        "[3] usb 1-1: new",
        "[4] mlx5_core 0000:04:00.0: firmware",
        "[5] DMAR: fault",
    ]
    assert kernel_log.wanted(lines) == [lines[1], lines[3], lines[4]]
    # The fields of the audit's records have names of processes, and their arguments.
    audit = '[6] audit: type=1309 audit(1.1:2): argc=2 a0="nvidia-x" a1="--token" a2="hunter2"'
    assert kernel_log.wanted([audit]) == ["[6] audit: type=1309 (left out)"]
    # The command line is left out even inside a crash.
    assert kernel_log.wanted(["WARNING: x", lines[0], lines[2]]) == ["WARNING: x", lines[2]]


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "a-", "a_", "a.", "1.", "a:", "stuck for ", "://", "sn=a", "=/a", "error ab in "),
        *("in a", "nfs server ", "comm=", "a (12)", "12(", "`a", "ll header: aa ", "eyJ-", "br-1"),
        *("a:/", "//a", "SN A1", "pid=1, name=", 'a"[1]', "-----BEGIN ", "subsystem "),
    ],
)
def test_long_line(tmp_path: Path, piece: str) -> None:
    """The time for a line grows in proportion to the line's length: a line that is eight times as
    long takes no more than 24 times as long. If the time grew with the square, it would take 64
    times as long. The shortest of three times counts, because other programs run, too."""
    redactor = redactor_of(tmp_path)

    def seconds(count: int) -> float:
        began = time.process_time()
        redactor.text(piece * count)
        return time.process_time() - began

    short = min(seconds(3000) for _ in range(3))
    assert min(seconds(24_000) for _ in range(3)) <= 24 * short + 0.1


def test_long_log() -> None:
    """If a log is long, its beginning, which has the first crash, and its end are kept."""
    lines = [f"NVRM: {number}" for number in range(5000)]
    found = kernel_log.shortened(lines)
    assert found[:500] == lines[:500] and found[-1500:] == lines[-1500:]
    assert found[500] == "(3000 lines are left out here)" and len(found) == 2001
    assert kernel_log.shortened(lines[:2000]) == lines[:2000]


# ---- the whole report ----------------------------------------------------------------


REGIONS = "/proc/driver/nv_peer_mem/regions"
BUSY = {
    "/etc/hosts": HOSTS,
    "/home/alice/x": "",
    "/proc/version": "Linux version 6.1 (jdoe@buildbox) (gcc 12.2.0)",
    "/etc/modprobe.d/site.conf": "# tuned by jdoe@corp, alice: ticket 4\n"
    "options nvidia NVreg_X=1 # alice likes it",
    "/sys/module/nv_peer_mem/statistics/reachable_regions": "1",
    REGIONS: "42 5 5 0x7f0000000000 65536 nv_mem mapped - secretjob\n"
    "43 5 5 0x7f0000000000 65536 nv_mem mapped - python3",
    "/sys/class/infiniband/enxb8cef6123456/parent": "enxb8cef6123456",
}
LOG = "[1] rpcrdma: to nfs01.corp.example.com from c3\n" + CRASHES["warning"]


def report_of(
    tmp_path: Path, host: str, *options: str, log: str = LOG, regions: tuple[str, ...] = ()
) -> dict[str, str]:
    player = Player(tmp_path)
    root = Path(player.environment["NVPM_SYSROOT"])
    machine = Machine(str(root))
    machine.put("/proc/sys/kernel/hostname", host)
    for path, text in BUSY.items():
        machine.put(path, text)
    line = "{} 5 5 0x7f0000000000 65536 nv_mem mapped - {}"
    more = [line.format(number, name) for number, name in enumerate(regions, 50)]
    machine.put(REGIONS, "\n".join([BUSY[REGIONS], *more]))
    (tmp_path / "log").write_text(log)
    dmesg = tmp_path / "bin/journalctl"
    dmesg.write_text(
        '#!/bin/sh\necho "$@" | grep -q -- --no-hostname || exit 1\n'
        f"sed -E 's/^\\[ *[0-9.]+\\] /&kernel: /' {tmp_path}/log\n"
    )
    dmesg.chmod(0o755)
    found = subject.Machine(str(root))
    said, code = called(found, player.environment, "report", "--no-selftest", *options)
    assert code == 0, said
    parts = re.split(r"^==== (\S+) ====\n", said[said.index("==== ") :], flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_nothing_leaks(tmp_path: Path) -> None:
    said = report_of(tmp_path, "n1.corp.example.com")
    text = "\n".join(said.values())
    for secret in (
        *("n1.corp", "nfs01", "example.com", "jdoe", "alice", "buildbox", "secretjob", "ticket"),
        "b8cef6123456",
    ):
        assert secret not in text, secret
    assert not re.search(r"\bn1\b|\bc3\b", text)
    assert json.loads(said["status.json"])["host"] == "host-1"
    regions = json.loads(said["regions.json"])
    assert [one["command"] for one in regions["processes"]] == ["job-1", "python3"]
    assert "options nvidia NVreg_X=1\n" in said["files.txt"]
    assert (
        "process 42               job-1, which has ended, has 1 registration" in said["status.txt"]
    )
    assert "---[ end trace" in said["kernel.log"] and "RIP: 0010:" in said["kernel.log"]
    assert "from host-" in said["kernel.log"] and "Comm: job-1 Tainted" in said["kernel.log"]
    assert re.search(r"^Taken out: \d+ x address, \d+ x host, 1 x job,", said["README.txt"], re.M)
    assert "\nKept: " in said["README.txt"]


@pytest.mark.parametrize(
    "host", ["gpu", "node", "GPU", "state", "link", "distance", "a", "nearest"]
)
def test_host_that_is_called_like_a_word(tmp_path: Path, host: str) -> None:
    """nvpm's own names, keys and identifiers are not redacted, because all machines have the same
    ones."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    named, other = (
        report_of(tmp_path / way, name) for way, name in (("one", host), ("two", "zz9"))
    )
    objects = [json.loads(said["status.json"]) for said in (named, other)]
    assert objects[0]["host"] == objects[1]["host"] == "host-1"
    for key in ("id", "section", "name", "verdict"):
        assert [f[key] for f in objects[0]["facts"]] == [f[key] for f in objects[1]["facts"]]
    assert objects[0]["ways"] == objects[1]["ways"]
    if host not in ("state", "link"):
        assert named["status.txt"] == other["status.txt"]
    headings = [
        [line for line in said["status.txt"].split("\n") if line[:1].isalpha()]
        for said in (named, other)
    ]
    assert headings[0] == headings[1]


def test_as_it_is(tmp_path: Path) -> None:
    said = report_of(tmp_path, "n1.corp.example.com", "--as-it-is")
    assert json.loads(said["status.json"])["host"] == "n1.corp.example.com"
    assert "secretjob" in said["regions.json"] and "(jdoe@buildbox)" in said["files.txt"]
    assert "Taken out: nothing, as asked" in said["README.txt"]


# ---- the kernel's own formats --------------------------------------------------------------------

# Each of these names is tried: a plain name, a name with a sign, a name that begins like a program
# of the system, and a name with the greatest length.
SECRETS = ("hiddenjob", "hidden-job", "python_hidden", "irqhidden", "hiddenhiddenhid")


TABLE = (Path(__file__).parent / "kernel_lines.txt").read_text(encoding="utf-8")


def lines_of(section: str) -> list[str]:
    lines = TABLE.partition(f"[{section}]\n")[2].partition("\n[")[0].strip("\n").split("\n")
    assert len(lines) > 20
    return [line.replace(r"\n", "\n") for line in lines]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> subject.Machine:
    """A machine that the tests do not change."""
    root = tmp_path_factory.mktemp("plain")
    redactor_of(root)
    return subject.Machine(str(root / "machine"))


@pytest.mark.parametrize("line", lines_of("named"))
def test_lines_that_name_somebody(plain: subject.Machine, line: str) -> None:
    for name in SECRETS:
        # The audit subsystem writes some texts in hexadecimal digits.
        secret = name.encode().hex().upper() if "proctitle=" in line else name
        text = line.replace("6D6572676572747261696E", "SECRET").replace("SECRET", secret)
        redacted = Redactor(plain).text(text)
        assert secret not in redacted and "52 54 00" not in redacted, redacted


def test_lines_that_stay(plain: subject.Machine) -> None:
    redactor = Redactor(plain)
    for line in lines_of("kept"):
        assert redactor.text(line) == line


PRIVATE = [
    ("AKIAIOSFODNN7EXAMPLE ghp_16C7e42F292c6912E7710c838347Ae178B4a x", "secret-1 secret-2 x"),
    ("a eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0 b", "a secret-1 b"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nx", "secret-1\nx"),
    ("Cookie: session=ab; id=cd", "Cookie: secret-1"),
    ('"pci=0000:3b:00.0;LicKey=AAAA-1111" pkey=8001 rkey: 0x12', '"pci=0000:3b:00.0;LicKey=secret-1" pkey=8001 rkey: 0x12'),
    ("cable SN MT2201VS01234 vendor, serial MT2235X01234, SN is", "cable SN serial-1 vendor, serial serial-2, SN is"),
    ("nvmet: creating nvm controller 1 for subsystem proj for NQN bobhost.", "nvmet: creating nvm controller 1 for subsystem target-1 for NQN target-2"),
    ("nvme nvme4: creating 64 I/O queues to subsystem proj", "nvme nvme4: creating 64 I/O queues to subsystem target-1"),
    ("rtrs_client L610: <proj>: RDMA failed", "rtrs_client L610: <target-1>: RDMA failed"),
    ('GFS2: fsid=bob:fs: Trying to join cluster "lock_dlm", "bob:fs"', 'GFS2: fsid=target-1: Trying to join cluster "lock_dlm", "target-1"'),
    ("dlm: bobfs: group event done 0", "dlm: target-1: group event done 0"),
    ("Btrfs: device label bobdata devid 1", "Btrfs: device label target-1 devid 1"),
    ("CIFS: mount failed for //filer01/share", "CIFS: mount failed for //host-1"),
    ("expected 4096. filer01:/proj/merger", "expected 4096. host-1"),
    ("br-bobnet: port 1(veth12ab) of p1_bobpod", "container-1: port 1(container-2) of container-3"),
    ("in bob_ext.cpython-311-x86_64-linux-gnu.so[7f0000+1000]", "in job-1[7f0000+1000]"),
    ("allowed 10.7.8.3-10.7.8.9, 10.7.8.3.20049 10.7.8.3.78.81", "allowed address-1, address-2 address-3"),
    ("aabbccddeeff 0xec0d9a030011 7f12a4b3c123 0x380000000000 0x38ffe0000000", "address-1 address-2 7f12a4b3c123 0x380000000000 0x38ffe0000000"),
    ("docker " + "ab12" * 16, "docker container-1"),
    ("/users/bob/x.py /scratch/bob /sys/fs/cgroup/a/b /dev/shm/y /dev/nvidia0", "/path-1 /path-2 /path-3 /path-4 /dev/nvidia0"),
    ("at /build/bob/mm/page_alloc.c:4330 x", "at /path-1/page_alloc.c:4330 x"),
    ("user DOMAIN\\bob, acct=\"eve\", then bob and eve", "user DOMAIN\\user-1, acct=\"user-2\", then user-1 and user-2"),
    (r"\\filer01\projects and filer01", r"\\host-1 and filer01"),
    ("node4.hpc and libcudart12.so", "host-1 and libcudart12.so"),
    ("Board Serial Number            : 1322621087654", "Board Serial Number            : serial-1"),
    ("serial is 1322621087654 serial#A1", "serial is serial-1 serial#serial-2"),
    ('password="two words" x', "password=secret-1 x"),
    ("pass=a1 pwd=b2 psk=c3 nvidia_auth=d4 license=AAAA-BBBB", "pass=secret-1 pwd=secret-2 psk=secret-3 nvidia_auth=secret-4 license=secret-5"),
    ("--password X -u admin:Y Authorization: Bearer Z", "--password secret-2 -u secret-3 Authorization: Bearer secret-1"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), PRIVATE, ids=[text[:40] for text, _ in PRIVATE])
def test_private(plain: subject.Machine, text: str, expected: str) -> None:
    redactor = Redactor(plain)
    assert redactor.text(text) == expected
    assert redactor.text(expected) == expected


def test_processes_of_the_system(tmp_path: Path) -> None:
    """Only whole names of programs of the system stay, not names that begin like one."""
    redactor = redactor_of(tmp_path)
    stay = (
        "bash",
        "python3",
        "python3.11",
        "apt",
        "irq/63-nvidia",
        "kworker/u8:1",
        "(udev-worker)",
    )
    assert [redactor.job(name) for name in stay] == [*stay]
    for name in ("bash2", "python_x", "aptamer", "irqfold", "rpmerger", "ib_merger", "migrationX"):
        assert redactor.job(name).startswith("job-"), name
    assert redactor.job("job-7x") != "job-7x"


def test_a_name_that_one_place_gives_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three names stand where no pattern finds them. nvpm knows the first name from another line of
    the kernel's log, the second name from the list of registrations, and the third name, which has
    a blank, from the fact about a process."""
    log = (
        "[1] nvidia: mergertrain did something\n"
        "[2] WARNING: CPU: 3\n[2] CPU: 3 PID: 4711 Comm: mergertrain Tainted: P\n"
        "[3] nvidia: seen by otherjob, and by my job, and by mergertrains\n"
    )
    monkeypatch.setitem(BUSY, "/etc/modprobe.d/site.conf", "options nvidia NVreg_X=mergertrain")
    said = report_of(tmp_path, "n1", log=log, regions=("otherjob", r"my\040job"))
    text = "\n".join(said.values())
    for name in "mergertrain ", "mergertrain\n", "otherjob", "my job":
        assert name not in text, name
    assert "[1] kernel: nvidia: job-" in said["kernel.log"] and "mergertrains" in said["kernel.log"]


@pytest.mark.parametrize(
    "name",
    [
        *("mlx5_ib", "error", "nvidia", "memory", "it", "4711", "0000:3b:00.0", "3b:00.0"),
        *("535.104.05", "GPU memory", "28.39.1002.5"),
    ],
)
def test_a_process_that_is_called_like_a_word(tmp_path: Path, name: str) -> None:
    """A user who gives a process the name of a common word does not spoil the report."""
    machine = Machine(str(tmp_path / "machine"))
    machine.put("/sys/module/mlx5_ib/version", "1")
    redactor = redactor_of(tmp_path)
    redactor.ordinary.add("mlx5_ib")
    redactor.learn(f"CPU: 3 PID: 4711 Comm: {name} Tainted: P")
    line = f"nvidia mlx5_ib: error {name}: GPU memory"
    assert redactor.text(line) == line


@pytest.mark.parametrize(
    "line",
    [
        "CIFS: VFS: Server does not support mounting with posix SMB3.11 extensions",
        "nfs: the server did not answer, the server is not there, the server could not start",
        "nvidia: a copy of user space, of user memory and of user pages",
    ],
)
def test_sentences_teach_no_words(plain: subject.Machine, line: str) -> None:
    """A verb or a kind of memory is no host and no user."""
    redactor = Redactor(plain)
    assert redactor.text(line) == line
    after = "The driver does not answer: user space memory, pages did not start"
    assert redactor.text(after) == after


def test_running_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of the running processes of people are replaced. A process of a system's user, or
    of the user nobody, keeps its name."""
    owners = {"41": 999, "42": 1000, "43": 60000, "44": 65534}
    names = {"41": "daemonjob", "42": "firstjob", "43": "lastjob", "44": "nobodysjob"}
    monkeypatch.setattr(
        subject.Machine, "owner", lambda _, place: owners.get(place.rpartition("/")[2])
    )
    files = {f"/proc/{number}/comm": name for number, name in names.items()}
    text = redactor_of(tmp_path, **files).text("firstjob daemonjob lastjob nobodysjob")
    assert text == "job-1 daemonjob job-2 nobodysjob"
