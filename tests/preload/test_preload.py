# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests libnvpm_preload.so in real processes, with doubles of the kernel, of libibverbs and of
libcuda."""

import errno
import os
import subprocess

import pytest
from conftest import command

# The memory of doubles.h.
GPU, POOL, PINNED, NO_MEMORY = 0x302000000, 0x303000000, 0x304000000, 0x1000
# The lab's libcuda numbers the primary contexts of both GPUs first.
PRIMARY_OF_SECOND, CONTEXT_OF_MEMORY = "2", "3"
LOCAL, WRITE, MW_BIND, ZERO_BASED, ON_DEMAND, HUGETLB = 1, 2, 16, 32, 64, 128
RELAXED_ORDERING, ANOTHER_OPTIONAL = 1 << 20, 1 << 25

# Opens CUDA and libibverbs with RTLD_LOCAL, and gives the thread a context.
LOCALLY = "cuda verbs context"


def registered(addr, length):
    return [f"addr={addr:#x} length={length}"]


def failed(number):
    return [f"errno={number}"]


def reg(addr, length=4096, access=LOCAL):
    return f"reg {addr:#x} {length} {access}"


def on_system(bed, **system):
    """Returns the variables with which some functions of the C library behave as on another system
    (doubles/system.c)."""
    return {"LD_PRELOAD": f"{bed.where}/system.so:{bed.library}", **system}


# ---- ways to the library ------------------------------------------------------------

# How a program gets to the verb.
WAYS = {
    "linked": {"client": "linked"},
    "linked with the copy of a wheel": {"client": "linked_with_bundled", "verbs": "bundle"},
    "static libibverbs": {"client": "static_verbs"},
    "dlsym(RTLD_DEFAULT)": {"words": "globally by default"},
    "dlsym(handle)": {"words": "verbs by dlsym"},
    "dlvsym(handle, IBVERBS_1.1)": {"words": "verbs by dlvsym"},
    "dlvsym(handle, IBVERBS_1.8)": {"words": "verbs by iova2"},
    "RTLD_DEEPBIND": {"words": "deeply by dlsym"},
}


@pytest.mark.parametrize("verbs", ["new", "symbolic", "unversioned"])
@pytest.mark.parametrize("way", WAYS)
def test_way(bed, way, verbs):
    """A program gets to ibv_reg_mr() in one of eight ways, in a libibverbs that is linked as
    Debian's or as Ubuntu's, or has no versions. The library must translate in all of them."""
    setting = {"verbs": verbs, **WAYS[way]}
    words = setting.pop("words", "")
    if verbs == "unversioned":
        words = words.replace("by iova2", "by dlsym").replace("by dlvsym", "by dlsym")
    ran = bed.run("cuda context", words, reg(GPU), LD_AUDIT=bed.library, **setting)
    assert ran.printed == registered(GPU, 4096)
    assert ran.of("reg_dmabuf_mr") == [["0", "4096", f"{GPU:#x}", "0x1"]]


@pytest.mark.parametrize("way", [way for way in WAYS if way != "RTLD_DEEPBIND"])
def test_way_without_the_auditor(bed, way):
    """Only RTLD_DEEPBIND needs the auditor, which nvpm run does not use with an old glibc."""
    setting = dict(WAYS[way])
    ran = bed.run("cuda context", setting.pop("words", ""), reg(GPU), **setting)
    assert ran.printed == registered(GPU, 4096)


def test_libibverbs_without_the_auditor_bound_deeply(bed):
    """The command does not go through the library. There is no device, so the real kernel refuses
    the command. The log says why, and says nothing about a library that was opened in another
    way."""
    for verbs in ("new", "symbolic", "noplt"):
        ran = bed.run("cuda context deeply", reg(GPU), verbs=verbs, NVPM_PRELOAD_LOG=1)
        assert ran.printed[0].startswith("errno=")
        assert not ran.of("reg_mr")
        assert len(ran.said) == 1
        assert ran.said[0].startswith("nvpm_preload: libibverbs.so.1 was opened with RTLD_DEEPBIND")
        assert not bed.run("cuda context deeply", reg(GPU), verbs=verbs).said
        ran = bed.run("verbs reg host 4096 1", verbs=verbs, NVPM_PRELOAD_LOG=1)
        assert not ran.said
    ran = bed.run("deeply", LD_AUDIT=bed.library, NVPM_PRELOAD_LOG=1)
    assert not ran.said


def test_plugin(bed):
    """A library that is opened with RTLD_LOCAL is linked with a copy of libibverbs, and registers
    memory while it is being opened."""
    for kind in ("new", "bundle"):
        words = ("cuda context plugin", bed.where / kind / "plugin.so")
        ran = bed.run(*map(str, words), verbs=kind)
        assert ran.printed == ["registered", "errno=14", "registered"]


@pytest.mark.parametrize("access", [LOCAL, LOCAL | WRITE])
def test_verbs_of_the_header(bed, access):
    """verbs.h calls one function if the flags are a constant, and another function for other
    flags."""
    words = ("cuda context", reg(GPU, access=access), f"iova {GPU:#x} 4096 1 0x7000")
    ran = bed.run(*words, client="linked")
    assert ran.printed == 2 * registered(GPU, 4096)
    assert [seen[2:] for seen in ran.of("reg_dmabuf_mr")] == [
        [f"{GPU:#x}", f"{access:#x}"],
        ["0x7000", "0x1"],
    ]


def test_reg_mr_iova(bed):
    ran = bed.run("cuda context", f"iova {GPU + 0x400:#x} 100 1 0x7400", client="linked")
    assert ran.printed == registered(GPU + 0x400, 100)
    assert ran.of("reg_dmabuf_mr") == [["0x400", "100", "0x7400", "0x1"]]


def test_reg_mr_ex(bed):
    """The newest command has an attribute for each argument."""
    access = LOCAL | WRITE | RELAXED_ORDERING | ANOTHER_OPTIONAL
    ran = bed.run("cuda context", f"ex {GPU + 0x400:#x} 4096 {access} 0x9400", client="linked")
    assert ran.printed == registered(GPU + 0x400, 4096)
    seen = f"{LOCAL | WRITE | RELAXED_ORDERING:#x}"
    assert ran.of("reg_mr_ex_dmabuf") == [["0x400", "4096", "0x9400", seen]]


def test_umem(bed):
    """mlx5's own command makes a umem of memory, for queues in GPU memory."""
    ran = bed.run("cuda context", f"umem {GPU + 0x400:#x} 4096 3", client="linked")
    assert ran.printed == registered(GPU + 0x400, 4096)
    assert ran.of("umem_dmabuf") == [["0x400", "4096", "0x400", "0x3"]]
    ran = bed.run("cuda context", f"umem {NO_MEMORY} 4096 3", client="linked")
    assert ran.printed == failed(errno.EFAULT)


