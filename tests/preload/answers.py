# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Makes mistakes with CUDA, and prints the error numbers as a dictionary. test_libcuda.py has the
answers of a real GPU."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
MIB = 1 << 20


def pointer(kind=ctypes.c_void_p):
    """Returns a variable for a pointer, and the pointer to the variable."""
    variable = kind()
    return variable, ctypes.byref(variable)


def context():
    variable, to = pointer()
    assert cuda.cuCtxCreate_v2(to, 0, first()) == 0
    return variable


def first():
    """Returns the device of the first GPU."""
    device, to = pointer(ctypes.c_int)
    assert cuda.cuDeviceGet(to, 0) == 0
    return device


def memory():
    variable, to = pointer(ctypes.c_uint64)
    return cuda.cuMemAlloc_v2(to, ctypes.c_size_t(4 * MIB)), variable


def pop():
    return cuda.cuCtxPopCurrent_v2(pointer()[1])


def destroyed_twice():
    one = context()
    return [cuda.cuCtxDestroy_v2(one), cuda.cuCtxDestroy_v2(one)]


def primary_destroyed():
    primary, to = pointer()
    answers = [cuda.cuDevicePrimaryCtxRetain(to, first()), cuda.cuCtxDestroy_v2(primary)]
    return [*answers, cuda.cuDevicePrimaryCtxRelease_v2(first())]


def unknown_context():
    to = pointer()[1]
    flags = ctypes.c_uint(0xFFFFFFFF)
    return [cuda.cuCtxCreate_v2(to, flags, first()), cuda.cuCtxCreate_v2(to, 0, 77)]


def unknown_device():
    name = ctypes.create_string_buffer(99)
    return [cuda.cuDeviceGet(pointer(ctypes.c_int)[1], 77), cuda.cuDeviceGetName(name, 99, -1)]


def set_and_popped():
    one, two = context(), context()
    answers = [cuda.cuCtxSetCurrent(one), pop(), cuda.cuCtxSetCurrent(None), pop()]
    cuda.cuCtxDestroy_v2(one)
    cuda.cuCtxDestroy_v2(two)
    return answers


def destroyed_below():
    one, two = context(), context()
    answers = [cuda.cuCtxDestroy_v2(one), pop(), memory()[0]]
    pop()
    cuda.cuCtxDestroy_v2(two)
    return answers


def without_context():
    one = context()
    answers = [pop(), memory()[0]]
    cuda.cuCtxDestroy_v2(one)
    return answers


def exported(address, size, flags=0, kind=1):
    to = pointer(ctypes.c_int)[1]
    size, flags = ctypes.c_size_t(size), ctypes.c_ulonglong(flags)
    return cuda.cuMemGetHandleForAddressRange(to, address, size, kind, flags)


def main():
    assert cuda.cuInit(0) == 0
    answers = {
        "a context is destroyed twice": destroyed_twice(),
        "no context is destroyed": [cuda.cuCtxDestroy_v2(None)],
        "a primary context is destroyed": primary_destroyed(),
        "a primary context is released that nobody has retained": [
            cuda.cuDevicePrimaryCtxRelease_v2(first())
        ],
        "a context with unknown flags, or on an unknown device": unknown_context(),
        "the device with an unknown number, and its name": unknown_device(),
        "set replaces the current context; NULL takes it away; a pop of nothing": set_and_popped(),
        "the context below was destroyed": destroyed_below(),
        "memory without a context": without_context(),
    }
    context()
    address = memory()[1]
    flags = [exported(address, 4 * MIB, flags) for flags in (1, 2, 3)]
    answers["an export with flags 1, 2 and 3"] = flags
    answers["an export of less than a page, of nothing, of another type"] = [
        exported(address, 4095),
        exported(address, 0),
        exported(address, 4 * MIB, kind=9),
    ]
    print(answers)


if __name__ == "__main__":
    main()
