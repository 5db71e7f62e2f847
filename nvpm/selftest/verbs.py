# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Calls libibverbs. Each object belongs to an ExitStack, which releases its objects in reverse
order."""

import ctypes
import errno
import os
import time
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, byref, c_int, c_size_t, c_uint8, c_uint64, c_void_p
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple

from . import Absent, Failure, abi
from .port import Port

LIBRARY = "libibverbs.so.1"
INSTALL = (
    "Install the package libibverbs1 (Debian, Ubuntu), libibverbs (RHEL, SLES), "
    "or that of MLNX_OFED."
)
ALL = abi.IBV_ACCESS_LOCAL_WRITE | abi.IBV_ACCESS_REMOTE_WRITE | abi.IBV_ACCESS_REMOTE_READ


# Python calls this error ENOTSUP, but the manuals of verbs call it EOPNOTSUPP.
NAMES = {**errno.errorcode, errno.EOPNOTSUPP: "EOPNOTSUPP"}


class VerbsError(Failure):
    """A verb has failed. The message is like: ibv_reg_mr: EFAULT (Bad address)"""

    def __init__(self, verb: str, number: int) -> None:
        self.errno, self.name = number, NAMES.get(number, str(number))
        super().__init__(f"{verb}: {self.name} ({os.strerror(number)})")


def not_null(found: Any, verb: Any, _arguments: Any) -> Any:
    """Checks the result of a verb that returns an object, or returns NULL and sets errno."""
    if not found:
        raise VerbsError(verb.__name__, ctypes.get_errno())
    return found


def zero(found: int, verb: Any, _arguments: Any) -> None:
    """Checks the result of a verb that returns 0, or returns an error number, or returns -1 and
    sets errno."""
    if found:
        raise VerbsError(verb.__name__, found if found > 0 else ctypes.get_errno())


class Library:
    """The verbs, with the types of their arguments and results."""

    def __init__(self) -> None:
        try:
            self.library = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError as error:
            raise Absent(f"no {LIBRARY} ({error})", INSTALL) from error
        self.get_device_list = self.verb(
            "get_device_list", not_null, POINTER(c_void_p), POINTER(c_int)
        )
        self.free_device_list = self.verb("free_device_list", None, None, c_void_p)
        self.get_device_name = self.verb("get_device_name", None, ctypes.c_char_p, c_void_p)
        self.open_device = self.verb("open_device", not_null, POINTER(abi.ibv_context), c_void_p)
        self.close_device = self.verb("close_device", zero, c_int, c_void_p)
        self.query_port = self.verb(
            "query_port", zero, c_int, c_void_p, c_uint8, POINTER(abi.ibv_port_attr)
        )
        self.alloc_pd = self.verb("alloc_pd", not_null, POINTER(abi.ibv_pd), c_void_p)
        self.dealloc_pd = self.verb("dealloc_pd", zero, c_int, c_void_p)
        self.reg_mr = self.verb(
            "reg_mr", not_null, POINTER(abi.ibv_mr), c_void_p, c_void_p, c_size_t, c_int
        )
        # Libraries before rdma-core 34 lack this verb.
        self.reg_dmabuf_mr: Any = None
        if hasattr(self.library, "ibv_reg_dmabuf_mr"):
            self.reg_dmabuf_mr = self.verb(
                "reg_dmabuf_mr",
                not_null,
                POINTER(abi.ibv_mr),
                c_void_p,
                c_uint64,
                c_size_t,
                c_uint64,
                c_int,
                c_int,
            )
        self.dereg_mr = self.verb("dereg_mr", zero, c_int, c_void_p)
        self.create_cq = self.verb(
            "create_cq", not_null, c_void_p, c_void_p, c_int, c_void_p, c_void_p, c_int
        )
        self.destroy_cq = self.verb("destroy_cq", zero, c_int, c_void_p)
        self.create_qp = self.verb(
            "create_qp", not_null, POINTER(abi.ibv_qp), c_void_p, POINTER(abi.ibv_qp_init_attr)
        )
        self.destroy_qp = self.verb("destroy_qp", zero, c_int, c_void_p)
        self.modify_qp = self.verb(
            "modify_qp", zero, c_int, c_void_p, POINTER(abi.ibv_qp_attr), c_int
        )

    def verb(
        self, name: str, check: Optional[Callable[..., Any]], result: Any, *arguments: Any
    ) -> Any:
        function = getattr(self.library, f"ibv_{name}")
        function.restype, function.argtypes = result, arguments
        if check:
            function.errcheck = check
        return function

    @contextmanager
    def devices(self) -> Iterator[List[Tuple[str, Any]]]:
        """Yields pairs of names and devices. They are valid only inside the caller's `with`
        block."""
        count = c_int()
        found = self.get_device_list(byref(count))
        try:
            those = [found[index] for index in range(count.value)]
            yield [(os.fsdecode(self.get_device_name(device)), device) for device in those]
        finally:
            self.free_device_list(found)

    def pages_on_demand(self, context: Any) -> Optional[bool]:
        """Returns whether a device can page on demand (ODP); None if the library does not say. In
        the library's header, ibv_query_device_ex() is an inline function."""
        if context.contents.abi_compat != abi.EXTENDED:
            return None
        address = ctypes.addressof(context.contents) - abi.verbs_context.context.offset
        whole = abi.verbs_context.from_address(address)
        if whole.sz < ctypes.sizeof(abi.verbs_context) or not whole.query_device_ex:
            return None
        found = abi.ibv_device_attr_ex()
        if whole.query_device_ex(context, None, byref(found), abi.ibv_device_attr_ex._room.offset):
            return None
        return bool(found.odp_caps.general_caps & abi.IBV_ODP_SUPPORT)

    def device_names(self) -> List[str]:
        try:
            with self.devices() as pairs:
                return [name for name, _ in pairs]
        except VerbsError:
            return []  # the kernel has no verbs

    def open(self, wanted: str) -> Any:
        with self.devices() as pairs:
            for name, device in pairs:
                if name == wanted:
                    return self.open_device(device)
        raise Failure("the device has gone away")


