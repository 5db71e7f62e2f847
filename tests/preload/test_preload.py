# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests libnvpm_preload.so in real processes, with doubles of libibverbs and libcuda. For each
test, mutants.py has a mistake that the test must notice."""

import errno
import os
import subprocess

import pytest

GPU, POOL, NO_MEMORY = 0x7E0000000000, 0x7E1000000000, 0x1000
# Memory of the host that CUDA knows.
PINNED = 0x7E2000000000
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


# ---- calls that reach the library --------------------------------------------------


@pytest.mark.parametrize("verbs", ["new", "symbolic"])
@pytest.mark.parametrize("access", [LOCAL, LOCAL | WRITE])
def test_linked_program(bed, access, verbs):
    """verbs.h calls one function if the flags are a constant, and another one for other flags. In
    Ubuntu, calls from libibverbs to its own functions do not reach the preloaded library. The
    registrations must be translated in each of these cases."""
    words = ("cuda context", reg(GPU, access=access), f"iova {GPU:#x} 4096 1 0x7000")
    ran = bed.run(*words, client="linked", verbs=verbs)
    assert ran.printed == 2 * registered(GPU, 4096)
    assert [seen[2:] for seen in ran.of("reg_dmabuf_mr")] == [
        [f"{GPU:#x}", f"{access:#x}"],
        ["0x7000", "0x1"],
    ]


def test_locally_opened_libibverbs(bed):
    """The program opens libibverbs with RTLD_LOCAL and finds functions with dlvsym(), as NCCL and
    NVSHMEM do."""
    ran = bed.run(LOCALLY, reg(GPU))
    assert ran.printed == registered(GPU, 4096)
    assert ran.of("reg_dmabuf_mr") == [["0", "4096", f"{GPU:#x}", "0x1"]]


def test_locally_opened_libibverbs_of_ubuntu(bed):
    """This registration does not reach the library, so the program must receive the real result."""
    ran = bed.run(LOCALLY, reg(GPU), verbs="symbolic")
    assert ran.printed == failed(errno.EFAULT)


def test_libibverbs_opened_after_a_look(bed):
    ran = bed.run("probe", LOCALLY, reg(GPU))
    assert ran.printed == failed(errno.EOPNOTSUPP) + registered(GPU, 4096)


def test_reg_mr_iova(bed):
    ran = bed.run(LOCALLY, f"iova {GPU + 0x400:#x} 100 1 0x7400")
    assert ran.printed == registered(GPU + 0x400, 100)
    assert ran.of("reg_dmabuf_mr") == [["0x400", "100", "0x7400", "0x1"]]


@pytest.mark.parametrize("client, words", [("client", LOCALLY), ("linked", "cuda context")])
@pytest.mark.parametrize("mask, iova", [(2, GPU), (3, 0x9000)])
def test_reg_mr_ex(bed, client, words, mask, iova):
    """dlvsym() in libibverbs returns the real function, so only a call by name reaches the
    library."""
    ran = bed.run(words, f"ex {GPU:#x} 4096 1 0x9000 {mask}", client=client)
    if client == "client":
        assert ran.printed == failed(errno.EFAULT)
    else:
        assert ran.printed == registered(GPU, 4096)
        assert ran.of("reg_dmabuf_mr") == [["0", "4096", f"{iova:#x}", "0x1"]]


@pytest.mark.parametrize("mask", [0, 2 | 4, 2 | 16, 2 | 1 << 40])
def test_reg_mr_ex_of_something_else(bed, mask):
    """A request has a descriptor, a DMA handle or an unknown member. The library must pass such a
    request on to the real function, and return its answer."""
    ran = bed.run("cuda context", f"ex {GPU:#x} 4096 1 0 {mask}", client="linked")
    assert ran.printed == failed(errno.EFAULT)
    assert not ran.cuda[2:]


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


def test_program_without_libibverbs(bed):
    ran = bed.run("probe", "libraries")
    assert ran.printed[0] == f"errno={errno.EOPNOTSUPP}"
    assert not [line for line in ran.printed if "libibverbs" in line or "libcuda" in line]


def test_what_is_registered_meanwhile(bed):
    """A call of ibv_reg_mr() inside ibv_reg_dmabuf_mr() must receive the real answer. The next call
    must be translated again."""
    ran = bed.run(LOCALLY, reg(GPU), reg(GPU + 4096), REENTER=1)
    assert ran.of("inner") == 2 * [["failed", str(errno.EFAULT)]]
    assert ran.printed == registered(GPU, 4096) + registered(GPU + 4096, 4096)


# ---- threads and processes --------------------------------------------------


def test_thread_without_context(bed):
    """The library gives the thread the context of the pointer, and takes the context away
    afterwards."""
    ran = bed.run("cuda verbs thread", reg(GPU), reg(GPU + 4096))
    assert ran.printed == registered(GPU, 4096) + registered(GPU + 4096, 4096)
    assert ran.of("push") == 2 * [["0xc0"]]
    assert ran.of("left") == [["pushed=0", "retained=0"]]


def test_pool_in_a_thread_without_context(bed):
    """Memory of a pool has no context, so the library gives the thread the primary context of the
    GPU that has the memory, which is the second one. The library takes the context away
    afterwards."""
    ran = bed.run("cuda verbs thread", reg(POOL), reg(POOL + 4096))
    assert ran.printed == registered(POOL, 4096) + registered(POOL + 4096, 4096)
    assert ran.of("push") == 2 * [["0xc2"]]
    assert ran.of("left") == [["pushed=0", "retained=0"]]


def test_context_that_cannot_be_pushed(bed):
    ran = bed.run("cuda verbs", reg(POOL), cuCtxPushCurrent_v2=201)
    assert ran.printed == failed(errno.EFAULT)
    assert ran.of("left") == [["pushed=0", "retained=0"]]
    assert not {"cuCtxPopCurrent_v2", "cuMemGetHandleForAddressRange"} & set(ran.calls)


def test_context_of_the_thread(bed):
    ran = bed.run(LOCALLY, reg(GPU), reg(POOL))
    assert ran.printed == registered(GPU, 4096) + registered(POOL, 4096)
    assert ran.calls.count("cuCtxPushCurrent_v2") == 1
    assert ran.of("left") == [["pushed=1", "retained=0"]]


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


def test_no_memory_to_enter(bed):
    """The C library cannot store the value by which a thread knows that it is inside the library.
    The program must receive the real function's error, and not that of the C library."""
    ran = bed.run(LOCALLY, reg(GPU), **on_system(bed, SETSPECIFIC_ERRNO=errno.ENOMEM))
    assert ran.printed == failed(errno.EFAULT)
    assert not ran.cuda[2:]


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