def test_umem_on_a_kernel_without_it(bed):
    """An old kernel does not know the descriptor of this command. The program gets the error that
    it gets without the library."""
    for number, seen in ((errno.EPROTONOSUPPORT, errno.EFAULT), (errno.EINVAL, errno.EINVAL)):
        ran = bed.run("cuda context", f"umem {GPU:#x} 4096 3", client="linked", DMABUF_ERRNO=number)
        assert ran.printed == failed(seen)


def test_umem_of_a_dma_buf(bed):
    """The program has made a dma-buf itself. The address is an offset, even if it looks like an
    address of GPU memory."""
    words = ("cuda context", f"umem_of {GPU:#x} 4096 3")
    ran = bed.run(*words, client="linked", DMABUF_ERRNO=errno.EFAULT)
    assert ran.printed == failed(errno.EFAULT)
    assert not ran.cuda[1:]


# ---- successful registrations -----------------------------------------------


@pytest.mark.parametrize(
    "addr, length, start, size",
    [
        (GPU, 8 << 20, GPU, 8 << 20),
        (GPU + 0x3000, 0x2000, GPU + 0x3000, 0x2000),
        (GPU + 0x400, 1000, GPU, 4096),
        (GPU + 0x1FFF, 2, GPU + 0x1000, 0x2000),
        (GPU + 0x1FFF, 1, GPU + 0x1000, 0x1000),
    ],
)
def test_range(bed, addr, length, start, size):
    """Libcuda exports only whole pages. The region must nevertheless have the address and the
    length of the request."""
    ran = bed.run(LOCALLY, reg(addr, length))
    assert ran.printed == registered(addr, length)
    assert ran.of("export") == [[f"{start:#x}", str(size)]]
    offset = f"{addr - start:#x}".replace("0x0", "0")
    assert ran.of("reg_dmabuf_mr") == [[offset, str(length), f"{addr:#x}", "0x1"]]