class Device:
    """An open device, with a protection domain and a completion queue."""

    def __init__(self, stack: ExitStack, library: Library, port: Port, depth: int = 1) -> None:
        """DEPTH: the number of transfers at a time."""
        self.library, self.port, self.depth = library, port, depth
        self.context = library.open(port.device)
        stack.callback(library.close_device, self.context)
        self.pd = library.alloc_pd(self.context)
        stack.callback(library.dealloc_pd, self.pd)
        self.cq = library.create_cq(self.context, 2 + 2 * depth, None, None, 0)
        stack.callback(library.destroy_cq, self.cq)
        self.attributes = abi.ibv_port_attr()
        library.query_port(self.context, port.number, byref(self.attributes))

    def register(self, stack: ExitStack, address: int, length: int) -> "Region":
        region = self.library.reg_mr(self.pd, address, length, ALL)
        return self.registered(stack, region, address)

    def register_dma_buf(
        self, stack: ExitStack, descriptor: int, address: int, length: int
    ) -> "Region":
        """Registers the first LENGTH bytes of a dma-buf, which devices then reach at ADDRESS."""
        if not self.library.reg_dmabuf_mr:
            raise Failure(f"{LIBRARY} has no ibv_reg_dmabuf_mr: it is older than rdma-core 34")
        region = self.library.reg_dmabuf_mr(self.pd, 0, length, address, descriptor, ALL)
        return self.registered(stack, region, address)

    def registered(self, stack: ExitStack, region: Any, address: int) -> "Region":
        stack.callback(self.library.dereg_mr, region)
        return Region(address, region.contents.lkey, region.contents.rkey)

    def pair(self, stack: ExitStack) -> "QueuePair":
        """Returns a queue pair that is connected to a second queue pair of the same port."""
        one, other = QueuePair(stack, self), QueuePair(stack, self)
        one.connect(other)
        other.connect(one)
        return one

    def completed(self, found: Any) -> List[str]:
        """Returns the statuses of the completions that have arrived, but not more than the array
        FOUND can hold."""
        count = self.context.contents.ops.poll_cq(self.cq, len(found), found)
        if count < 0:
            raise Failure("ibv_poll_cq() fails")
        return [status_name(found[at].status) for at in range(count)]

    def completion(self, deadline: float) -> Optional[str]:
        """Returns the status of the next completion; None if no completion comes in time."""
        found, begun = (abi.ibv_wc * 1)(), time.monotonic()
        while True:
            statuses = self.completed(found)
            if statuses:
                return statuses[0]
            if time.monotonic() > deadline:
                return None
            # In the first 10 ms the loop does not sleep, so that the time of a fast transfer is
            # exact. Later it sleeps, so that a slow transfer does not occupy the processor.
            if time.monotonic() > begun + 0.01:
                time.sleep(0.001)


