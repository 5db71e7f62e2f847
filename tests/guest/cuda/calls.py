# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lab's CUDA keeps CUDA's promises; no RDMA in this."""
import ctypes
import os
import signal
import subprocess
import sys
import threading

from lab import *


def touch():
    """In a process of its own, which the kernel ends."""
    context()
    ctypes.string_at(alloc(4096), 1)


def before_and_after_init():
    equal("before cuInit", "CUDA_ERROR_NOT_INITIALIZED", error("cuDeviceGet", place(), 0))
    equal("version", 12040, result(I32, "cuDriverGetVersion"))
    call("cuInit", 0)
    equal("no context", "CUDA_ERROR_INVALID_CONTEXT", error("cuMemAlloc_v2", place(), 4096))
    equal("no such device", "CUDA_ERROR_INVALID_DEVICE", error("cuDeviceGet", place(), 1))
    equal("error without a name", "CUDA_ERROR_INVALID_VALUE", error("cuGetErrorName", 12345, place()))
    equal("compute mode: default", 0, result(I32, "cuDeviceGetAttribute", 20, 0))
    equal("DMA-BUF", 0, result(I32, "cuDeviceGetAttribute", 124, 0))
    equal("GPUDirect RDMA", 1, result(I32, "cuDeviceGetAttribute", 116, 0))
    bus = ctypes.create_string_buffer(32)
    call("cuDeviceGetPCIBusId", bus, 32, 0)
    check("the device is on the PCI bus", os.path.exists(f"/sys/bus/pci/devices/{bus.value.decode().lower()}"))
    equal("found by its place there", 0, result(I32, "cuDeviceGetByPCIBusId", bus))


def allocation():
    equal("no bytes", "CUDA_ERROR_INVALID_VALUE", error("cuMemAlloc_v2", place(), 0))
    equal("more than there is", "CUDA_ERROR_OUT_OF_MEMORY", error("cuMemAlloc_v2", place(), 1 << 40))
    before = counter("live_allocations")
    first, second = alloc(100), alloc(5000)
    equal("small neighbours: distance", 512, second - first)
    equal("small neighbours: the driver knows one block", before + 1, counter("live_allocations"))
    half = alloc(MIB + 1)
    equal("more than half a block: behind them, 512 bytes apart", second + 5120, half)
    equal("the driver still knows one block", before + 1, counter("live_allocations"))
    other_half = alloc(MIB + 1)
    equal("no room in it: another block", (before + 2, 0), (counter("live_allocations"), other_half % (2 * MIB)))
    equal("what fits in the first goes there", half + MIB + 512, alloc(4096))
    free(half + MIB + 512)
    whole = alloc(2 * MIB)
    equal("2 MiB: a whole block", (before + 3, 0), (counter("live_allocations"), whole % (2 * MIB)))
    large = alloc(2 * MIB + 1)
    equal("more than 2 MiB: begins at 2 MiB", (before + 4, 0), (counter("live_allocations"), large % (2 * MIB)))
    last = alloc(2 * MIB - 512)
    equal("nothing shares its blocks", (before + 5, 0), (counter("live_allocations"), last % (2 * MIB)))
    free(first)
    equal("the first of a block is gone", before + 5, counter("live_allocations"))
    equal("its address is the next one's", first, alloc(512))
    equal("freed twice", "CUDA_ERROR_INVALID_VALUE", (free(second), error("cuMemFree_v2", second))[1])
    for address in (first, half, other_half, whole, large, last):
        free(address)
    equal("all are gone", before, counter("live_allocations"))
    one = alloc(4 * MIB)
    equal("more than there are addresses", "CUDA_ERROR_OUT_OF_MEMORY",
          error("cuMemAlloc_v2", place(), (1 << 64) - 4 * MIB))
    free(one)


def range_around(address):
    start, size = U64(), U64()
    call("cuMemGetAddressRange_v2", ctypes.byref(start), ctypes.byref(size), address)
    return start.value, size.value