@pytest.mark.parametrize(
    "addr, length, start, size",
    [
        (GPU + 0x1000, 0x2000, GPU, 0x10000),
        (GPU + 0xFFFF, 2, GPU, 0x20000),
        (GPU + 0x10000, 0x10000, GPU + 0x10000, 0x10000),
    ],
)
def test_range_with_large_pages(bed, addr, length, start, size):
    """The host has pages of 64 KiB, as some arm64 systems do."""
    ran = bed.run(LOCALLY, reg(addr, length), **on_system(bed, PAGE_SIZE=0x10000))
    assert ran.printed == registered(addr, length)
    assert ran.of("export") == [[f"{start:#x}", str(size)]]


def test_range_that_is_none(bed):
    for length in (0, (1 << 64) - 1):
        ran = bed.run(LOCALLY, reg(GPU, length))
        assert ran.printed == failed(errno.EFAULT)
        assert "cuMemGetHandleForAddressRange" not in ran.calls


def test_copies_are_not_late(bed):
    ran = bed.run(LOCALLY, reg(GPU + 0x400))
    assert ran.of("sync_memops") == [[f"{GPU + 0x400:#x}", "1"]]


def test_descriptors_are_closed(bed):
    ran = bed.run(LOCALLY, "times 100000", reg(GPU + 0x400), events=False)
    assert ran.printed[1:] == ["registered=100000 descriptors=0"]


@pytest.mark.parametrize("flags", [RELAXED_ORDERING, ANOTHER_OPTIONAL])
def test_optional_flags(bed, flags):
    ran = bed.run(LOCALLY, reg(GPU, access=LOCAL | WRITE | flags))
    assert ran.printed == registered(GPU, 4096)
    expected = LOCAL | WRITE | flags & RELAXED_ORDERING
    assert ran.of("reg_dmabuf_mr")[0][-1] == f"{expected:#x}"


@pytest.mark.parametrize("flag", [MW_BIND, ZERO_BASED, HUGETLB])
def test_flags_that_a_dma_buf_cannot_have(bed, flag):
    ran = bed.run(LOCALLY, reg(GPU, access=LOCAL | flag))
    assert ran.printed == failed(errno.EFAULT)
    assert "cuMemGetHandleForAddressRange" not in ran.calls


# ---- registrations that stay unchanged ----------------------------------------


def test_host_memory(bed):
    ran = bed.run(LOCALLY, "reg host 4096 1", NVPM_PRELOAD_LOG=1)
    assert not ran.said
    assert len(ran.printed) == 1 and ran.printed[0].startswith("addr=0x")
    assert ran.cuda == ["cuCtxPushCurrent_v2"]
    assert ran.calls.count("reg_mr") == 1


def test_host_memory_of_cuda(bed):
    """CUDA knows memory of the host that it has pinned, but cannot export it."""
    ran = bed.run(LOCALLY, reg(PINNED), NVPM_PRELOAD_LOG=1)
    assert ran.printed == failed(errno.EFAULT)
    assert "not GPU memory" in ran.said[0]
    assert "cuMemGetHandleForAddressRange" not in ran.calls


