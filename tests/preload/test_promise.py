# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests that a program that works without libnvpm_preload.so also works with the library. Most
tests run a program without the library and with it, and compare the results."""

import errno
import os
import re
import shutil
import struct

import pytest
from conftest import BUNDLED, HERE, OTHER, command
from test_preload import (
    GPU,
    LOCAL,
    LOCALLY,
    NO_MEMORY,
    RELAXED_ORDERING,
    WRITE,
    failed,
    reg,
    registered,
)

HOST = "reg host 4096 1"
SYSTEM = "libibverbs.so.1"


def unnumbered(lines):
    """Returns the lines without the addresses of the host's memory, which differ each time."""
    return [re.sub(r"addr=0x(?!7e[01]0{9})\w+", "addr=host", line) for line in lines]


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


def copies(ran):
    return {words[0] for words in ran.of("in")}


# ---- several copies of libibverbs ---------------------------------------------


@pytest.mark.parametrize("pd", ["", "pd"])
def test_bundled_copy(bed, pd):
    """A Python wheel contains a copy with another name. The program has no other copy. Even if the
    protection domain does not show the copy, the library must find it."""
    words = {"client": "linked_with_bundled", "verbs": "bundle"}
    assert copies(both(bed, pd, HOST, f"iova {NO_MEMORY} 1 1 0", **words)) == {"bundled"}
    ran = translated(bed, pd, "cuda context", reg(GPU), **words)
    assert copies(ran) == {"bundled"}


@pytest.mark.parametrize("pd", ["", "pd"])
def test_bundled_copy_and_the_system_s(bed, pd):
    """Another part of the process opens the system's copy for its own use. The library must use the
    copy that made the protection domain."""
    words = (f"open {bed.where}/system/{SYSTEM}", pd)
    bundled = {"client": "linked_with_bundled", "verbs": "bundle"}
    assert copies(both(bed, *words, HOST, **bundled)) == {"bundled"}
    ran = translated(bed, *words, "cuda context", reg(GPU), **bundled)
    assert copies(ran) == {"bundled"}


@pytest.mark.parametrize("names", [(SYSTEM, BUNDLED), (BUNDLED, SYSTEM), (BUNDLED, OTHER)])
def test_copies_that_are_local(bed, names):
    """The program opens the copies with RTLD_LOCAL, as Python does, and calls them in turn."""
    kinds = {SYSTEM: "system", BUNDLED: "bundled", OTHER: "other"}
    places = {SYSTEM: "system", BUNDLED: "bundle", OTHER: "other"}
    opened = [f"open {bed.where}/{places[name]}/{name} pd" for name in names]
    ran = both(bed, *[f"{words} {HOST}" for words in opened + opened])
    expected = [kinds[name] for name in names]
    assert [words[0] for words in ran.of("in")] == 2 * expected
    for words, kind in zip(opened, expected):
        ran = translated(bed, *opened, words, "cuda context", reg(GPU))
        assert copies(ran) == {kind}


def test_library_that_is_linked_with_a_local_copy(bed):
    """If a library is linked with libibverbs, the dynamic linker binds that library's calls to the
    preloaded library."""
    ran = both(
        bed,
        f"open {bed.where}/system/{SYSTEM}",
        f"plugin {bed.where}/bundle/plugin.so",
        verbs="bundle",
    )
    assert [words[0] for words in ran.of("in")][0] == "bundled"


def test_copy_that_is_closed(bed):
    """After a copy is closed, another copy is opened, perhaps at the same address. The library must
    use the copy that is open."""
    words = []
    for name, place in ((BUNDLED, "bundle"), (OTHER, "other"), (SYSTEM, "system")) * 2:
        opened = f"open {bed.where}/{place}/{name}"
        words += [opened, HOST, "pd", HOST, "close"]
    ran = both(bed, *words)
    assert [words[0] for words in ran.of("in")] == 2 * (
        2 * ["bundled"] + 2 * ["other"] + 2 * ["system"]
    )


def test_copy_at_the_address_of_another(bed):
    """The second copy is mapped at the address of the first one. The function that identifies a
    copy has the same place in both copies. The other functions have different places. The
    library must not call functions of the first copy at their old addresses."""
    words = []
    for place in ("plain", "shifted") * 4:
        words += [f"open {bed.where}/{place}/{SYSTEM} pd", HOST, HOST, "close"]
    ran = both(bed, *words)
    assert [words[0] for words in ran.of("in")] == 4 * ["plain", "plain", "shift", "shift"]


def test_copy_whose_code_ends_with_a_page(bed):
    """The function that identifies the copy has the last bytes of the last page of code. The
    library must not read beyond this page."""
    words = (f"open {bed.where}/at_end/{SYSTEM} pd", HOST, HOST)
    ran = both(bed, *words)
    assert [words[0] for words in ran.of("in")] == ["at_end", "at_end"]


