# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Replaces libibverbs.so.1 in tests of nvpm selftest. Python imports this file when it starts.
After that, ctypes loads this double in place of libibverbs, and the lab's libcuda (tests/lab/cuda)
in place of CUDA's. An RDMA write copies at once. If a program breaks a rule, or does not free
everything, the double prints a message and ends the program. Variables in the environment:

    LIBCUDA=FILE    the lab's libcuda, which reads GPUS=N and, named like a function, an error
    HCAS="A B"      RDMA devices (mlx5_0); roce... are reached by GID, others by LID
    SERVICE=DIR     directory of nvpm
    MISSING=NAME    the library that is missing
    DOUBLE=WORD     the failure to cause; see the uses of TOLD
"""

import atexit
import ctypes
import errno
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, os.environ["SERVICE"])
from nvpm.selftest import abi  # noqa: E402 (needs the path above)

sys.path.pop(0)

# The type of the values that ctypes passes. Such a value is a number, a structure, an array, or a
# pointer to one of these.
C = Any

TOLD = os.environ.get("DOUBLE", "")
HCAS = os.environ.get("HCAS", "mlx5_0").split()
LID, MTU, LONGEST = 7, 4, 1 << (20 if TOLD == "short" else 30)
IPV4 = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 1])
# CU_POINTER_ATTRIBUTE_...
SYNC_MEMOPS, BUFFER_ID, DEVICE_ORDINAL = 6, 7, 9
cuda = ctypes.CDLL(os.environ["LIBCUDA"])

objects: Counter[str] = Counter()
# `pending` has the statuses of completions. `regions` has the start, the end and the ID of the GPU
# memory of each region, by the region's key. `by_dma_buf` has the keys of regions that were made
# from dma-bufs.
pending: list[str] = []
regions: dict[int, tuple[int, int, int]] = {}
qps: list["Qp"] = []
by_dma_buf: set[int] = set()
# With DOUBLE=slow, the last device is a hundred times slower by dma-buf with the second GPU. This
# set has the keys of the regions of that device and GPU. The clock shows the time that the messages
# would have taken.
slow_keys: set[int] = set()
begun: set[tuple[int, int]] = set()
clock = [0.0]
if TOLD in ("slow", "slow_first"):
    time.monotonic = lambda: clock[0]


def rule(kept: object, text: str) -> None:
    if not kept:
        print("double: a rule is broken:", text, file=sys.stderr, flush=True)
        os._exit(99)


@atexit.register
def left() -> None:
    rule(not +objects, f"objects are left at the end: {+objects}")
    files = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    rule(not [name for name in files if "dma-buf" in name], "open dma-bufs")
    rule(not cuda.lab_left(), "GPU memory or contexts are left at the end")


def made(what: str, value: C = None) -> C:
    objects[what] += 1
    return value


def gone(what: str) -> None:
    objects[what] -= 1


def failed(number: int) -> None:
    """Returns NULL, and sets errno."""
    ctypes.set_errno(number)


def gives_back(what: str) -> Callable[[object, object], None]:
    return lambda _self, _object: gone(what)


def attribute(number: int, address: int) -> int:
    """Returns what CUDA says about memory, or 0 if the memory is not CUDA's."""
    value = ctypes.c_uint64(0)
    cuda.cuPointerGetAttribute(ctypes.byref(value), number, ctypes.c_uint64(address))
    return value.value


def buffer_at(address: int) -> int:
    """Returns the ID of the GPU memory at the address, or 0."""
    return attribute(BUFFER_ID, address)


def copy(to: int, source: int, length: int) -> None:
    """Copies bytes as a device does, which also reaches memory of a GPU. In the double, memory that
    was freed is gone, although it stays pinned. A device then copies nothing."""
    there = ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(length)
    error = cuda.cuMemcpy(*there)
    freed = any(region[2] and not buffer_at(region[0]) for region in regions.values())
    rule(not error or freed, f"the device copies (error {error})")


def new_region(address: int, length: int) -> int:
    """Returns the key of a region."""
    buffer = buffer_at(address)
    synchronous = attribute(SYNC_MEMOPS, address)
    rule(not buffer or synchronous == 1, "copies of registered GPU memory are synchronous")
    key = 0x70 + len(regions)
    regions[key] = address, address + length, buffer
    return key