def test_on_demand(bed):
    """The program receives the kernel's answer. The log says that RDMA may fail later."""
    ran = bed.run(LOCALLY, reg(GPU, access=LOCAL | ON_DEMAND), NVPM_PRELOAD_LOG=1)
    assert ran.printed == registered(GPU, 4096)
    assert "reg_dmabuf_mr" not in ran.calls
    assert len(ran.said) == 1 and "on demand" in ran.said[0]
    ran = bed.run(LOCALLY, f"reg host 4096 {LOCAL | ON_DEMAND}", NVPM_PRELOAD_LOG=1)
    assert not ran.said
    ran = bed.run(LOCALLY, reg(GPU, access=ON_DEMAND), REAL_ERRNO=errno.EFAULT)
    assert ran.printed == failed(errno.EFAULT)


def test_peer_memory(bed):
    ran = bed.run(LOCALLY, reg(GPU), PEER_MEMORY=1)
    assert ran.printed == registered(GPU, 4096)
    assert ran.cuda == ["cuCtxPushCurrent_v2"]
    assert not bed.run(LOCALLY, reg(GPU), PEER_MEMORY=1, NVPM_PRELOAD_LOG=1).said


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL])
def test_another_failure(bed, number):
    ran = bed.run(LOCALLY, reg(GPU), REAL_ERRNO=number)
    assert ran.printed == failed(number)
    assert ran.cuda == ["cuCtxPushCurrent_v2"]


def test_limit_of_locked_memory(bed):
    """The kernel refuses the pointer because of RLIMIT_MEMLOCK. The translation must succeed,
    because a dma-buf is not locked memory."""
    ran = bed.run(LOCALLY, reg(GPU), REAL_ERRNO=errno.ENOMEM)
    assert ran.printed == registered(GPU, 4096)
    ran = bed.run(LOCALLY, "reg host 4096 1", REAL_ERRNO=errno.ENOMEM)
    assert ran.printed == failed(errno.ENOMEM)


def test_wrong_address_of_the_host(bed):
    ran = bed.run(LOCALLY, reg(NO_MEMORY))
    assert ran.printed == failed(errno.EFAULT)
    assert ran.cuda == ["cuCtxPushCurrent_v2", "cuPointerGetAttribute"]


def test_program_without_cuda(bed):
    ran = bed.run("verbs", reg(NO_MEMORY), "reg host 4096 1", reg(GPU), "libraries")
    assert ran.printed[0] == "errno=14" and ran.printed[2] == "errno=14"
    assert ran.printed[1].startswith("addr=0x")
    assert not [line for line in ran.printed if "libcuda" in line]


# ---- threads and processes --------------------------------------------------


def test_thread_without_context(bed):
    """The library gives the thread the context of the pointer, and takes the context away
    afterwards."""
    ran = bed.run("cuda verbs thread", reg(GPU), reg(GPU + 4096))
    assert ran.printed == registered(GPU, 4096) + registered(GPU + 4096, 4096)
    assert ran.of("pushed") == 2 * [[CONTEXT_OF_MEMORY]]
    assert ran.kept == (0, 0)


def test_pool_in_a_thread_without_context(bed):
    """Memory of a pool has no context, so the library gives the thread the primary context of the
    GPU that has the memory, which is the second GPU. The library takes the context away
    afterwards."""
    ran = bed.run("cuda verbs thread", reg(POOL), reg(POOL + 4096))
    assert ran.printed == registered(POOL, 4096) + registered(POOL + 4096, 4096)
    assert ran.of("pushed") == 2 * [[PRIMARY_OF_SECOND]]
    assert ran.kept == (0, 0)


def test_context_that_cannot_be_pushed(bed):
    ran = bed.run("cuda verbs", reg(POOL), cuCtxPushCurrent_v2=201)
    assert ran.printed == failed(errno.EFAULT)
    assert ran.kept == (0, 0)
    assert not {"cuCtxPopCurrent_v2", "cuMemGetHandleForAddressRange"} & set(ran.calls)


def test_context_of_the_thread(bed):
    ran = bed.run(LOCALLY, reg(GPU), reg(POOL))
    assert ran.printed == registered(GPU, 4096) + registered(POOL, 4096)
    assert ran.calls.count("cuCtxPushCurrent_v2") == 1
    assert ran.kept == (1, 0)


