# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads files of /proc and /sys in another process, and waits for each file only for a limited
time.

The kernel answers many of these files under a lock of a driver, of the firmware, or of another
process. If the holder of the lock hangs, the process that reads the file waits for ever, and not
even SIGKILL ends it. Users run nvpm in exactly this state. So nvpm leaves such a process behind,
and goes on without the file.

The same process asks the name service for the names of users, because the service may be a server,
such as one of LDAP, and may not answer for minutes."""

import atexit
import contextlib
import errno
import os
import pwd
import re
import select
import signal
import struct
import sys
import time
from typing import Dict, List, NamedTuple, NoReturn, Optional, Tuple, Union

from . import programs

# Seconds for one file, and for all files together. If all seconds are used up, each further file
# still gets LEAST seconds, because most files answer at once.
ONE_FILE, ALL_FILES, LEAST = 3.0, 6.0, 0.25
# Seconds for which nvpm waits for the end of a process that it has killed.
GRACE = 0.1

# The name of the reading process. A later nvpm finds a process that was left behind by this name.
NAME = "nvpm-reader"
# The bit of SIGKILL in the field ShdPnd of /proc/PID/status.
KILLED = 1 << (signal.SIGKILL - 1)

# A request has the greatest number of bytes to read, or -1, and the length of the path after it. An
# answer has the number of the error, or 0, and the length of the contents after it.
REQUEST, ANSWER = struct.Struct("=qI"), struct.Struct("=iQ")

# Requests to the name service, in place of a path: for one user, whose number follows, and for all
# users.
USER, USERS = "user:", "users"
NO_NAMES = (
    "nvpm: the name service, which knows the names of users, does not answer: users are shown by "
    "their numbers.\n"
)

NVIDIA_DRIVER = "NVIDIA driver"
# The address of a PCI device, and the attributes for which the kernel asks or wakes the device.
ADDRESS = r"([0-9a-f]{4,5}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
ASKED = r"(?:config|vpd|(?:current|max)_link_\w+|resource\d_resize)$"
# Files that one lock protects, by the beginning of their paths. If one of these files has not
# answered, the other files of its area are not read. In /sys, a file also has a longer path, which
# has all devices above it.
AREAS = (
    (re.compile("/proc/driver/nvidia/gpus/"), NVIDIA_DRIVER),
    (re.compile("/proc/driver/nvidia/"), "suspend lock of the NVIDIA driver"),
    (re.compile("/proc/driver/nv_peer_mem/"), "nv_peer_mem"),
    (re.compile("/sys/(?:class|devices/.*)/infiniband/([^/]+)/"), "RDMA device {}"),
    (re.compile("/sys/(?:class|devices/.*)/net/([^/]+)/"), "network interface {}"),
    (re.compile("/sys/(?:class|devices/.*)/nvme/([^/]+)/"), "NVMe controller {}"),
    (re.compile(f"/sys/(?:bus/pci/devices|devices/.*)/{ADDRESS}/{ASKED}"), "PCI device {}"),
    (re.compile("/sys/firmware/"), "firmware"),
    (re.compile("/proc/[0-9]+/maps$"), "process that maps memory"),
)


class Silence(NamedTuple):
    """A file that does not answer. `since` is the time at which a process began to wait for it."""

    area: str
    path: str
    since: float

    def value(self) -> str:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"does not answer ({self.path}, since {began})"


class Silent(OSError):
    """A file has not answered in time, or nvpm does not ask it because of an earlier silence."""


def area_of(path: str) -> str:
    """Returns the name of the part of the kernel that answers this file. Returns the path itself
    for a file that shares no lock with others."""
    for pattern, name in AREAS:
        found = pattern.match(path)
        if found:
            return name.format(*found.groups())
    return path


class NoProcess(OSError):
    """No process can be started, because this user has as many processes as allowed, or memory is
    short."""


# Signals that would run nvpm's own handlers in the child.
HELD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Process:
    """The reading process and the pipes to it."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as opened:
            try:
                asked, self.requests = pipe(opened)
                self.answers, said = pipe(opened)
                before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
                try:
                    self.number = os.fork()
                    if not self.number:
                        serve(asked, said)
                finally:
                    signal.pthread_sigmask(signal.SIG_SETMASK, before)
            except OSError as error:
                raise NoProcess(error.errno, error.strerror) from None
            opened.pop_all()
        os.close(asked)
        os.close(said)

    def end(self) -> None:
        """Ends the process, or leaves it behind if it does not end. Without its pipe, a process
        that is not held by the kernel ends by itself also."""
        os.close(self.requests)
        os.close(self.answers)
        programs.kill(self.number, GRACE)


