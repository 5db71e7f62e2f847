# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that a program that works without libnvpm_preload.so also works with the library. Most
tests run a program without the library and with it, and compare the results."""

import errno
import os
import re
import struct
import subprocess

import pytest
from conftest import HERE, command, environment
from test_preload import (
    GPU,
    LOCALLY,
    NO_MEMORY,
    failed,
    on_system,
    reg,
    registered,
)

HOST = "reg host 4096 1"


def unnumbered(lines):
    """Returns the lines without the addresses of the host's memory, which differ each time."""
    return [re.sub(r"addr=0x(?!30[23]0{6})\w+", "addr=host", line) for line in lines]


def both(bed, *words, **variables):
    """Runs a program without the library and with it. Returns the run with the library."""
    without = bed.run(*words, **{**variables, "LD_PRELOAD": ""})
    ran = bed.run(*words, **variables)
    assert unnumbered(ran.printed) == unnumbered(without.printed)
    assert ran.said == without.said
    return ran


def translated(bed, *words, **variables):
    """Runs a program without the library and with it. Checks that the last registration, of GPU
    memory, fails without the library and succeeds with it. Returns the run with the library."""
    without = bed.run(*words, **{**variables, "LD_PRELOAD": ""})
    assert without.printed[-1:] == failed(14)
    ran = bed.run(*words, **variables)
    assert ran.printed[-1:] == registered(GPU, 4096)
    return ran


# ---- other commands and descriptors ---------------------------------------------


def test_library_changes_no_other_ioctl(bed):
    """The program asks how many bytes wait in a pipe, and then with a wrong address, so that the
    error is the same as for GPU memory."""
    ran = both(bed, "waiting")
    assert ran.printed == ["4 bytes", *failed(errno.EFAULT)]


def test_commands_at_wrong_addresses(bed):
    """The kernel answers `Bad address` to such commands, too. The library must not read them."""
    ran = both(bed, "cuda context broken", EARLY=6)
    assert ran.printed == 6 * failed(errno.EFAULT)


def test_request_with_a_sign(bed):
    """A program or a language may have the request as an int, which becomes a negative number of 64
    bits. The kernel takes it for the same request."""
    ran = bed.run("cuda context signed")
    assert ran.printed == ["errno=0", "lkey=78"]
    assert [call for call in ran.calls if "reg_" in call] == ["reg_mr", "reg_dmabuf_mr"]


def test_request_in_memory_that_nobody_may_write(bed):
    """The kernel stores its answer somewhere else, so the request may be constant."""
    ran = bed.run("cuda context read-only")
    assert ran.printed == ["errno=0", "lkey=78"]
    assert [call for call in ran.calls if "reg_" in call] == ["reg_mr", "reg_dmabuf_mr"]


@pytest.mark.parametrize("address, peer", [("host", 0), (f"{GPU:#x}", 1), (f"{GPU:#x}", 0)])
def test_error_number_after_a_success(bed, address, peer):
    """A program may look at the error number after several calls. The number must not be that of
    the refused registration."""
    words = f"cuda context reg {address} 4096 1"
    ran = bed.run(words, client="linked", PEER_MEMORY=peer, PRINTS_ERRNO=1)
    assert ran.printed == ["registered, errno=7"]


def test_no_libibverbs_is_kept(bed):
    """The library does not keep a libibverbs mapped that the program closes."""
    for preload in ("", bed.library):
        ran = bed.run("verbs", HOST, "close libraries", LD_PRELOAD=preload)
        assert not [line for line in ran.printed if "libibverbs" in line]


# ---- other preloaded libraries ---------------------------------------------------