def reach(key: C, address: C, length: C) -> int | None:
    """Returns the address if the device reaches the memory at this address, or None. The device
    reaches freed memory only if the memory stays pinned."""
    rule(key in regions, "each key belongs to a region")
    start, end, buffer = regions[key]
    rule(start <= address and address + length <= end, "accesses stay inside a region")
    stays = TOLD == "pinned" or key in by_dma_buf
    return None if buffer_at(start) != buffer and not stays else address


def poll_cq(_cq: C, count: C, completion: C) -> int:
    number: int = min(len(pending), count)
    for at in range(number):
        completion[at].status = abi.IBV_WC.index(pending.pop(0))
    return number


def post_send(_qp: C, request: C, _bad: C) -> int:
    wr, element = request[0], request[0].sg_list[0]
    local = reach(element.lkey, element.addr, element.length)
    remote = reach(wr.wr.rdma.rkey, wr.wr.rdma.remote_addr, element.length)
    rule(all(one.state == abi.IBV_QPS_RTS for one in qps), "both queue pairs are ready")
    rule(
        wr.num_sge == 1 and wr.send_flags == abi.IBV_SEND_SIGNALED and not wr.next,
        "one signaled request",
    )
    rule(
        len(pending) < qps[0].depth and element.length <= LONGEST,
        "no more messages than the queue has room for, and none longer than the port allows",
    )
    is_slow = slow_keys & {element.lkey, wr.wr.rdma.rkey}
    if TOLD == "slow_first" and element.length > 4096:
        # Only the first transfer in each direction is slow.
        direction = wr.wr.rdma.remote_addr, element.addr
        is_slow = set() if direction in begun else {1}
        begun.add(direction)
    clock[0] += element.length / (1e8 if is_slow else 1e10)
    rule(
        wr.opcode == abi.IBV_WR_RDMA_READ
        or (wr.opcode == abi.IBV_WR_RDMA_WRITE and local and remote),
        "read or write, and nothing is written after the memory was freed",
    )
    if TOLD in ("lost", "no_descriptor"):
        return 0 if TOLD == "lost" else errno.ENOMEM
    pending.append("SUCCESS")
    if not local or not remote:
        pending[:] = ["RETRY_EXC_ERR" if TOLD == "silent" else "REM_ACCESS_ERR"]
        return 0
    to, source = (local, remote) if wr.opcode == abi.IBV_WR_RDMA_READ else (remote, local)
    where = "to_gpu" if buffer_at(to) else "from_gpu"
    if f"nothing_{where}" != TOLD:
        copy(to, source, element.length)
    if f"wrong_{where}" == TOLD:
        byte = ctypes.c_uint8()
        copy(ctypes.addressof(byte), to + 12345, 1)
        byte.value ^= 1
        copy(to + 12345, ctypes.addressof(byte), 1)
    return 0


# The contexts contain pointers to these functions, so the functions must exist as long as any
# context.
OPS = {"poll_cq": abi.poll_cq(poll_cq), "post_send": abi.post_send(post_send)}


def query_device_ex(context: C, asked: C, attributes: C, size: int) -> int:
    """Fills in the attributes as libmlx5 of rdma-core 17 does: it clears SIZE bytes, and then
    writes fields behind them. A device whose name ends with 1 cannot page on demand."""
    device = HCAS[abi.ibv_context.from_address(context).device - 1]
    rule(not asked and size == 264, "the form of a question about a device")
    if TOLD == "query_crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if TOLD == "query_fails" and device == HCAS[0]:
        return errno.EINVAL
    start = ctypes.addressof(attributes.contents)
    ctypes.memset(start, 0, size)
    ctypes.memset(start + size, 0xFF, 80)
    # IBV_ODP_SUPPORT_IMPLICIT alone would be no support.
    ctypes.c_uint64.from_address(start + 240).value = 3 - (device.endswith("1") or TOLD == "no_odp")
    return 0


QUERY = abi.query_device_ex(query_device_ex)
# The contexts that exist. Each lies in a larger structure.
wholes: list[C] = []


class Qp(abi.ibv_qp):  # type: ignore[misc] # the base is made at run time
    state = 0
    depth = 1

    def __init__(self, roce: bool) -> None:
        super().__init__(qp_num=0x1000011 + len(qps))
        self.roce = roce