def pipe(opened: contextlib.ExitStack) -> Tuple[int, int]:
    """Returns the ends of a new pipe. OPENED closes them if no process can be started."""
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends


def serve(asked: int, said: int) -> NoReturn:
    """Answers requests until the pipe is closed. Runs in the child, which must not return into
    nvpm."""
    try:
        with contextlib.suppress(OSError):  # a container may lack /proc
            prepare(asked, said)
        while True:
            size, length = REQUEST.unpack(exactly(asked, REQUEST.size))
            number, data = contents(exactly(asked, length), size)
            write(said, ANSWER.pack(number, len(data)) + data)
    finally:
        os._exit(0)


def prepare(asked: int, said: int) -> None:
    """Closes all files but the two pipes, because a program that reads nvpm's output waits until
    each writer has closed it. Names the process."""
    os.setsid()
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(silence, descriptor)
    # /proc/self/fd lists the descriptors that are open. Closing each possible number would take
    # long, because the limit can be a milliard.
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in (asked, said):
            with contextlib.suppress(OSError):
                os.close(int(name))
    with open("/proc/self/comm", "w") as comm:
        comm.write(NAME)


def contents(path: bytes, size: int) -> Tuple[int, bytes]:
    """Returns the number of the error, or 0, and the bytes of a file or of users."""
    try:
        if path.startswith((USER.encode(), USERS.encode())):
            return 0, users(path.decode())
        return 0, directly(path, size)
    except OSError as error:
        return error.errno or errno.EIO, b""


def users(request: str) -> bytes:
    """Returns a line NAME:x:NUMBER for each user, as in /etc/passwd. A number without a user has no
    line."""
    try:
        found = pwd.getpwall() if request == USERS else [pwd.getpwuid(int(request[len(USER) :]))]
    except KeyError:
        found = []
    return os.fsencode("".join(f"{one.pw_name}:x:{one.pw_uid}\n" for one in found))


