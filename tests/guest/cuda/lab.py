# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What the programs here share: CUDA by ctypes, counted checks, the lab's counters."""
import ctypes
import fcntl
import random
import struct
import sys

NVIDIA = "/sys/kernel/debug/nvidia_lab/"
CORE = "/sys/kernel/debug/peer_mem_lab/"

MIB = 1 << 20
U32, U64, I32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int

# lab_gpu.h
LAB_GPU_QUERY = 0xC0304702


class CudaError(Exception):
    def __init__(self, code):
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(code, ctypes.byref(name))
        super().__init__((name.value or b"?").decode())


cuda = ctypes.CDLL("libcuda.so.1")


def plain(value):
    """An address as a 64-bit word, and not as the C int that ctypes makes of it."""
    return U64(value) if isinstance(value, int) else value


def call(name, *arguments):
    """Calls CUDA; an error is an exception called as the error is."""
    code = getattr(cuda, name)(*map(plain, arguments))
    if code:
        raise CudaError(code)


def result(kind, name, *arguments):
    """What a call stores at its first argument."""
    place = kind()
    call(name, ctypes.byref(place), *arguments)
    return place.value


def error(name, *arguments):
    try:
        call(name, *arguments)
    except CudaError as found:
        return str(found)
    return "CUDA_SUCCESS"


def place():
    return ctypes.byref(U64())


def context():
    call("cuInit", 0)
    return result(ctypes.c_void_p, "cuCtxCreate_v2", 0, 0)


def alloc(size):
    return result(U64, "cuMemAlloc_v2", size)


def free(address):
    call("cuMemFree_v2", address)


def put(address, data):
    call("cuMemcpyHtoD_v2", address, bytes(data), len(data))


def get(address, size):
    data = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", data, address, size)
    return data.raw


def pattern(seed, length):
    """Bytes that nobody writes by chance."""
    return random.Random(seed).randbytes(length)


def next_owner(size):
    """The next buffer, where one was freed."""
    address = alloc(size)
    put(address, b"next" * 1024)
    return address


def untouched(text, address):
    """What next_owner() wrote is still there."""
    same(text, b"next" * 1024, get(address, 4096))


def attribute(kind, number, address):
    return result(kind, "cuPointerGetAttribute", number, address)


def bar_offset(address):
    """Where it lies in the GPU's memory, as the host sees that."""
    with open("/dev/nvidia-lab", "r+b", buffering=0) as gpu:
        query = struct.pack("=QQQQQII", address, 0, 0, 0, 0, 0, 0)
        start, _, offset = struct.unpack("=16xQQQ8x", fcntl.ioctl(gpu, LAB_GPU_QUERY, query))
    return offset + address - start


def counter(name, where=NVIDIA):
    with open(where + "counters") as file:
        return int(dict(line.split() for line in file)[name])


def pins():
    return counter("live_pins") + counter("live_persistent_pins")


def ok(text):
    print("ok", text, flush=True)


def fail(text):
    print("fail", text, flush=True)


def check(text, holds):
    (ok if holds else fail)(text)


def equal(text, expected, found):
    if expected == found:
        ok(text)
    else:
        fail(f"{text}: expected {expected!r}, got {found!r}")


def same(text, expected, found):
    """As equal(), of bytes that are too many to show."""
    wrong = [at for at, pair in enumerate(zip(expected, found)) if pair[0] != pair[1]]
    if wrong or len(expected) != len(found):
        fail(f"{text}: {len(wrong)} of {len(expected)} bytes are wrong, the first at {wrong[:1]}")
    else:
        ok(text)


def hold():
    """Lets the scenario look around."""
    print("holding", flush=True)
    sys.stdin.readline()