def test_libibverbs_without_dma_bufs(bed):
    ran = bed.run(LOCALLY, reg(GPU), "reg host 4096 1", verbs="old")
    assert ran.printed[0] == f"errno={errno.EOPNOTSUPP}"
    assert ran.printed[1].startswith("addr=0x")


def test_libcuda_without_dma_bufs(bed):
    ran = bed.run(LOCALLY, reg(GPU), cuda="old_cuda", NVPM_PRELOAD_LOG=1)
    assert ran.printed == failed(errno.EOPNOTSUPP)
    assert "answered nothing: this libcuda does not have it" in ran.said[0]


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


def test_real_libibverbs(bed):
    """The dynamic linker binds libibverbs' call of ibv_reg_mr_iova2() to the library."""
    real = subprocess.run(
        ["cc", "-print-file-name=libibverbs.so.1"], capture_output=True, text=True
    )
    path = os.path.realpath(real.stdout.strip())
    ran = bed.run(
        "verbs", LD_BIND_NOW=1, LD_DEBUG="bindings", LD_LIBRARY_PATH=os.path.dirname(path)
    )
    bound = [line for line in ran.said if "`ibv_reg_mr_iova2'" in line]
    assert bound
    for line in bound:
        assert "libibverbs.so.1 [0] to" in line
        assert "libnvpm_preload.so [0]: normal symbol" in line