@pytest.mark.parametrize("audit", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_another_preloaded_library(bed, first, audit):
    """A shim wraps ioctl() with RTLD_NEXT. It must be called once for each command, whether the
    shim or the library is preloaded first."""
    order = [bed.where / "shim.so", bed.library]
    preload = ":".join(map(str, order if first else order[::-1]))
    words = {"client": "linked", "LD_PRELOAD": preload}
    if audit:
        words["LD_AUDIT"] = bed.library
    ran = bed.run(HOST, reg(NO_MEMORY), **words)
    assert [words[0] for words in ran.of("shim")] == ["registered", "failed"]
    assert ran.printed[1:] == failed(14)
    ran = bed.run("cuda context", reg(GPU), **words)
    assert ran.printed == registered(GPU, 4096)
    # If the library comes first, it retries with a dma-buf, and the shim sees both commands.
    assert ran.of("shim") == ([["registered"]] if first else [["failed"], ["registered"]])


def test_preloaded_library_after_others(bed):
    """The shim need not come directly after this library."""
    others = [str(bed.where / name) for name in ("walk.so", "system.so", "shim.so")]
    preload = ":".join([others[0], str(bed.library), *others[1:]])
    ran = bed.run("cuda context", reg(GPU), client="linked", LD_PRELOAD=preload)
    assert ran.printed == registered(GPU, 4096)
    assert ran.of("shim") == [["failed"], ["registered"]]


def test_refusal_is_said_once(bed):
    words = {"client": "linked", "NVPM_PRELOAD_LOG": 1}
    ran = bed.run("cuda context", reg(GPU), DMABUF_ERRNO=95, **words)
    assert ran.printed == failed(95)
    assert len(ran.said) == 1
    assert ran.calls.count("reg_dmabuf_mr") == 1


# ---- the dynamic linker -----------------------------------------------------------


@pytest.mark.parametrize("client", ["client", "linked"])
def test_constructor_that_waits_for_a_registration(bed, client):
    """The thread that opens a plug-in holds the lock of the dynamic linker. Opening the plug-in may
    also load libibverbs."""
    both(bed, f"plugin {bed.where}/new/plugin.so", client=client)


def test_libcuda_that_is_being_loaded(bed):
    """A library is in the list of objects before the dynamic linker has relocated it. The library
    calls no function of a libcuda before CUDA is initialized."""
    ran = both(bed, "loading", reg(NO_MEMORY), client="linked")
    assert not ran.cuda


@pytest.mark.parametrize("size", [256 << 10, 1 << 20])
def test_small_stack_beside_the_auditor(bed, size):
    """glibc takes the room for thread-local variables, for which `nvpm run --audit` asks, out of
    the stack of each thread. Java's threads have stacks of 1 MiB and less, and one of Node's has
    32 KiB."""
    variables = environment(str(bed.library), True)
    audit = {name: variables[name] for name in ("LD_AUDIT", "GLIBC_TUNABLES")}
    ran = bed.run(f"cuda verbs stack {size}", reg(GPU), **audit)
    assert ran.printed == registered(GPU, 4096)
    assert bed.run("stack 32768", **audit).printed == []


def test_list_of_objects_that_the_program_replaces(bed):
    """Some programs, such as Seastar, replace dl_iterate_phdr(), so that exceptions take no
    lock."""
    both(bed, "verbs", HOST, reg(NO_MEMORY), client="own_list")
    translated(bed, "verbs", "cuda context", reg(GPU), client="own_list")


def imported(library):
    """Returns the names that a library needs from other libraries, without their versions."""
    table = command("readelf", "--dyn-syms", "-W", library).splitlines()
    rows = [row.split() for row in table]
    return {row[7].partition("@")[0] for row in rows if row[6:7] == ["UND"] and row[7:]}


def test_no_lock_of_the_dynamic_linker(bed):
    """All functions of dlfcn.h take the lock of dlopen(). The library may therefore use only
    dlsym(), and only while it is loaded. dl_iterate_phdr() takes another lock."""
    names = {name for name in imported(bed.library) if name.startswith(("dl", "_dl"))}
    assert names == {"dl_iterate_phdr", "dlsym"}


def test_exported_names(bed):
    table = command("readelf", "--dyn-syms", "-W", bed.library).splitlines()
    rows = [row.split() for row in table]
    exported = sorted(row[7] for row in rows if row[6:] and row[4] != "LOCAL" and row[6].isdigit())
    assert exported == ["ioctl", "la_objopen", "la_symbind64", "la_version"]


def test_table_of_symbols_that_is_empty(bed):
    """The table has no symbol. The word after the table looks like the hash of a name, and the
    memory after the symbols looks like a function whose name is outside of the library."""
    library = bed.where / "empty.so"
    compiler = os.environ.get("CC", "cc")
    command(compiler, "-shared", "-nostdlib", "-o", library, "-x", "c", os.devnull)
    content = bytearray(library.read_bytes())
    sections = command("readelf", "-SW", library).replace("[ ", "[").splitlines()
    rows = [line.split() for line in sections if " 0000" in line]
    offsets = {row[1]: int(row[4], 16) for row in rows if row[1] in (".gnu.hash", ".dynsym")}
    table = offsets[".gnu.hash"]
    # The table has one bucket, the number of the first symbol, one word of 8 bytes for the filter,
    # and the shift of the filter. Everything else in the table is empty.
    assert struct.unpack_from("<7I", content, table) == (1, 1, 1, 0, 0, 0, 0)
    struct.pack_into("<I", content, table + 4, 0)
    hash_of_name = 5381
    for byte in b"__register_atfork":
        hash_of_name = (hash_of_name * 33 + byte) & 0xFFFFFFFF
    struct.pack_into("<I", content, table + 4 * 7, hash_of_name | 1)
    function = (0xFFFFFFFF, 0x12, 0, 1)
    struct.pack_into("<IBBH", content, offsets[".dynsym"], *function)
    library.write_bytes(content)
    # The library looks this name up in the objects that come after it.
    ran = bed.run("verbs", HOST, LD_PRELOAD=f"{bed.library}:{library}")
    assert len(ran.printed) == 1


def test_libcuda_that_is_not_initialized(bed):
    """A program that only looks for GPUs may close libcuda at any time, so the library calls none
    of libcuda's functions. A monitor has other files of the driver open, and any program may have a
    file whose name looks like that of a device."""
    words = ("libcuda", reg(NO_MEMORY), "close_cuda", reg(NO_MEMORY), HOST)
    assert not both(bed, *words, client="linked").cuda
    devices = ("/dev/shm/nvidiactl-double", "/dev/shm/nvidia-cap1-double")
    for path in (*devices, f"{bed.where}/nvidia-smi.log"):
        with open(path, "w") as file:
            ran = bed.run("libcuda", reg(NO_MEMORY), client="linked", stderr=file)
        os.unlink(path)
        assert not ran.cuda
    ran = bed.run("cuda", reg(NO_MEMORY), client="linked")
    assert ran.cuda == ["cuPointerGetAttribute"]


@pytest.mark.parametrize("thread", ["cuda leader_ends", "thread own_files cuda"])
def test_thread_whose_files_are_not_those_of_the_first(bed, thread):
    """The first thread has ended, and no longer has any files; or the thread that uses CUDA has a
    table of descriptors of its own."""
    ran = bed.run(thread, reg(GPU), client="linked")
    assert ran.printed == registered(GPU, 4096)


def test_many_files_before_that_of_cuda(bed):
    """The list of open files does not fit into one buffer."""
    ran = bed.run("files 500 cuda context", reg(GPU), client="linked")
    assert ran.printed == registered(GPU, 4096)


def test_many_sockets(bed):
    """A server has thousands of sockets. Each failed registration looks for the file of CUDA, and
    reads no link of a socket."""
    links = {}
    for kind in ("files", "sockets"):
        words = (f"{kind} 500", "libcuda", reg(NO_MEMORY), "close_cuda")
        ran = bed.run(*words, client="linked", **on_system(bed, LINKS=1))
        links[kind] = ran.calls.count("link")
    assert links["files"] >= 500
    assert 0 < links["sockets"] < 50
    ran = bed.run("sockets 500 cuda context sockets 300", reg(GPU), client="linked")
    assert ran.printed == registered(GPU, 4096)


@pytest.mark.parametrize("address", ["host", f"{NO_MEMORY:#x}"])
def test_libcuda_that_is_opened_and_closed(bed, address):
    """A thread opens and closes libcuda all the time, as programs do that look for GPUs. Another
    thread registers memory meanwhile."""
    both(bed, f"closing 3000 reg {address} 4096 1", client="linked", EVENTS="")


def test_program_of_musl(bed):
    """Programs in a job inherit the variables, and some are linked with musl, which ends a program
    if a preloaded library lacks a symbol. Such a program must run as without the library."""
    program = bed.where / "musl"
    command("musl-gcc", "-Wall", "-Werror", "-o", program, HERE / "clients/musl.c")
    without = command(program, stdin=subprocess.DEVNULL)
    library = {"LD_PRELOAD": str(bed.library), "LD_AUDIT": str(bed.library)}
    assert command(program, stdin=subprocess.DEVNULL, env=library) == without
    assert without.splitlines() == [f"{errno.ENOTTY}", "opened and closed", "child"]


# ---- threads and processes -----------------------------------------------------------


@pytest.mark.parametrize("addr", ["host", f"{NO_MEMORY:#x}"])
def test_locks_that_a_child_inherits(bed, addr):
    """If another thread holds a lock at the time of a fork, the lock stays locked for ever in the
    child. The child must not wait for such a lock."""
    both(bed, f"forks 200 reg {addr} 4096 1", client="linked", EVENTS="")


def test_fork_during_a_long_walk(bed):
    """A fork waits for a walk that takes half a second, for example because the machine is busy."""
    words = {"LD_PRELOAD": f"{bed.library}:{bed.where}/walk.so", "HOLD": 500, "EVENTS": ""}
    ran = bed.run(f"forks 1 {reg(NO_MEMORY)}", client="linked", **words)
    assert ran.printed == ["hung=0"]


def test_thread_that_stays_in_its_walk(bed):
    """A thread does not leave its walk before another thread walks. The other thread waits two
    seconds, and then walks also. It must not wait longer if the clock is set back meanwhile."""
    preload = f"{bed.where}/system.so:{bed.library}:{bed.where}/walk.so"
    words = {"client": "linked", "LD_PRELOAD": preload, "CLOCK_AHEAD": 3600, "WAIT": 10}
    ran = bed.run("threads 2", reg(NO_MEMORY), **words)
    assert ran.printed == ["registered=0"]
    assert ran.of("waited") == [["for", "another"]]


def test_success_takes_no_lock(bed):
    """A walk through the list of objects takes a lock. Only registrations that fail may walk."""
    words = {"LD_PRELOAD": f"{bed.library}:{bed.where}/walk.so", "client": "linked"}
    none = bed.run("number", **words).calls.count("walk")
    often = bed.run(HOST, HOST, HOST, **words).calls.count("walk")
    assert none == often > 0
    assert bed.run(reg(NO_MEMORY), **words).calls.count("walk") > none


def test_library_that_is_closed(bed):
    """A fork calls functions of the library, so they must stay mapped even if the program has
    opened and closed the library like a plug-in."""
    ran = bed.run(f"open {bed.library} close fork number", LD_PRELOAD="")
    assert len(ran.printed) == 1


def test_child_of_fork(bed):
    ran = both(bed, LOCALLY, HOST, "fork", HOST, reg(NO_MEMORY))
    assert len(ran.printed) == 3


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("before", ["verbs", f"{LOCALLY} {reg(GPU)}", f"{LOCALLY} {reg(GPU)} fork"])
def test_child_while_the_list_is_locked(bed, before, log):
    """Another part of the program walks through the list of objects when the process forks, so the
    list stays locked in the child. The child must not wait for it, because CUDA does not work
    there, neither in a child of this child."""
    ran = bed.run(before, "locked", reg(NO_MEMORY), reg(GPU), HOST, NVPM_PRELOAD_LOG=log)
    assert ran.printed[-4:-2] == 2 * failed(errno.EFAULT)
    assert ran.printed[-2].startswith("addr=")
    assert ran.printed[-1] == "hung=0"


def test_child_that_initializes_cuda(bed):
    ran = bed.run("verbs", reg(NO_MEMORY), "fork cuda context", reg(GPU))
    assert ran.printed == failed(errno.EFAULT) + registered(GPU, 4096)


@pytest.mark.parametrize("addr", [GPU, NO_MEMORY])
def test_thread_that_cannot_be_cancelled(bed, addr):
    """The library makes the thread cancellable again only if it was cancellable before."""
    ran = bed.run("cuda verbs kept", reg(addr))
    assert ran.printed[1:] == ["not cancellable"]


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("addr, peer", [(GPU, 0), (GPU, 1), (NO_MEMORY, 0)])
def test_pending_cancellation(bed, addr, peer, log):
    """ibv_reg_mr() is not a cancellation point. A translation must not be a cancellation point
    either, although it calls close()."""
    words = {"events": False, "PEER_MEMORY": peer, "NVPM_PRELOAD_LOG": log}
    ran = bed.run("cuda verbs cancelled", reg(addr), **words)
    assert ran.printed[0] == "returned, then cancelled"
    assert ran.printed[1:] == (failed(14) if addr == NO_MEMORY else registered(GPU, 4096))


# ---- the log ---------------------------------------------------------------------------


@pytest.mark.parametrize("is_file", [True, False])
def test_stderr_that_is_another_file(bed, is_file):
    """After the program has closed stderr, its descriptor may belong to a file with data. The
    library must not write into this file. Stderr was a pipe, or a file of the same file system."""
    data, log = bed.where / "data", bed.where / "log"
    words = (reg(NO_MEMORY), f"stderr {data}", reg(NO_MEMORY), reg(NO_MEMORY))
    with open(log, "w") as file:
        kind = {"stderr": file} if is_file else {}
        ran = bed.run("verbs", *words, NVPM_PRELOAD_LOG=1, **kind)
    assert len(ran.said or log.read_text().splitlines()) == 1
    assert data.read_text() == ""


def test_log_without_a_descriptor(bed):
    """The log keeps no descriptor open."""
    quiet = bed.run("verbs", "times 1", reg(NO_MEMORY), "number")
    loud = bed.run("verbs", "times 1", reg(NO_MEMORY), "number", NVPM_PRELOAD_LOG=1)
    assert loud.printed == quiet.printed
