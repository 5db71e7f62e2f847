# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Functions for the scenarios' programs that use CUDA memory and queue pairs, through libcuda and
pyverbs. Each check prints a line that begins with `ok` or `fail`."""

import ctypes
import multiprocessing
import os
import random
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

NVIDIA = "/sys/kernel/debug/nvidia_lab/"
ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
MIB = 1 << 20

HCA = os.environ["HCA"]
if HCA.startswith("mlx5"):
    # The libibverbs of pyverbs' wheel looks for drivers where Red Hat has them. This import loads
    # the wheel's own driver of mlx5. The module mlx5dv cannot load the driver, because mlx5dv needs
    # a later libmlx5 than the wheel has.
    import pyverbs.providers.mlx5.mlx5dv_objects  # noqa: F401

cuda = ctypes.CDLL("libcuda.so.1")


def call(name, *arguments):
    """Calls a function of CUDA. Converts integers to 64 bits, because ctypes would otherwise pass
    only the 32 bits of a C int."""
    code = getattr(cuda, name)(
        *(ctypes.c_uint64(each) if isinstance(each, int) else each for each in arguments)
    )
    if code:
        raise RuntimeError(f"{name}: error {code}")


def context():
    call("cuInit", 0)
    call("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), 0, 0)


def alloc(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), size)
    return address.value


def free(address):
    call("cuMemFree_v2", address)


def put(address, data):
    call("cuMemcpyHtoD_v2", address, data, len(data))


def get(address, size):
    data = ctypes.create_string_buffer(size)
    call("cuMemcpyDtoH_v2", data, address, size)
    return data.raw


def where_in_gpu(address):
    """Returns the offset in the GPU's memory that is mapped at an address. The mapping must begin
    at this address."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            mapped, _, offset = line.split()[:3]
            if int(mapped.split("-")[0], 16) == address:
                return int(offset, 16)
    raise LookupError(hex(address))


def pattern(seed, length):
    """Returns pseudorandom bytes, which no memory contains by chance."""
    return random.Random(seed).randbytes(length)


def counters(*names):
    with open(NVIDIA + "counters") as file:
        found = dict(line.split() for line in file)
    return [int(found[name]) for name in names]


def check(text, holds):
    print("ok" if holds else "fail", text, flush=True)


def equal(text, expected, found):
    check(
        text if expected == found else f"{text}: expected {expected!r}, got {found!r}",
        expected == found,
    )


def gid_index():
    """Returns the index of the address that connections use. On Ethernet the address with index 0
    has no IPv4 address in it."""
    with open(f"/sys/class/infiniband/{HCA}/ports/1/link_layer") as link_layer:
        return 0 if link_layer.read().strip() == "InfiniBand" else 1


def error(act, *arguments):
    """Calls `act` and closes the object that it returns. Returns 0. If calling or closing fails,
    returns the errno."""
    try:
        act(*arguments).close()
    except (OSError, PyverbsRDMAError) as found:
        return getattr(found, "errno", None) or found.error_code
    return 0


def process(target, *arguments):
    """Starts a child. Returns a pipe to the child, and the child."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.Process(target=target, args=(theirs, *arguments))
    child.start()
    theirs.close()
    return ours, child


class Queue:
    """A queue pair of the RDMA device $HCA. Both ends of each connection are on this device."""

    def __init__(self, context=None):
        self.context = context or Context(name=HCA)
        self.pd, self.cq = PD(self.context), CQ(self.context, 16)
        self.qp = QP(
            self.pd,
            QPInitAttr(
                qp_type=e.IBV_QPT_RC,
                scq=self.cq,
                rcq=self.cq,
                sq_sig_all=1,
                cap=QPCap(max_send_wr=4, max_recv_wr=4),
            ),
        )
        self.number = self.qp.qp_num

    def register(self, address, length, access=ALL):
        return MR(self.pd, length, access, address=address)

    def connect(self, number):
        gid, lid = gid_index(), self.context.query_port(1).lid
        route = GlobalRoute(dgid=self.context.query_gid(1, gid), sgid_index=gid)
        attributes = QPAttr(port_num=1)
        attributes.ah_attr = AHAttr(port_num=1, dlid=lid, is_global=1, gr=route)
        attributes.dest_qp_num, attributes.path_mtu = number, e.IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer, attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = (
            12,
            14,
            7,
            7,
        )
        attributes.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ
        self.qp.to_rts(attributes)
        return self

    def wait(self):
        """Waits for the next completion. Returns its status."""
        while not (found := self.cq.poll(1)[1]):
            time.sleep(0)
        return found[0].status

    def post(self, opcode, region, address, length, *remote):
        request = SendWR(opcode=opcode, num_sge=1, sg=[SGE(address, length, region.lkey)])
        if remote:
            request.set_wr_rdma(*remote)
        self.qp.post_send(request)
        return self.wait()

    def receive(self, region, address, length):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(address, length, region.lkey)]))


def connected(context=None):
    """Returns two queue pairs that are connected to each other. The second queue pair uses
    `context`, if a context is given."""
    here, there = Queue(), Queue(context)
    here.connect(there.number)
    there.connect(here.number)
    return here, there