def test_many_copies(bed):
    """The process has more copies than the library remembers. Each registration must nevertheless
    work as it does without the library."""
    words = []
    for number in range(40):
        copy = bed.where / f"many{number}" / SYSTEM
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(bed.where / "system" / SYSTEM, copy)
        words += [f"open {copy} pd", HOST, HOST]
    ran = both(bed, *words)
    assert len(ran.of("in")) == 80


def test_no_libibverbs_is_kept(bed):
    """The library does not keep a libibverbs mapped that the program closes."""
    for preload in ("", bed.library):
        ran = bed.run("verbs", HOST, "close libraries", LD_PRELOAD=preload)
        assert not [line for line in ran.printed if "libibverbs" in line]


# ---- old versions ---------------------------------------------------------------


@pytest.mark.parametrize("client, opened", [("client", "verbs"), ("linked", "")])
@pytest.mark.parametrize("pd", ["", "pd"])
def test_libibverbs_without_reg_mr_iova2(bed, client, opened, pd):
    """rdma-core 27 and older versions also have no dma-bufs."""
    words = (opened, pd, HOST, "iova host 4096 1 0x7000", reg(NO_MEMORY))
    both(bed, *words, client=client, verbs="v27")
    ran = bed.run(opened, pd, "cuda context", reg(GPU), client=client, verbs="v27")
    assert ran.printed == failed(95)


def test_flags_that_an_old_libibverbs_does_not_know(bed):
    """Optional flags may be ignored. rdma-core 27 would pass them on to a kernel that does not know
    them."""
    relaxed = LOCAL | RELAXED_ORDERING
    words = (f"reg host 4096 {relaxed}", reg(NO_MEMORY, access=relaxed))
    for pd in ("", "pd"):
        ran = bed.run(pd, *words, client="linked", verbs="v27")
        assert unnumbered(ran.printed) == ["addr=host length=4096", *failed(14)]


def test_libibverbs_without_versions(bed):
    """The dynamic linker binds a program to such a copy, although the program asks for versions."""
    words = {"client": "linked", "verbs": "unversioned"}
    both(bed, "pd", HOST, reg(NO_MEMORY), **words)
    translated(bed, "pd cuda context", reg(GPU), **words)


def test_name_that_libibverbs_does_not_have(bed):
    """A program looks for ibv_reg_mr_ex(). Its libibverbs has no such function, so the program
    finds the library's function. This function must work."""
    words = f"ex host 4096 1 0x9000 2 ex host 4096 1 0x9000 3 ex {GPU:#x} 4096 1 0 4"
    ran = bed.run(words, client="linked", verbs="old")
    assert unnumbered(ran.printed) == 2 * ["addr=host length=4096"] + failed(95)


@pytest.mark.parametrize(
    ("mask", "offset", "event"),
    [
        (1 | 4 | 8, 0x1000, ["0x1000", "4096", "0x9000", "0x1"]),
        (1 | 4, 0x1000, ["0", "4096", "0x9000", "0x1"]),
    ],
)
def test_descriptor_without_the_newest_verb(bed, mask, offset, event):
    """A program that finds ibv_reg_mr_ex() calls it with a dma-buf. Its libibverbs is older, and
    registers the dma-buf by ibv_reg_dmabuf_mr(), as the program would do without the library."""
    ran = bed.run(f"ex {offset:#x} 4096 1 0x9000 {mask}", client="linked", verbs="v58")
    assert len(ran.printed) == 1 and "length=4096" in ran.printed[0]
    assert ran.of("reg_dmabuf_mr") == [event]


@pytest.mark.parametrize("mask", [4, 4 | 8, 1 | 2 | 4 | 8, 1 | 4 | 8 | 16, 1 | 8])
def test_other_descriptors_without_the_newest_verb(bed, mask):
    """Other requests cannot be made of the older verbs."""
    ran = bed.run(f"ex 0x1000 4096 1 0x9000 {mask}", client="linked", verbs="v58")
    assert ran.printed == failed(errno.EOPNOTSUPP) and not ran.of("reg_dmabuf_mr")


# ---- other preloaded libraries ---------------------------------------------------