def test_child_after_fork(bed):
    """CUDA does not work in a child, but memory of the host can be registered."""
    ran = bed.run(LOCALLY, reg(GPU), "fork", reg(GPU), "reg host 4096 1")
    assert ran.printed[:2] == registered(GPU, 4096) + failed(errno.EFAULT)
    assert ran.printed[2].startswith("addr=0x")


def test_threads(bed):
    ran = bed.run("cuda verbs threads 8", reg(GPU + 0x400), events=False)
    assert ran.printed == ["registered=8000"]


# ---- reasons of failures ----------------------------------------------------


def test_no_descriptor_left(bed):
    ran = bed.run(LOCALLY, "descriptors", reg(GPU), "reg host 4096 1")
    assert ran.printed[0] == f"errno={errno.EMFILE}"
    assert ran.printed[1].startswith("addr=0x")


@pytest.mark.parametrize(
    "number, seen",
    [(errno.EMFILE, errno.EMFILE), (errno.ENFILE, errno.ENFILE), (errno.ENODEV, errno.EFAULT)],
)
def test_system_without_descriptors(bed, number, seen):
    """The process, or the whole system, has no descriptor left. libcuda does not say so. If
    something else is missing, only libcuda's answer counts."""
    system = on_system(bed, EVENTFD_ERRNO=number, NVPM_PRELOAD_LOG=1)
    ran = bed.run(LOCALLY, reg(GPU), cuMemGetHandleForAddressRange=304, **system)
    assert ran.printed == failed(seen)
    is_named = "no dma-buf: no file descriptor is left;" in ran.said[0]
    assert is_named == (number == seen)


@pytest.mark.parametrize(
    "function, code, number",
    [
        ("cuMemGetHandleForAddressRange", 801, errno.EOPNOTSUPP),
        ("cuMemGetHandleForAddressRange", 2, errno.ENOMEM),
        ("cuMemGetHandleForAddressRange", 1, errno.EFAULT),
        ("cuMemGetHandleForAddressRange", 304, errno.EFAULT),
        ("cuPointerGetAttribute", 3, errno.EFAULT),
        ("cuCtxGetCurrent", 4, errno.EFAULT),
    ],
)
def test_error_of_cuda(bed, function, code, number):
    assert bed.run(LOCALLY, reg(GPU), **{function: code}).printed == failed(number)
    ran = bed.run(LOCALLY, reg(GPU), NVPM_PRELOAD_LOG=1, **{function: code})
    assert ran.printed == failed(number)
    assert len(ran.said) == 1 and f"{function} answered CUDA_ERROR" in ran.said[0]
    assert ran.said[0].endswith(os.strerror(number))
    ran = bed.run(LOCALLY, "times 10", reg(GPU), **{function: code})
    assert ran.printed[1:] == ["registered=0 descriptors=0"]


def test_error_without_a_name(bed):
    """An old libcuda does not know the number of the error."""
    words = {"cuMemGetHandleForAddressRange": 999, "cuGetErrorName": 1, "NVPM_PRELOAD_LOG": 1}
    ran = bed.run(LOCALLY, reg(GPU), **words)
    assert ran.printed == failed(errno.EFAULT)
    assert "cuMemGetHandleForAddressRange answered an error without a name;" in ran.said[0]


def test_input_that_is_closed(bed):
    """After the program has closed stdin, the next descriptor is 0. The library must close it."""
    words = ("close_input", reg(GPU), reg(GPU + 0x400), "number")
    for code in (0, 304):
        ran = bed.run(LOCALLY, *words, cuMemGetHandleForAddressRange=code)
        without = bed.run(LOCALLY, "close_input number", cuMemGetHandleForAddressRange=code)
        assert ran.printed[2:] == without.printed
        if code:
            assert ran.printed[:2] == 2 * failed(errno.EFAULT)


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EPROTONOSUPPORT, errno.EINVAL])
def test_error_of_the_dma_buf_verb(bed, number):
    ran = bed.run(LOCALLY, "times 10", reg(GPU), DMABUF_ERRNO=number)
    assert ran.printed == failed(number) + ["registered=0 descriptors=0"]