def can_be_read(descriptor: int, deadline: float) -> bool:
    """Returns whether a pipe has something to read, or has ended, before the deadline."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def exactly(descriptor: int, length: int, deadline: Optional[float] = None) -> bytes:
    """Returns LENGTH bytes from a pipe. Raises EOFError at the end of the pipe, and Silent after
    the deadline."""
    said = bytearray()
    while len(said) < length:
        if deadline is not None and not can_be_read(descriptor, deadline):
            raise Silent(errno.ETIME, "it does not answer")
        more = os.read(descriptor, min(length - len(said), 1 << 16))
        if not more:
            raise EOFError
        said += more
    return bytes(said)


def write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


# The process that reads, if there is one. The variable is a list, because tests and `nvpm run` end
# the process.
RUNNING: List[Process] = []


# The reading process must not outlive nvpm, because the process keeps its root directory from being
# unmounted.
@atexit.register
def stop() -> None:
    """Ends the reading process. A later request starts another process."""
    while RUNNING:
        RUNNING.pop().end()


def asked(path: str, size: int, limit: float) -> bytes:
    """Returns the bytes of a file from the reading process. Raises Silent if the process does not
    answer within LIMIT seconds, and OSError if the file cannot be read."""
    if not RUNNING:
        RUNNING.append(Process())
    process, name = RUNNING[0], os.fsencode(path)
    # If the process is gone, SIGPIPE would end nvpm without a message.
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        write(process.requests, REQUEST.pack(size, len(name)) + name)
        # The limit is for each part of the answer, because a large file may take longer.
        head = exactly(process.answers, ANSWER.size, time.monotonic() + limit)
        number, length = ANSWER.unpack(head)
        data = exactly(process.answers, length, time.monotonic() + limit)
    except BaseException:
        # The rest of this answer would be taken for the next answer.
        stop()
        raise
    finally:
        signal.signal(signal.SIGPIPE, before)
    if number:
        raise OSError(number, os.strerror(number))
    return data


class Reader:
    """Reads files, and remembers which parts of the kernel do not answer."""

    def __init__(self) -> None:
        self.left = ALL_FILES
        self.silences: Dict[str, Silence] = {}
        self.looked = self.alone = self.nameless = False

    def read(self, root: str, path: str, size: int) -> bytes:
        """Returns the bytes of the file PATH below ROOT. Raises Silent if the file, or another file
        of its area, does not answer, and OSError if it cannot be read."""
        area = area_of(path)
        if area != path and not self.looked:
            self.looked = True
            self.silences.update(left_behind(root))
        if area in self.silences:
            raise Silent(errno.ETIME, f"not read: {area} does not answer")
        began, since = time.monotonic(), time.time()
        try:
            return self.answer(root + path, size)
        except Silent:
            self.silences[area] = Silence(area, path, since)
            raise
        finally:
            self.left -= time.monotonic() - began

    def users(self, request: str) -> bytes:
        """Returns the lines of users(). Raises OSError if the name service does not answer. It is
        not asked again then."""
        began = time.monotonic()
        try:
            if not self.nameless:
                return self.answer(request, -1)
        except Silent:
            self.nameless = True
            sys.stderr.write(NO_NAMES)
        finally:
            self.left -= time.monotonic() - began
        raise Silent(errno.ETIME, "the name service does not answer")

    def answer(self, path: str, size: int) -> bytes:
        """Returns the bytes of a file. If the reading process was killed by somebody, asks another
        process. If no process can be started, reads the file without a limit, and asks the name
        service for nothing."""
        for _ in range(0 if self.alone else 2):
            try:
                return asked(path, size, max(LEAST, min(ONE_FILE, self.left)))
            except NoProcess:
                self.alone = True
                break
            except (BrokenPipeError, EOFError):
                continue
        if path.startswith((USER, USERS)):
            raise Silent(errno.EAGAIN, "no process can ask the name service")
        return directly(path, size)


def directly(path: Union[str, bytes], size: int) -> bytes:
    """Returns the bytes of a file, however long that takes."""
    with open(path, "rb") as file:
        return file.read(size)


# ---- processes that an earlier nvpm has left behind ----


def left_behind(root: str = "") -> Dict[str, Silence]:
    """Returns the files for which an earlier nvpm of the same user still waits. That nvpm has
    killed its reading process, and the process has not ended. So a monitor that runs each minute
    leaves only one process behind, and knows since when the file does not answer."""
    found: Dict[str, Silence] = {}
    with contextlib.suppress(OSError):
        for number in filter(str.isdigit, os.listdir(f"{root}/proc")):
            with contextlib.suppress(OSError, LookupError, ValueError):
                place = f"{root}/proc/{number}"
                if directly(f"{place}/comm", 64).strip() == NAME.encode() and is_held(place):
                    one = Silence("", open_file(place), started(root, place))
                    one = one._replace(area=area_of(one.path))
                    known = found.setdefault(one.area, one)
                    found[one.area] = min(known, one, key=lambda silence: silence.since)
    return found


def is_held(place: str) -> bool:
    """Returns whether a process belongs to this user, and was killed but has not ended. Another
    user may give a process any name, and must not make nvpm believe that a driver hangs. A program
    that changes its user, such as su, also belongs to the user who has started it, so the real, the
    effective, the saved and the file system's user must all be this user."""
    status = directly(f"{place}/status", 1 << 16).decode("ascii", "replace")
    pending = re.search(r"^ShdPnd:\s*([0-9a-f]+)$", status, re.MULTILINE)
    killed = int(pending[1], 16) & KILLED if pending else 0
    owners = re.search(r"^Uid:((?:\s+\d+){4})$", status, re.MULTILINE)
    return bool(killed) and set(owners[1].split() if owners else []) == {str(os.geteuid())}


def open_file(place: str) -> str:
    """Returns the file that a reading process waits for. The process has no other file of /proc or
    /sys open. Raises LookupError if the process has no such file open."""
    names = sorted(os.listdir(f"{place}/fd"), key=int)
    links = (os.readlink(f"{place}/fd/{name}") for name in names)
    files = [link for link in links if link.startswith(("/proc/", "/sys/"))]
    return files[0]


def started(root: str, place: str) -> float:
    """Returns when a process was started, in seconds since 1970."""
    fields = directly(f"{place}/stat", 4096).rpartition(b") ")[2].split()
    boot = re.search(rb"^btime (\d+)$", directly(f"{root}/proc/stat", 1 << 22), re.MULTILINE)
    ticks = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return (int(boot[1]) if boot else 0) + ticks