def allocations_that_share():
    """Whatever they share, each is a buffer of its own."""
    one, other = alloc(3000), alloc(MIB + 1)
    equal("they share a block", one + 3072, other)
    for name, address, size in (("one", one, 3000), ("other", other, MIB + 1)):
        equal(f"{name}: the range around its last byte", (address, size), range_around(address + size - 1))
        equal(f"{name}: the attributes of its last byte", (address, size),
              (attribute(U64, 11, address + size - 1), attribute(U64, 12, address + size - 1)))
    equal("between them there is nothing", "CUDA_ERROR_NOT_FOUND",
          error("cuMemGetAddressRange_v2", place(), place(), one + 3000))
    check("each has a number of its own", attribute(U64, 7, one) != attribute(U64, 7, other))
    call("cuPointerSetAttribute", ctypes.byref(U32(1)), 6, one)
    equal("synchronous copies of one alone", (1, 0), (attribute(U32, 6, one), attribute(U32, 6, other)))
    free(one)
    free(other)


def attributes():
    address = alloc(3000)
    equal("type of memory", 2, attribute(U32, 2, address))
    equal("start of the range, from its middle", address, attribute(U64, 11, address + 2000))
    equal("size of the range", 3000, attribute(U64, 12, address + 2999))
    equal("past its end", "CUDA_ERROR_INVALID_VALUE", error("cuPointerGetAttribute", place(), 2, address + 3000))
    equal("may be pinned", 1, attribute(U32, 15, address))
    equal("device", 0, attribute(I32, 9, address))
    call("cuPointerSetAttribute", ctypes.byref(U32(1)), 6, address)
    equal("synchronous copies, as set", 1, attribute(U32, 6, address))
    first = attribute(U64, 7, address)
    free(address)
    again = alloc(3000)
    check("another buffer at its address has another number", again == address and attribute(U64, 7, again) != first)
    own = ctypes.create_string_buffer(64)
    equal("the program's own memory", "CUDA_ERROR_INVALID_VALUE",
          error("cuPointerGetAttribute", place(), 2, ctypes.addressof(own)))
    free(again)


def copies():
    data = pattern(1, 3 * MIB + 17)
    a, b = alloc(len(data)), alloc(len(data))
    put(a, data)
    call("cuMemcpyDtoD_v2", b, a, len(data))
    same("to the GPU, across it, and back", data, get(b, len(data)))
    call("cuMemsetD8_v2", a + 5, 0xEE, 100001)
    same("filled with bytes", data[:5] + b"\xee" * 100001 + data[100006:], get(a, len(data)))
    call("cuMemsetD16_v2", a, 0x1234, 33333)
    call("cuMemsetD32_v2", b, 0x12345678, 33333)
    equal("filled with words", b"\x34\x12" * 33333, get(a, 66666))
    equal("filled with long words", b"\x78\x56\x34\x12" * 33333, get(b, 133332))
    equal("not aligned", "CUDA_ERROR_INVALID_VALUE", error("cuMemsetD32_v2", a + 2, 0, 1))
    equal("past the end", "CUDA_ERROR_INVALID_VALUE", error("cuMemcpyHtoD_v2", a + len(data) - 8, data, 9))
    equal("to what is no GPU memory", "CUDA_ERROR_INVALID_VALUE",
          error("cuMemcpyHtoD_v2", ctypes.addressof(ctypes.create_string_buffer(8)), data, 8))
    free(a)
    equal("to what was freed", "CUDA_ERROR_INVALID_VALUE", error("cuMemcpyHtoD_v2", a, data, 8))
    free(b)
    one = alloc(2 * MIB)
    equal("memory comes scrubbed, not with what others left", b"\xdb" * 4096, get(one, 4096))
    free(one)


