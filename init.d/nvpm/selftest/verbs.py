# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libibverbs. What is made is given back when the ExitStack closes that it was made
with; the last made goes first."""
import ctypes
import errno
import os
import time
from ctypes import POINTER, byref, c_int, c_size_t, c_uint8, c_void_p

from . import Absent, Failure, abi

LIBRARY = "libibverbs.so.1"
ALL = abi.IBV_ACCESS_LOCAL_WRITE | abi.IBV_ACCESS_REMOTE_WRITE | abi.IBV_ACCESS_REMOTE_READ


def named(number):
    """EFAULT (Bad address)"""
    return "%s (%s)" % (errno.errorcode.get(number, number), os.strerror(number))


class VerbsError(Failure):
    def __init__(self, verb, number):
        super().__init__("%s: %s" % (verb, named(number)))
        self.errno = number


class Library:
    """Each verb once, with what it takes and gives."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL(LIBRARY, use_errno=True)
        except OSError as error:
            raise Absent("no %s (%s)" % (LIBRARY, error),
                         "Install the package libibverbs1 (Debian, Ubuntu), libibverbs (RHEL, SLES), or that of MLNX_OFED.")
        self.get_device_list = self.object(POINTER(c_void_p), "ibv_get_device_list", POINTER(c_int))
        self.free_device_list = self.verb(None, "ibv_free_device_list", c_void_p)
        self.get_device_name = self.verb(ctypes.c_char_p, "ibv_get_device_name", c_void_p)
        self.open_device = self.object(POINTER(abi.ibv_context), "ibv_open_device", c_void_p)
        self.close_device = self.number("ibv_close_device", c_void_p)
        self.query_port = self.number("ibv_query_port", c_void_p, c_uint8, POINTER(abi.ibv_port_attr))
        self.alloc_pd = self.object(POINTER(abi.ibv_pd), "ibv_alloc_pd", c_void_p)
        self.dealloc_pd = self.number("ibv_dealloc_pd", c_void_p)
        self.reg_mr = self.object(POINTER(abi.ibv_mr), "ibv_reg_mr", c_void_p, c_void_p, c_size_t, c_int)
        self.dereg_mr = self.number("ibv_dereg_mr", c_void_p)
        self.create_cq = self.object(c_void_p, "ibv_create_cq", c_void_p, c_int, c_void_p, c_void_p, c_int)
        self.destroy_cq = self.number("ibv_destroy_cq", c_void_p)
        self.create_qp = self.object(POINTER(abi.ibv_qp), "ibv_create_qp", c_void_p, POINTER(abi.ibv_qp_init_attr))
        self.destroy_qp = self.number("ibv_destroy_qp", c_void_p)
        self.modify_qp = self.number("ibv_modify_qp", c_void_p, POINTER(abi.ibv_qp_attr), c_int)

    def verb(self, result, name, *arguments):
        function = getattr(self.library, name)
        function.restype, function.argtypes = result, arguments
        return function

    def object(self, result, name, *arguments):
        """Of a verb that gives an object, or NULL and errno."""
        def check(found, _function, _arguments):
            if not found:
                raise VerbsError(name, ctypes.get_errno())
            return found
        function = self.verb(result, name, *arguments)
        function.errcheck = check
        return function

    def number(self, name, *arguments):
        """Of a verb that gives 0, or an error number; some give -1 and errno."""
        def check(found, _function, _arguments):
            if found:
                raise VerbsError(name, found if found > 0 else ctypes.get_errno())
        function = self.verb(c_int, name, *arguments)
        function.errcheck = check
        return function

    def device_names(self):
        count = c_int()
        try:
            found = self.get_device_list(byref(count))
        except VerbsError:
            return []  # the kernel has no verbs
        names = [os.fsdecode(self.get_device_name(found[index])) for index in range(count.value)]
        self.free_device_list(found)
        return names

    def open(self, name):
        count = c_int()
        found = self.get_device_list(byref(count))
        try:
            for index in range(count.value):
                if os.fsdecode(self.get_device_name(found[index])) == name:
                    return self.open_device(found[index])
        finally:
            self.free_device_list(found)
        raise Failure("the device has gone away")