class Verbs:
    ibv_destroy_cq = gives_back("completion queue")
    ibv_dealloc_pd = gives_back("domain")
    ibv_close_device = gives_back("device")
    ibv_free_device_list = gives_back("list")

    def ibv_get_device_list(self, count: C) -> C:
        count.value = len(HCAS)
        names = (ctypes.c_void_p * len(HCAS))(*range(1, len(HCAS) + 1))
        return made("list", ctypes.cast(names, ctypes.POINTER(ctypes.c_void_p)))

    def ibv_get_device_name(self, device: int) -> bytes:
        return HCAS[device - 1].encode()

    def ibv_open_device(self, device: C) -> C:
        if TOLD in ("rights", "forbidden"):
            return failed(errno.EACCES if TOLD == "rights" else errno.EPERM)
        ops = abi.ibv_context_ops(**OPS)
        whole = abi.verbs_context(
            sz=ctypes.sizeof(abi.verbs_context) + 8,
            query_device_ex=QUERY,
            context=abi.ibv_context(device=device, ops=ops, abi_compat=abi.EXTENDED),
        )
        # The first device alone has a context without this verb.
        nowhere = abi.query_device_ex(0x10)
        if TOLD == "no_query" and device == 1:
            whole.query_device_ex = abi.query_device_ex()
        elif TOLD == "older" and device == 1:
            whole.context.abi_compat, whole.query_device_ex = 0, nowhere
        elif TOLD == "shorter" and device == 1:
            whole.sz, whole.query_device_ex = 8, nowhere
        wholes.append(whole)
        return made("device", ctypes.pointer(whole.context))

    def ibv_query_port(self, _context: C, port: C, attributes: C) -> None:
        rule(port == 1, "only the active port is asked")
        attributes.active_mtu, attributes.max_msg_sz, attributes.lid = MTU, LONGEST, LID
        # Some InfiniBand subnets demand a route by GID.
        attributes.flags = abi.IBV_QPF_GRH_REQUIRED * (TOLD == "grh")

    def ibv_alloc_pd(self, context: C) -> C:
        return made("domain", ctypes.pointer(abi.ibv_pd(context=context.device)))

    def ibv_reg_mr(self, _pd: C, address: C, length: C, access: C) -> C:
        rule(access == 7, "a region has all access rights")
        word, number = (
            ("no_module", errno.EFAULT) if buffer_at(address) else ("memlock", errno.ENOMEM)
        )
        if word == TOLD:
            return failed(number)
        key = new_region(address, length)
        return made(
            "region", ctypes.pointer(abi.ibv_mr(addr=address, length=length, lkey=key, rkey=key))
        )

    def ibv_reg_dmabuf_mr(
        self, pd: C, offset: C, length: C, iova: C, descriptor: C, access: C
    ) -> C:
        """Fails if the driver has no such verb, before it looks at the descriptor. The kernel does
        the same."""
        if TOLD == "hangs" and HCAS[pd.context - 1] == HCAS[-1]:
            time.sleep(3600)
        if TOLD == "crashes" and HCAS[pd.context - 1] == HCAS[-1]:
            os.kill(os.getpid(), signal.SIGSEGV)
        if TOLD == "no_dma_buf":
            return failed(errno.EOPNOTSUPP)
        if descriptor == -1:
            rule((offset, length, iova, access) == (0, 4096, 0, 1), "the form of a question")
            return failed(errno.EBADF)
        if TOLD == "no_odp":
            return failed(errno.EOPNOTSUPP)
        rule(
            os.readlink(f"/proc/self/fd/{descriptor}") == f"/memfd:dma-buf of {iova:#x} (deleted)"
            and (offset, access) == (0, 7)
            and length <= os.fstat(descriptor).st_size,
            "a region of an export",
        )
        key = new_region(iova, length)
        by_dma_buf.add(key)
        if TOLD == "slow" and pd.context == len(HCAS) and attribute(DEVICE_ORDINAL, iova) == 1:
            slow_keys.add(key)
        # libibverbs also returns the offset in the dma-buf as `addr`.
        mr = abi.ibv_mr(addr=offset, length=length, lkey=key, rkey=key)
        return made("region", ctypes.pointer(mr))

    def ibv_dereg_mr(self, region: C) -> int:
        rule(not qps, "queue pairs go before the memory that they reach")
        del regions[region.lkey]
        by_dma_buf.discard(region.lkey)
        slow_keys.discard(region.lkey)
        gone("region")
        return errno.EBUSY if TOLD == "dereg" else 0

    def ibv_create_cq(self, _context: C, entries: C, _of_program: C, _channel: C, _vector: C) -> C:
        rule(entries >= 2, "room for the completions of both queue pairs")
        pending.clear()
        return made("completion queue", 1)

    def ibv_create_qp(self, pd: C, init: C) -> C:
        rule(
            init.qp_type == abi.IBV_QPT_RC and init.send_cq and init.recv_cq and not init.srq,
            "the form of a queue pair",
        )
        rule(init.cap.max_send_wr >= 1 and init.cap.max_send_sge >= 1, "room for a request")
        qps.append(made("queue pair", Qp(HCAS[pd.context - 1].startswith("roce"))))
        qps[-1].depth = init.cap.max_send_wr
        return ctypes.cast(ctypes.pointer(qps[-1]), ctypes.POINTER(abi.ibv_qp))

    def ibv_destroy_qp(self, qp: C) -> None:
        qps[:] = [one for one in qps if one.qp_num != qp.qp_num]
        gone("queue pair")

    def ibv_modify_qp(self, qp: C, attr: C, mask: C) -> int:
        """Checks some of the attributes. The scenario selftest runs on a kernel, which checks all
        attributes."""
        if TOLD == "minus_one":
            failed(errno.ENOBUFS)
            return -1
        one, other = sorted(qps, key=lambda it: it.qp_num != qp.qp_num)
        rule(mask & abi.IBV_QP_STATE and attr.qp_state == one.state + 1, "states follow each other")
        one.state = attr.qp_state
        if one.state == abi.IBV_QPS_INIT:
            rule(attr.port_num == 1 and attr.qp_access_flags == 7, "the attributes for INIT")
        elif one.state == abi.IBV_QPS_RTR:
            rule(
                (attr.dest_qp_num, attr.rq_psn) == (other.qp_num, other.qp_num & 0xFFFFFF),
                "connected to the other queue pair",
            )
            rule(
                (attr.path_mtu, attr.max_dest_rd_atomic, attr.ah_attr.port_num) == (MTU, 1, 1),
                "the attributes for RTR",
            )
            route, grh = attr.ah_attr, attr.ah_attr.grh
            if one.roce or TOLD == "grh":
                rule(
                    route.is_global and grh.sgid_index == 3 and grh.hop_limit > 1, "a route by GID"
                )
                rule(bytes(grh.dgid.raw) == IPV4, "the IPv4 address is preferred")
            else:
                rule(not route.is_global and route.dlid == LID, "a route by LID")
        else:
            rule(
                attr.timeout and attr.retry_cnt and attr.rnr_retry and attr.max_rd_atomic == 1,
                "the attributes for RTS",
            )
            rule(attr.sq_psn == qp.qp_num & 0xFFFFFF, "the first packet number is its own")
        return 0


