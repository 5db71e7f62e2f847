# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Verbs by pyverbs: two connected queue pairs of the same device, and work for them."""
import ctypes
import os
import struct
import time

from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR
import pyverbs.enums as e

from lab import MIB, alloc, free, pattern, put

ALL = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
       | e.IBV_ACCESS_REMOTE_ATOMIC | e.IBV_ACCESS_MW_BIND)


# IB_USER_VERBS_CMD_REREG_MR
REREG_MR = 11


class Hca:
    def __init__(self):
        self.context = Context(name="rxe0")
        self.pd = PD(self.context)
        self.gid_index = next(index for index in range(16)
                              if "ffff:" in self.context.query_gid(1, index).gid)
        self.pairs = []

    def register(self, address, length, access=ALL, pd=None):
        return MR(pd or self.pd, length, access, address=address)

    def error(self, address, length):
        """The errno that registering ends with; 0 if it does not."""
        try:
            self.register(address, length).close()
        except PyverbsRDMAError as found:
            return found.error_code
        return 0

    def reregister(self, mr, flags, access=0, pd=None, address=0, length=0):
        """By the kernel's own interface: the user space provider of the software HCA has
        no such call, whatever the memory. The result is an errno, or 0."""
        response = ctypes.create_string_buffer(8)
        command = struct.pack("=QIIQQQII", ctypes.addressof(response), mr.handle, flags, address, length, address,
                              (pd or self.pd).handle, access)
        head = struct.pack("=IHH", REREG_MR, (8 + len(command)) // 4, len(response) // 4)
        try:
            os.write(self.context.cmd_fd, head + command)
        except OSError as found:
            return found.errno
        return 0

    def pair(self):
        self.pairs.append(Pair(self))
        return self.pairs[-1]

    def close(self):
        for pair in self.pairs:
            pair.close()
        self.pd.close()
        self.context.close()


class Source:
    """A registered buffer with a pattern at its beginning, which RDMA writes elsewhere."""

    def __init__(self, hca, seed):
        self.hca, self.address = hca, alloc(2 * MIB)
        put(self.address, pattern(seed, 4096))
        self.region = hca.register(self.address, 2 * MIB)

    def write(self, region, address, pair=None):
        """The completion's status."""
        return (pair or self.hca.pair()).write(self.region, self.address, 4096, region.rkey, address)

    def close(self):
        self.region.close()
        free(self.address)


class Pair:
    def __init__(self, hca):
        self.cq = CQ(hca.context, 64)
        self.left, self.right = (self.queue(hca) for _ in range(2))
        for one, other in ((self.left, self.right), (self.right, self.left)):
            one.to_rts(self.attributes(hca, other))

    def queue(self, hca):
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, sq_sig_all=1,
                          cap=QPCap(max_send_wr=16, max_recv_wr=16))
        return QP(hca.pd, init)

    @staticmethod
    def attributes(hca, other):
        route = GlobalRoute(dgid=hca.context.query_gid(1, hca.gid_index), sgid_index=hca.gid_index)
        attributes = QPAttr(port_num=1)
        attributes.ah_attr = AHAttr(port_num=1, is_global=1, gr=route)
        attributes.dest_qp_num = other.qp_num
        attributes.path_mtu = e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 12
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = 14, 7, 7
        attributes.qp_access_flags = (e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
                                      | e.IBV_ACCESS_REMOTE_ATOMIC)
        return attributes

    def close(self):
        for queue in (self.left, self.right, self.cq):
            queue.close()

    def wait(self, count=1):
        """The statuses of that many completions."""
        found = []
        while len(found) < count:
            _, completions = self.cq.poll(count - len(found))
            found += [completion.status for completion in completions]
            time.sleep(0)
        return found

    def post(self, request):
        self.left.post_send(request)
        return self.wait()[0]

    def sge(self, region, address, length):
        return SGE(address, length, region.lkey)

    def rdma(self, opcode, local, address, length, rkey, remote):
        """RDMA between `address`, in the region `local`, and `remote`."""
        request = SendWR(opcode=opcode, num_sge=1, sg=[self.sge(local, address, length)])
        request.set_wr_rdma(rkey, remote)
        return self.post(request)

    def write(self, *what):
        return self.rdma(e.IBV_WR_RDMA_WRITE, *what)

    def read(self, *what):
        return self.rdma(e.IBV_WR_RDMA_READ, *what)

    def send(self, local, address, length, target, place):
        self.right.post_recv(RecvWR(num_sge=1, sg=[self.sge(target, place, length)]))
        self.left.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[self.sge(local, address, length)]))
        return max(self.wait(2))

    def atomic(self, opcode, local, address, rkey, remote, operand, swap=0):
        request = SendWR(opcode=opcode, num_sge=1, sg=[self.sge(local, address, 8)])
        request.set_wr_atomic(rkey, remote, operand, swap)
        return self.post(request)