def status_name(status: int) -> str:
    return f"IBV_WC_{dict(enumerate(abi.IBV_WC)).get(status, str(status))}"


class Region(NamedTuple):
    """A registration. `addr` is the address that devices use. If the memory is a dma-buf, this is
    not the address in the ibv_mr."""

    addr: int
    lkey: int
    rkey: int


class QueuePair:
    def __init__(self, stack: ExitStack, device: Device) -> None:
        self.device, self.library = device, device.library
        init = abi.ibv_qp_init_attr(send_cq=device.cq, recv_cq=device.cq, qp_type=abi.IBV_QPT_RC)
        init.cap.max_send_wr, init.cap.max_recv_wr = device.depth, 1
        init.cap.max_send_sge = init.cap.max_recv_sge = 1
        self.qp = self.library.create_qp(device.pd, byref(init))
        stack.callback(self.library.destroy_qp, self.qp)
        self.number = self.qp.contents.qp_num
        self.first_packet = self.number & 0xFFFFFF  # any number would do

    def modify(self, state: int, mask: int, **values: Any) -> None:
        attributes = abi.ibv_qp_attr(qp_state=state, **values)
        self.library.modify_qp(self.qp, byref(attributes), mask | abi.IBV_QP_STATE)

    def connect(self, other: "QueuePair") -> None:
        self.modify(
            abi.IBV_QPS_INIT,
            abi.IBV_QP_PKEY_INDEX | abi.IBV_QP_PORT | abi.IBV_QP_ACCESS_FLAGS,
            port_num=self.device.port.number,
            qp_access_flags=ALL,
        )
        self.modify(
            abi.IBV_QPS_RTR,
            abi.IBV_QP_AV
            | abi.IBV_QP_PATH_MTU
            | abi.IBV_QP_DEST_QPN
            | abi.IBV_QP_RQ_PSN
            | abi.IBV_QP_MAX_DEST_RD_ATOMIC
            | abi.IBV_QP_MIN_RNR_TIMER,
            ah_attr=self.route(),
            path_mtu=self.device.attributes.active_mtu,
            dest_qp_num=other.number,
            rq_psn=other.first_packet,
            max_dest_rd_atomic=1,
            min_rnr_timer=12,
        )
        # The timeout is about a second (4.096 us << 18). With the retries, the device gives up
        # before the selftest's own time limit ends.
        self.modify(
            abi.IBV_QPS_RTS,
            abi.IBV_QP_TIMEOUT
            | abi.IBV_QP_RETRY_CNT
            | abi.IBV_QP_RNR_RETRY
            | abi.IBV_QP_SQ_PSN
            | abi.IBV_QP_MAX_QP_RD_ATOMIC,
            timeout=18,
            retry_cnt=6,
            rnr_retry=6,
            sq_psn=self.first_packet,
            max_rd_atomic=1,
        )

    def route(self) -> Any:
        """Returns the route to this port. On InfiniBand the route has the LID of the port. On other
        links, and in a subnet that demands a GID, the route has the GID of the port."""
        port, attributes = self.device.port, self.device.attributes
        route = abi.ibv_ah_attr(port_num=port.number, dlid=attributes.lid)
        if port.needs_gid or attributes.flags & abi.IBV_QPF_GRH_REQUIRED:
            index, raw = port.gid()
            route.is_global, route.grh.sgid_index, route.grh.hop_limit = 1, index, 64
            route.grh.dgid.raw[:] = raw
        return route

    def post(self, opcode: int, local: Any, remote: Any, length: int, offset: int) -> None:
        element = abi.ibv_sge(addr=local.addr + offset, length=length, lkey=local.lkey)
        request = abi.ibv_send_wr(
            sg_list=ctypes.pointer(element),
            num_sge=1,
            opcode=opcode,
            send_flags=abi.IBV_SEND_SIGNALED,
        )
        request.wr.rdma.remote_addr, request.wr.rdma.rkey = remote.addr + offset, remote.rkey
        code = self.device.context.contents.ops.post_send(
            self.qp, byref(request), byref(c_void_p())
        )
        if code:
            raise VerbsError("ibv_post_send", abs(code))