class Function:
    """A function of a library. ctypes gives a function the same attributes and makes the same
    checks."""

    argtypes: C = None
    errcheck: C = None

    def __init__(self, call: C) -> None:
        self.call, self.__name__ = call, call.__name__

    def __call__(self, *arguments: C) -> C:
        for kind, argument in zip(self.argtypes or (), arguments, strict=self.argtypes is not None):
            kind.from_param(argument)
        result = self.call(*map(self.value, arguments)) or 0
        return self.errcheck(result, self, arguments) if self.errcheck else result

    @staticmethod
    def value(argument: C) -> C:
        """Returns the argument in the form in which the library receives it."""
        if hasattr(argument, "_obj"):  # byref()
            return argument._obj
        if hasattr(argument, "contents"):
            return argument.contents
        if isinstance(argument, (ctypes.Array, ctypes.c_char_p)):
            return argument
        return getattr(argument, "value", argument)


def loaded(name: str, **_options: C) -> C:
    """Returns the library with this name."""
    if os.environ.get("MISSING") == name:
        raise OSError(f"{name}: cannot open shared object file")
    if name == "libcuda.so.1":
        return cuda
    names = [name for name in dir(Verbs) if name.startswith("ibv_")]
    return SimpleNamespace(**{name: Function(getattr(Verbs(), name)) for name in names})


ctypes.CDLL = loaded  # type: ignore[assignment, misc]