def processes():
    touched = subprocess.run([sys.executable, __file__, "touch"], check=False)
    equal("the CPU faults on a device pointer", -signal.SIGSEGV, touched.returncode)
    child = os.fork()
    if not child:
        os._exit(error("cuMemAlloc_v2", place(), 64) == "CUDA_ERROR_NOT_INITIALIZED")
    equal("a child of fork has no CUDA", 1, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def in_thread(function):
    """What a function answers in a new thread, which has no context."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    return answers[0]


def a_context_that_is_gone(first, gone):
    """It may be set current; what is done in it fails."""
    equal("a context that is gone: set", "CUDA_SUCCESS", error("cuCtxSetCurrent", gone))
    equal("it is current", gone, result(ctypes.c_void_p, "cuCtxGetCurrent"))
    data = ctypes.create_string_buffer(8)
    for name, arguments in (("cuMemAlloc_v2", (place(), 64)), ("cuCtxSynchronize", ()),
                            ("cuMemcpyHtoD_v2", (0, data, 8)), ("cuStreamCreate", (place(), 0))):
        equal(f"in it: {name}", "CUDA_ERROR_CONTEXT_IS_DESTROYED", error(name, *arguments))
    equal("never a context", "CUDA_ERROR_INVALID_CONTEXT", error("cuCtxSetCurrent", gone + 1))
    call("cuCtxSetCurrent", first)
    call("cuCtxSynchronize")
    ok("another takes its place")


def contexts(first):
    before = counter("live_allocations")
    second = context()
    alloc(100), alloc(3 * MIB)
    equal("pushed by creation", second, result(ctypes.c_void_p, "cuCtxGetCurrent"))
    shared = alloc(100)
    equal("another thread has none", "CUDA_ERROR_INVALID_CONTEXT", in_thread(lambda: error("cuCtxSynchronize")))
    for name, arguments in (("cuMemAlloc_v2", (place(), 64)), ("cuMemsetD8_v2", (shared, 0, 8)),
                            ("cuMemcpyDtoD_v2", (shared, shared, 8))):
        equal(f"without one: {name}", "CUDA_ERROR_INVALID_CONTEXT", in_thread(lambda: error(name, *arguments)))
    equal("but knows what memory is", 100, in_thread(lambda: attribute(U64, 12, shared)))
    equal("and may free it", ("CUDA_SUCCESS", "CUDA_ERROR_INVALID_VALUE"),
          in_thread(lambda: (error("cuMemFree_v2", shared), error("cuMemFree_v2", shared))))
    call("cuCtxDestroy_v2", second)
    equal("memory goes with its context", before, counter("live_allocations"))
    equal("the one before is current", first, result(ctypes.c_void_p, "cuCtxGetCurrent"))
    a_context_that_is_gone(first, second)
    primary = result(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", 0)
    equal("the primary one is shared", primary, result(ctypes.c_void_p, "cuDevicePrimaryCtxRetain", 0))
    call("cuCtxPushCurrent_v2", primary)
    alloc(100)
    call("cuDevicePrimaryCtxRelease_v2", 0)
    equal("it stays for who retains it", before + 1, counter("live_allocations"))
    call("cuDevicePrimaryCtxRelease_v2", 0)
    equal("and goes with the last", before, counter("live_allocations"))
    equal("work in it", "CUDA_ERROR_CONTEXT_IS_DESTROYED", error("cuMemAlloc_v2", place(), 64))
    call("cuCtxPopCurrent_v2", None)


def word(address, size=4):
    return int.from_bytes(get(address, size), "little")


def stream_order():
    stream = result(ctypes.c_void_p, "cuStreamCreate", 1)
    flag, target = alloc(64), alloc(2 * MIB)
    put(flag, bytes(64))
    put(target, bytes(4096))
    call("cuStreamWaitValue32_v2", stream, flag, 7, 1)
    call("cuMemsetD8Async", target, 0xAB, 4096, stream)
    call("cuStreamWriteValue32_v2", stream, flag + 4, 1, 0)
    event = result(ctypes.c_void_p, "cuEventCreate", 0)
    call("cuEventRecord", event, stream)
    equal("a stream waits", "CUDA_ERROR_NOT_READY", error("cuStreamQuery", stream))
    equal("so does an event in it", "CUDA_ERROR_NOT_READY", error("cuEventQuery", event))
    equal("what comes later is not done", (bytes(8), 0), (get(target, 8), word(flag + 4)))
    put(flag, (7).to_bytes(4, "little"))
    call("cuEventSynchronize", event)
    equal("done when the word is there", (b"\xab" * 4096, 1), (get(target, 4096), word(flag + 4)))
    called = []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, I32, ctypes.c_void_p)(lambda *what: called.append(what[1:]))
    call("cuStreamAddCallback", stream, function, 0x77, 0)
    call("cuStreamSynchronize", stream)
    equal("a callback", [(0, 0x77)], called)
    put(flag, bytes(64))
    call("cuStreamWaitValue32_v2", stream, flag, 7, 1)
    call("cuStreamWriteValue32_v2", stream, flag + 4, 2, 0)
    call("cuStreamDestroy_v2", stream)
    equal("let go of, it still has to wait", 0, word(flag + 4))
    put(flag, (7).to_bytes(4, "little"))
    call("cuCtxSynchronize")
    equal("and does all that it was given", 2, word(flag + 4))
    equal("a stream that is gone", "CUDA_ERROR_INVALID_HANDLE", error("cuStreamQuery", stream))
    free(flag)
    free(target)


def stream_waits():
    """Each condition, of both sizes, with what just does not meet it, and does."""
    stream = result(ctypes.c_void_p, "cuStreamCreate", 1)
    host = ctypes.create_string_buffer(8)
    call("cuMemHostRegister_v2", host, 8, 0)
    device = alloc(8)
    cases = [("GEQ", 0, 5, 4, 5), ("GEQ, around 0", 0, 2, -3, 2), ("EQ", 1, 5, 6, 5),
             ("AND", 2, 6, 1, 2), ("NOR", 3, 0, -1, -2)]
    for where, address in (("the GPU", device), ("the CPU", ctypes.addressof(host))):
        for size in (4, 8):
            for name, flag, value, unmet, met in cases:
                value &= (1 << 8 * size) - 1
                call("cuMemcpy", address, unmet.to_bytes(8, "little", signed=True), 8)
                call(f"cuStreamWaitValue{8 * size}_v2", stream, address, value, flag)
                waits = error("cuStreamQuery", stream)
                call("cuMemcpy", address, met.to_bytes(8, "little", signed=True), 8)
                call("cuStreamSynchronize", stream)
                equal(f"{name} of {8 * size} bits in memory of {where}", "CUDA_ERROR_NOT_READY", waits)
    equal("a word that the GPU cannot reach", "CUDA_ERROR_INVALID_VALUE",
          error("cuStreamWaitValue32_v2", stream, ctypes.addressof(ctypes.create_string_buffer(8)), 0, 0))
    batch = (U64 * 18)()
    batch[0:4] = 2, device, 0xCAFE, 0
    batch[6:10] = 1, device, 0xCAFE, 1
    batch[12:16] = 5, device, 0x1122334455667788, 0
    call("cuStreamBatchMemOp_v2", stream, 3, batch, 0)
    call("cuStreamSynchronize", stream)
    equal("three operations in one call", 0x1122334455667788, word(device, 8))
    call("cuMemHostUnregister", host)
    free(device)


def streams_of_a_context_that_ends():
    end = context()
    stream = result(ctypes.c_void_p, "cuStreamCreate", 0)
    flag = alloc(4)
    put(flag, bytes(4))
    for made in (stream, result(ctypes.c_void_p, "cuStreamCreate", 1)):
        call("cuStreamWaitValue32_v2", made, flag, 1, 1)
    call("cuStreamDestroy_v2", made)
    call("cuCtxDestroy_v2", end)
    ok("a context ends under streams that wait")


def virtual_memory():
    before = counter("live_frames")
    size = 2 * MIB
    prop = (U32 * 8)(1, 0, 1, 0, 0, 0, 1 << 8, 0)
    space = result(U64, "cuMemAddressReserve", 4 * size, 0, 0, 0)
    one, two = (result(U64, "cuMemCreate", size, prop, 0) for _ in range(2))
    equal("what is made takes memory", before + 2 * size // 65536, counter("live_frames"))
    call("cuMemMap", space, size, 0, one, 0)
    call("cuMemMap", space + size, size, 0, two, 0)
    equal("mapped, not accessible", "CUDA_ERROR_INVALID_VALUE", error("cuMemcpyHtoD_v2", space, b"x", 1))
    access = (U32 * 3)(1, 0, 3)
    call("cuMemSetAccess", space, 2 * size, access, 1)
    data = pattern(2, 2 * size - 7)
    put(space + 3, data)
    same("written across two mappings", data, get(space + 3, len(data)))
    equal("where something is mapped", "CUDA_ERROR_INVALID_VALUE", error("cuMemMap", space, size, 0, two, 0))
    equal("more than it is", "CUDA_ERROR_NOT_SUPPORTED", error("cuMemMap", space + 2 * size, 2 * size, 0, one, 0))
    equal("past its end", "CUDA_ERROR_NOT_SUPPORTED", error("cuMemMap", space + 2 * size, size, size, one, 0))
    large = result(U64, "cuMemCreate", 2 * size, prop, 0)
    equal("a part of it", "CUDA_ERROR_NOT_SUPPORTED", error("cuMemMap", space + 2 * size, size, 0, large, 0))
    call("cuMemRelease", large)
    call("cuMemMap", space + 3 * size, size, 0, one, 0)
    call("cuMemSetAccess", space + 3 * size, size, access, 1)
    call("cuMemUnmap", space, size)
    same("elsewhere it is the same memory", data[:1000], get(space + 3 * size + 3, 1000))
    equal("where it was there is none", "CUDA_ERROR_INVALID_VALUE", error("cuMemcpyHtoD_v2", space, b"x", 1))
    equal("addresses in use", "CUDA_ERROR_INVALID_VALUE", error("cuMemAddressFree", space, 4 * size))
    call("cuMemRelease", one)
    same("it outlives its handle", data[:1000], get(space + 3 * size + 3, 1000))
    call("cuMemUnmap", space + 3 * size, size)
    equal("and goes with the last mapping", before + size // 65536, counter("live_frames"))
    call("cuMemUnmap", space + size, size)
    call("cuMemRelease", two)
    call("cuMemAddressFree", space, 4 * size)
    equal("nothing is left of it", before, counter("live_frames"))


def by_name():
    def find(name, version):
        function, status = ctypes.c_void_p(), I32()
        code = cuda.cuGetProcAddress_v2(name, ctypes.byref(function), version, U64(0), ctypes.byref(status))
        return code, function.value, status.value

    address = ctypes.cast(cuda.cuMemAlloc_v2, ctypes.c_void_p).value
    equal("cuGetProcAddress", (0, address, 0), find(b"cuMemAlloc", 12000))
    equal("of a call that is newer", (0, None, 2), find(b"cuMemMap", 9000))
    equal("of none", (0, None, 1), find(b"cuMakeCoffee", 12000))


def not_supported():
    for name in ("cuMemAllocManaged", "cuIpcGetMemHandle", "cuMemGetHandleForAddressRange", "cuLaunchKernel",
                 "cuMemAllocAsync", "cuMemExportToShareableHandle", "cuMemGetInfo_v2"):
        equal(name, "CUDA_ERROR_NOT_SUPPORTED", error(name, place(), 64, 0))
    equal("streams of a thread", "CUDA_ERROR_NOT_SUPPORTED", error("cuStreamQuery", 2))
    equal("events between processes", "CUDA_ERROR_NOT_SUPPORTED", error("cuEventCreate", place(), 6))


def runtime():
    rt = ctypes.CDLL("libcudart.so.12")
    rt.cudaGetErrorString.restype = ctypes.c_char_p
    address, data = U64(), pattern(3, 70001)
    back = ctypes.create_string_buffer(len(data))
    equal("runtime: device", (0, 101), (rt.cudaSetDevice(0), rt.cudaSetDevice(1)))
    equal("runtime: allocation", 0, rt.cudaMalloc(ctypes.byref(address), U64(len(data))))
    rt.cudaMemcpy(address, data, U64(len(data)), 1)
    equal("runtime: copies", 0, rt.cudaMemcpy(back, address, U64(len(data)), 4))
    same("runtime: what was copied", data, back.raw)
    equal("runtime: a wrong direction", 21, rt.cudaMemcpy(back, address, U64(1), 7))
    equal("runtime: free, and free again", (0, 1), (rt.cudaFree(address), rt.cudaFree(address)))
    equal("runtime: all is done", 0, rt.cudaDeviceSynchronize())
    equal("runtime: an error in words", b"invalid argument", rt.cudaGetErrorString(1))


if sys.argv[1:] == ["touch"]:
    touch()
before_and_after_init()
first = context()
for part in (allocation, allocations_that_share, attributes, copies, processes):
    part()
contexts(first)
for part in (stream_order, stream_waits, streams_of_a_context_that_ends, virtual_memory, by_name, not_supported,
             runtime):
    part()