@pytest.mark.parametrize("verbs", ["new", "symbolic", "v27"])
@pytest.mark.parametrize("first", [True, False])
def test_another_preloaded_library(bed, first, verbs):
    """A shim wraps ibv_reg_mr() with RTLD_NEXT. It must be called once for each registration,
    whether the shim or the library is preloaded first."""
    order = [bed.where / "shim.so", bed.library]
    preload = ":".join(map(str, order if first else order[::-1]))
    words = {"client": "linked", "verbs": verbs, "LD_PRELOAD": preload}
    ran = bed.run(HOST, reg(NO_MEMORY), **words)
    assert [words[1] for words in ran.of("shim")] == ["registered", "failed"]
    assert ran.printed[1:] == failed(14)
    if verbs == "v27":
        return
    ran = bed.run("cuda context", reg(GPU), **words)
    assert ran.printed == registered(GPU, 4096)
    # If libibverbs binds its own calls to its own functions, and the shim comes second, the shim
    # does not see the translation.
    seen = "failed" if verbs == "symbolic" and not first else "registered"
    assert ran.of("shim") == [[f"{GPU:#x}", seen]]


@pytest.mark.parametrize("shim", ["iova_shim.so", "shim.so"])
def test_preloaded_library_after_others(bed, shim):
    """The shim need not come directly after this library, and may wrap any of the functions."""
    others = [str(bed.where / name) for name in ("walk.so", "system.so", shim)]
    preload = ":".join([others[0], str(bed.library), *others[1:]])
    words = (f"iova {GPU:#x} 4096 1 0x7000", f"ex {GPU:#x} 4096 1 0x9000 3")
    words = ("cuda context", reg(GPU), reg(GPU, access=LOCAL | WRITE), *words)
    ran = bed.run(*words, client="linked", LD_PRELOAD=preload)
    assert ran.printed == 4 * registered(GPU, 4096)
    seen = {words[-1] for words in ran.of("shim")}
    by_iova = {"ibv_reg_mr_iova", "ibv_reg_mr_iova2", "ibv_reg_mr_ex"}
    assert seen == ({"registered"} if shim == "shim.so" else by_iova)


@pytest.mark.parametrize("first", [True, False])
def test_refusal_is_said_once(bed, first):
    """With a shim, one registration calls functions of this library twice."""
    order = [bed.where / "shim.so", bed.library]
    preload = ":".join(map(str, order if first else order[::-1]))
    words = {"client": "linked", "LD_PRELOAD": preload, "NVPM_PRELOAD_LOG": 1}
    ran = bed.run("cuda context", reg(GPU), DMABUF_ERRNO=95, **words)
    assert ran.printed == failed(95)
    assert len(ran.said) == 1
    assert ran.calls.count("reg_dmabuf_mr") == 1
    ran = bed.run("cuda", reg(NO_MEMORY), reg(NO_MEMORY), **words)
    assert ran.printed == 2 * failed(14)
    assert len(ran.said) == 2


# ---- the dynamic linker -----------------------------------------------------------


@pytest.mark.parametrize("client", ["client", "linked"])
def test_constructor_that_waits_for_a_registration(bed, client):
    """The thread that opens a plug-in holds the lock of the dynamic linker. Opening the plug-in may
    also load libibverbs."""
    both(bed, f"plugin {bed.where}/new/plugin.so", client=client)


@pytest.mark.parametrize("cuda", ["slow_cuda", "slow_cuda_without_relro"])
def test_libcuda_that_is_being_loaded(bed, cuda):
    """A library is in the list of objects before the dynamic linker has relocated it. If the
    preloaded library called a function of such a library, the process would crash."""
    ran = both(bed, "loading", reg(NO_MEMORY), client="linked", cuda=cuda)
    assert ran.calls.count("cuPointerGetAttribute") >= 1


def test_libcuda_that_is_being_loaded_by_an_old_linker(bed):
    """A glibc before 2.35 does not say which libraries are relocated, so the library checks whether
    their pages are read-only."""
    preload = f"{bed.library}:{bed.where}/walk.so"
    words = {"client": "linked", "cuda": "slow_cuda", "LD_PRELOAD": preload, "HIDE_LIBC": 1}
    ran = bed.run("loading", reg(NO_MEMORY), **words)
    assert ran.printed == failed(14)
    assert ran.calls.count("cuPointerGetAttribute") >= 1


def test_list_of_objects_that_the_program_replaces(bed):
    """Some programs, such as Seastar, replace dl_iterate_phdr(), so that exceptions take no
    lock."""
    for pd in ("", "pd"):
        both(bed, "verbs", pd, HOST, reg(NO_MEMORY), client="own_list")
        translated(bed, "verbs", pd, "cuda context", reg(GPU), client="own_list")


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
    assert exported == ["ibv_reg_mr", "ibv_reg_mr_ex", "ibv_reg_mr_iova", "ibv_reg_mr_iova2"]