class Device:
    """An open device, with a protection domain and a completion queue."""

    def __init__(self, stack, library, name, port):
        self.library, self.port = library, port
        self.context = library.open(name)
        stack.callback(library.close_device, self.context)
        self.pd = library.alloc_pd(self.context)
        stack.callback(library.dealloc_pd, self.pd)
        self.cq = library.create_cq(self.context, 4, None, None, 0)
        stack.callback(library.destroy_cq, self.cq)
        self.attributes = abi.ibv_port_attr()
        library.query_port(self.context, port.number, byref(self.attributes))

    def register(self, stack, address, length):
        region = self.library.reg_mr(self.pd, address, length, ALL)
        stack.callback(self.library.dereg_mr, region)
        return region.contents

    def pair(self, stack):
        """A queue pair that is connected to another one of this port."""
        one, other = QueuePair(stack, self), QueuePair(stack, self)
        one.connect(other)
        other.connect(one)
        return one

    def completion(self, deadline):
        """The status of the next one, by its name."""
        found = abi.ibv_wc()
        poll, begun = self.context.contents.ops.poll_cq, time.monotonic()
        while True:
            count = poll(self.cq, 1, byref(found))
            if count < 0:
                raise Failure("ibv_poll_cq() fails")
            if count:
                known = found.status < len(abi.IBV_WC)
                return "IBV_WC_" + (abi.IBV_WC[found.status] if known else str(found.status))
            now = time.monotonic()
            if now > deadline:
                return None
            # What is fast is measured; what is not leaves the processor alone.
            if now > begun + 0.01:
                time.sleep(0.001)


class QueuePair:
    def __init__(self, stack, device):
        self.device, self.library = device, device.library
        init = abi.ibv_qp_init_attr(send_cq=device.cq, recv_cq=device.cq, qp_type=abi.IBV_QPT_RC)
        init.cap.max_send_wr = init.cap.max_recv_wr = 1
        init.cap.max_send_sge = init.cap.max_recv_sge = 1
        self.qp = self.library.create_qp(device.pd, byref(init))
        stack.callback(self.library.destroy_qp, self.qp)
        self.number = self.qp.contents.qp_num
        self.first_packet = self.number & 0xffffff  # any number would do

    def modify(self, state, mask, **values):
        attributes = abi.ibv_qp_attr(qp_state=state, **values)
        self.library.modify_qp(self.qp, byref(attributes), mask | abi.IBV_QP_STATE)

    def connect(self, other):
        port = self.device.port
        self.modify(abi.IBV_QPS_INIT, abi.IBV_QP_PKEY_INDEX | abi.IBV_QP_PORT | abi.IBV_QP_ACCESS_FLAGS,
                    port_num=port.number, qp_access_flags=ALL)
        self.modify(abi.IBV_QPS_RTR, abi.IBV_QP_AV | abi.IBV_QP_PATH_MTU | abi.IBV_QP_DEST_QPN | abi.IBV_QP_RQ_PSN
                    | abi.IBV_QP_MAX_DEST_RD_ATOMIC | abi.IBV_QP_MIN_RNR_TIMER,
                    ah_attr=self.route(), path_mtu=self.device.attributes.active_mtu, dest_qp_num=other.number,
                    rq_psn=other.first_packet, max_dest_rd_atomic=1, min_rnr_timer=12)
        # A second (4.096 us << 18) and a few tries, all within our own time limit.
        self.modify(abi.IBV_QPS_RTS, abi.IBV_QP_TIMEOUT | abi.IBV_QP_RETRY_CNT | abi.IBV_QP_RNR_RETRY
                    | abi.IBV_QP_SQ_PSN | abi.IBV_QP_MAX_QP_RD_ATOMIC,
                    timeout=18, retry_cnt=6, rnr_retry=6, sq_psn=self.first_packet, max_rd_atomic=1)

    def route(self):
        """To this very port: by LID on InfiniBand, by GID elsewhere, and where a subnet wants it."""
        port, attributes = self.device.port, self.device.attributes
        route = abi.ibv_ah_attr(port_num=port.number, dlid=attributes.lid)
        if port.needs_gid or attributes.flags & abi.IBV_QPF_GRH_REQUIRED:
            gid = port.gid()
            route.is_global = 1
            route.grh.dgid.raw[:] = gid.raw
            route.grh.sgid_index = gid.index
            route.grh.hop_limit = 64
        return route

    def post(self, opcode, local, remote, length, offset):
        element = abi.ibv_sge(addr=local.addr + offset, length=length, lkey=local.lkey)
        request = abi.ibv_send_wr(sg_list=ctypes.pointer(element), num_sge=1, opcode=opcode,
                                  send_flags=abi.IBV_SEND_SIGNALED)
        request.wr.rdma.remote_addr, request.wr.rdma.rkey = remote.addr + offset, remote.rkey
        bad = c_void_p()
        code = self.device.context.contents.ops.post_send(self.qp, byref(request), byref(bad))
        if code:
            raise VerbsError("ibv_post_send", abs(code))