def test_libcuda_without_dma_bufs(bed):
    ran = bed.run(LOCALLY, reg(GPU), cuda="old_cuda", NVPM_PRELOAD_LOG=1)
    assert ran.printed == failed(errno.EOPNOTSUPP)
    assert "answered nothing: this libcuda does not have it" in ran.said[0]


def test_libcuda_with_the_old_hash_table(bed):
    """Several of libcuda's names are so long that the hash has to leave out its highest bits."""
    sections = command("readelf", "-dW", bed.where / "old_hash/libcuda.so.1")
    assert "(HASH)" in sections and "(GNU_HASH)" not in sections
    ran = bed.run("cuda verbs thread", reg(GPU), reg(POOL), cuda="old_hash")
    assert ran.printed == registered(GPU, 4096) + registered(POOL, 4096)
    assert ran.kept == (0, 0)


def test_late_copies_are_no_failure(bed):
    ran = bed.run(LOCALLY, reg(GPU), NVPM_PRELOAD_LOG=1, cuPointerSetAttribute=801)
    assert ran.printed == registered(GPU, 4096)
    assert "cuPointerSetAttribute" in ran.said[0]


# ---- the log ----------------------------------------------------------------


def test_log(bed):
    words = (LOCALLY, reg(GPU + 0x400, 1000), reg(NO_MEMORY), "reg host 4096 1", reg(GPU, 4096, 32))
    about = "nvpm_preload: ibv_reg_mr of"
    assert bed.run(*words, NVPM_PRELOAD_LOG=1).said == [
        f"{about} {GPU + 0x400:#x}, 1000 bytes: registered as a dma-buf",
        f"{about} 0x1000, 4096 bytes: no dma-buf: not GPU memory of CUDA in this process"
        "; the caller gets: Bad address",
        f"{about} {GPU:#x}, 4096 bytes: no dma-buf: not with ON_DEMAND, ZERO_BASED, MW_BIND or "
        "HUGETLB; the caller gets: Bad address",
    ]
    assert bed.run(*words).said == []
    for value in ("0", "", "2", "11", "yes"):
        assert bed.run(*words, NVPM_PRELOAD_LOG=value).said == []


def test_log_that_is_full(bed):
    """A line that cannot be written changes no error number."""
    with open("/dev/full", "w") as full:
        ran = bed.run(LOCALLY, reg(NO_MEMORY), stderr=full, NVPM_PRELOAD_LOG=1)
    assert ran.printed == failed(errno.EFAULT)


# ---- the real libibverbs ----------------------------------------------------


def real_verbs():
    """Returns the directory of the system's libibverbs."""
    found = subprocess.run(
        ["cc", "-print-file-name=libibverbs.so.1"], capture_output=True, text=True
    )
    return os.path.dirname(os.path.realpath(found.stdout.strip()))


def test_real_libibverbs(bed):
    """The commands are those of rdma-core's own libibverbs."""
    words = ("cuda context verbs by command", reg(GPU + 0x400, 1000, LOCAL | WRITE))
    paths = f"{real_verbs()}:{bed.where}/cuda"
    ran = bed.run(*words, "reg host 4096 1", reg(NO_MEMORY), LD_LIBRARY_PATH=paths)
    assert ran.printed[0:1] + ran.printed[2:] == registered(GPU + 0x400, 1000) + failed(14)
    assert ran.of("reg_dmabuf_mr") == [["0x400", "1000", f"{GPU + 0x400:#x}", "0x3"]]


def test_symbol_of_the_real_libibverbs(bed):
    """The dynamic linker binds libibverbs' call of ioctl() to the library."""
    ran = bed.run("verbs", LD_BIND_NOW=1, LD_DEBUG="bindings", LD_LIBRARY_PATH=real_verbs())
    bound = [line for line in ran.said if "libibverbs.so.1 [0] to" in line and "`ioctl'" in line]
    assert bound
    for line in bound:
        assert "libnvpm_preload.so [0]: normal symbol" in line
