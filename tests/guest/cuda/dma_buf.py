# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs for scenarios with GPU memory that the preloaded library registers as a dma-buf, or
passes on unchanged. NAME WORD... runs one program."""

import ctypes
import errno
import os
import struct
import subprocess
import sys
import threading

import pyverbs.enums as e

from verbs_on_cuda import (
    ALL,
    MIB,
    Queue,
    alloc,
    call,
    check,
    connected,
    context,
    counters,
    equal,
    error,
    free,
    get,
    pattern,
    process,
    put,
    where_in_gpu,
)


def seen(length, seed):
    """Writes by RDMA from one buffer to the middle of another buffer. After that, the caller can
    look for the bytes in the GPU's memory."""
    length = int(length)
    made = ["gpuverbs", "pattern", "--seed", seed, "--length", str(length)]
    wanted = subprocess.run(made, capture_output=True, check=True).stdout
    context()
    here, there = connected()
    odd = 4097
    source, target = alloc(length), alloc(length + odd)
    put(source, wanted)
    mine, theirs = here.register(source, length), there.register(target + odd, length)
    status = here.post(e.IBV_WR_RDMA_WRITE, mine, source, length, theirs.rkey, target + odd)
    print(f"status={status}\ntarget_offset={where_in_gpu(target) + odd}\nholding", flush=True)
    sys.stdin.readline()
    for region in (mine, theirs):
        region.close()


def freed(way):
    """Frees registered memory, and allocates other memory at the same address. Then a peer writes
    to the address by RDMA. The way of registration, `way`, decides which memory the bytes reach."""
    revoked = way == "revocable"
    context()
    here, there = connected()
    source, target = alloc(MIB), alloc(MIB)
    mine, theirs = here.register(source, MIB), there.register(target, MIB)

    def write(seed):
        put(source, pattern(seed, MIB))
        return here.post(e.IBV_WR_RDMA_WRITE, mine, source, MIB, theirs.rkey, target)

    equal(f"{way}: written while it is there", 0, write(1))
    check(f"{way}: it has arrived", get(target, MIB) == pattern(1, MIB))
    free(target)
    equal(f"{way}: freed, its memory stays taken", [int(not revoked)], counters("live_orphans"))
    equal(f"{way}: its address is another's", target, heir := alloc(MIB))
    put(heir, pattern(2, MIB))
    status = write(3)
    refused = status == e.IBV_WC_REM_ACCESS_ERR
    equal(f"{way}: RDMA after that is refused", revoked, refused)
    equal(f"{way}: or succeeds, and nobody will ever see what it wrote", not revoked, status == 0)
    check(f"{way}: who has the address now is not hit", get(heir, MIB) == pattern(2, MIB))
    print(
        f"say {way}: a write to memory that was freed",
        "fails, and its sender knows" if refused else "succeeds, into memory that nobody has",
        flush=True,
    )
    for region in (mine, theirs):
        region.close()
    free(heir)
    free(source)
    equal(f"{way}: all memory has come back", [0, 0], counters("live_allocations", "live_orphans"))


# Numbers and flags of a key in mlx5's own commands (DevX). The flags allow local and remote reads
# and writes, of memory in pages.
CREATE_MKEY, IN_UMEM, RIGHTS = 0x200, 1 << 30, 0xF << 10 | 1 << 8