def test_table_of_symbols_that_is_empty(bed):
    """The table has no symbol. The word after the table looks like the hash of ibv_reg_mr, and the
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
    hash_of_ibv_reg_mr = 5381
    for byte in b"ibv_reg_mr":
        hash_of_ibv_reg_mr = (hash_of_ibv_reg_mr * 33 + byte) & 0xFFFFFFFF
    struct.pack_into("<I", content, table + 4 * 7, hash_of_ibv_reg_mr | 1)
    function = (0xFFFFFFFF, 0x12, 0, 1)
    struct.pack_into("<IBBH", content, offsets[".dynsym"], *function)
    library.write_bytes(content)
    both(bed, f"plugin {library} verbs", HOST)


def test_libcuda_that_is_closed(bed):
    """The program closes libcuda, and opens no other library. The library must not call functions
    that it has found in libcuda before."""
    words = ("cuda", reg(NO_MEMORY), "close_cuda", reg(NO_MEMORY), HOST)
    ran = both(bed, *words, client="linked")
    assert ran.cuda == ["cuPointerGetAttribute"]


# ---- threads and processes -----------------------------------------------------------


@pytest.mark.parametrize("addr", ["host", f"{NO_MEMORY:#x}"])
@pytest.mark.parametrize("pd", ["", "pd"])
def test_locks_that_a_child_inherits(bed, pd, addr):
    """If another thread holds a lock at the time of a fork, the lock stays locked for ever in the
    child. The child must not wait for such a lock."""
    both(bed, pd, f"forks 200 reg {addr} 4096 1", client="linked", EVENTS="")


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
    """A walk through the list of objects takes a lock. Only the first registration with each copy
    of libibverbs, and registrations that fail, may walk."""
    words = {"LD_PRELOAD": f"{bed.library}:{bed.where}/walk.so"}
    opened = [
        f"open {bed.where}/{name} pd {HOST}" for name in ("system/" + SYSTEM, "other/" + OTHER)
    ]
    once = bed.run(*opened, **words).calls.count("walk")
    often = bed.run(*opened, *opened, HOST, HOST, *opened, **words).calls.count("walk")
    assert once == often > 0


def test_library_that_is_closed(bed):
    """A fork calls functions of the library, so they must stay mapped even if the program has
    opened and closed the library like a plug-in."""
    ran = bed.run(f"open {bed.library} close fork number", LD_PRELOAD="")
    assert len(ran.printed) == 1


def test_child_of_fork(bed):
    ran = both(bed, LOCALLY, HOST, "fork", HOST, reg(NO_MEMORY))
    assert len(ran.printed) == 3


@pytest.mark.parametrize("addr", [GPU, NO_MEMORY])
def test_thread_that_cannot_be_cancelled(bed, addr):
    """The library makes the thread cancellable again only if it was cancellable before."""
    ran = bed.run("cuda verbs kept", reg(addr))
    assert ran.printed[1:] == ["not cancellable"]


@pytest.mark.parametrize("log", [0, 1])
@pytest.mark.parametrize("addr, peer", [(GPU, 0), (GPU, 1), (NO_MEMORY, 0)])
def test_pending_cancellation(bed, addr, peer, log):
    """ibv_reg_mr() is not a cancellation point. A translation must not be one either, although it
    calls close()."""
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


# ---- the real libibverbs ----------------------------------------------------------------


@pytest.fixture(scope="session")
def real(bed):
    """Returns a directory with the real libibverbs, and with a copy of it under another name."""
    found = command("cc", "-print-file-name=libibverbs.so.1").strip()
    where = bed.where / "real"
    where.mkdir()
    shutil.copy(os.path.realpath(found), where / SYSTEM)
    bytes_ = (where / SYSTEM).read_bytes()
    # Both names have the same length.
    (where / "libibverbx.so.1").write_bytes(bytes_.replace(b"libibverbs.so.1", b"libibverbx.so.1"))
    return where


@pytest.mark.parametrize("names", [(SYSTEM, "libibverbx.so.1"), ("libibverbx.so.1", SYSTEM)])
def test_real_libibverbs_of_a_protection_domain(bed, real, names):
    """The copy that made the protection domain must make both registrations. The first one is that
    of the pointer, and the second one that of the dma-buf."""
    words = [f"open {real / name} crafted" for name in names]
    ran = both(bed, *[f"{opened} {HOST}" for opened in words + words])
    assert [seen[0] for seen in ran.of("by")] == [*names, *names]
    for opened, name in zip(words, names):
        ran = translated(bed, *words, opened, "cuda context", reg(GPU))
        assert ran.of("by") == [[name]]
        assert ran.of("dmabuf_by") == [[name]]


def test_structures_of_rdma_core(bed):
    command(os.environ.get("CC", "cc"), "-Wall", "-fsyntax-only", HERE / "doubles/layout.c")