def key_of(queue, umem, address, length):
    """Makes a key for registered memory by a command of mlx5's own. Returns the object and the
    key."""
    from pyverbs.providers.mlx5.mlx5_enums import MLX5DV_OBJ_PD
    from pyverbs.providers.mlx5.mlx5dv import Mlx5DevxObj
    from pyverbs.providers.mlx5.mlx5dv_objects import Mlx5DvObj

    domain = Mlx5DvObj(MLX5DV_OBJ_PD, pd=queue.pd).dvpd.pdn
    tag, log_page, entries = 0x5A, 12, length >> 12
    command = struct.pack(">HHIII", CREATE_MKEY, 0, 0, 0, IN_UMEM)
    command += struct.pack(">IIII", RIGHTS, 0xFFFFFF << 8 | tag, 0, domain)
    command += struct.pack(">QQ20xII4x", address, length, entries // 2, log_page)
    command += struct.pack(">16xIIQ", entries // 2, umem.umem_id, 0)
    made = Mlx5DevxObj(queue.context, command.ljust(272, b"\0"), 16)
    return made, struct.unpack_from(">I", made.out_view, 8)[0] << 8 | tag


def devx(way):
    """Registers GPU memory by mlx5's own command, as programs do for their queues. If `way` is
    dma-buf, writes to the memory by RDMA, through a key that is also made by such a command."""
    from pyverbs.providers.mlx5.mlx5_enums import MLX5DV_CONTEXT_FLAGS_DEVX
    from pyverbs.providers.mlx5.mlx5dv import Mlx5Context, Mlx5DVContextAttr, Mlx5UMEM

    context()
    by_commands = Mlx5DVContextAttr(flags=MLX5DV_CONTEXT_FLAGS_DEVX)
    here, there = connected(Mlx5Context(by_commands, os.environ["HCA"]))
    source, target = alloc(MIB), alloc(MIB)
    if way != "dma-buf":
        found = error(Mlx5UMEM, there.context, MIB, target, 64, ALL)
        equal("a pointer to GPU memory: EFAULT", errno.EFAULT, found)
        return
    mine = here.register(source, MIB)
    umem = Mlx5UMEM(there.context, MIB, target, 64, ALL)
    key, number = key_of(there, umem, target, MIB)

    def write(seed):
        put(source, pattern(seed, MIB))
        return here.post(e.IBV_WR_RDMA_WRITE, mine, source, MIB, number, target)

    equal("written through a key of the device's own", 0, write(1))
    check("it has arrived", get(target, MIB) == pattern(1, MIB))
    free(target)
    equal("freed, its memory stays taken", [1], counters("live_orphans"))
    equal("RDMA after that succeeds, and nobody will ever see what it wrote", 0, write(2))
    for thing in (key, umem, mine):
        thing.close()
    equal("deregistered, the memory has come back", [0], counters("live_orphans"))
    free(source)


def answers(*expected):
    """Registers dma-bufs as a program does by itself. Checks the names of two errors of the driver:
    the error for the descriptor -1, by which programs ask whether dma-buf works, and the error for
    the dma-buf of a buffer."""
    from pyverbs.mr import DmaBufMR

    context()
    queue, address, descriptor = Queue(), alloc(MIB), ctypes.c_int()
    call("cuMemGetHandleForAddressRange", ctypes.byref(descriptor), address, MIB, 1, 0)
    wanted = [getattr(errno, name, 0) for name in expected]
    found = [error(DmaBufMR, queue.pd, MIB, ALL, number) for number in (-1, descriptor.value)]
    equal("errors of ibv_reg_dmabuf_mr, without and with a dma-buf", wanted, found)
    os.close(descriptor.value)
    free(address)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def often(times):
    """Makes many registrations, one after another, and checks that no descriptor stays open."""
    context()
    queue, address = Queue(), alloc(MIB)
    queue.register(address, MIB).close()
    before = descriptors()
    for number in range(1, int(times) + 1):
        queue.register(address + number % 512, MIB - 512).close()
        if number % 10000 == 0:
            print(f"say {number} registrations", flush=True)
    equal(f"descriptors after {times} registrations", before, descriptors())
    equal("dma-bufs after them", [0], counters("live_dma_bufs"))
    free(address)


def child(pipe, queue, address):
    pipe.send(error(queue.register, address, MIB))


def corners():
    """Checks unusual registrations. A thread without a CUDA context registers, and so does a child.
    One range is a part of a buffer, and another one is too long."""
    context()
    queue, address = Queue(), alloc(MIB)
    found = []
    thread = threading.Thread(target=lambda: found.append(error(queue.register, address, MIB)))
    thread.start()
    thread.join()
    equal("a thread without a context registers", [0], found)
    region = queue.register(address + 12345, 54321)
    equal("a part of a buffer", (address + 12345, 54321), (region.buf, region.length))
    region.close()
    equal("more than there is: EFAULT", errno.EFAULT, error(queue.register, address, 3 * MIB))
    pipe, process_of_it = process(child, queue, address)
    equal("a child after fork: EFAULT", errno.EFAULT, pipe.recv())
    process_of_it.join()
    free(address)
    equal("what was freed: EFAULT", errno.EFAULT, error(queue.register, address, MIB))


globals()[sys.argv[1]](*sys.argv[2:])
