# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that come as wheels, unchanged, with GPU memory in two processes.

moved PROGRAM SEED   reads from the target's buffer and writes into it, and waits while the caller
                     looks for the bytes in the GPU's memory
started PROGRAM      only starts the program
refused PROGRAM      tries to register memory, and lets the program print its own message
registered PROGRAM   registers one buffer, and says by which way
killed PROGRAM       kills the target while the initiator writes to it
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

from verbs_on_cuda import (
    HCA,
    MIB,
    alloc,
    call,
    check,
    context,
    counters,
    equal,
    gid_index,
    process,
    put,
    where_in_gpu,
)

ADDRESS = "192.168.7.1"
LENGTH = 2 * MIB


class Mooncake:
    """The transfer engine, which finds its peer by an address."""

    def __init__(self, _name):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        equal("Mooncake starts", 0, self.engine.initialize(ADDRESS, "P2PHANDSHAKE", "rdma", HCA))

    def register(self, address):
        equal("registered", 0, self.engine.register_memory(address, LENGTH))

    def deregister(self, address):
        equal("deregistered", 0, self.engine.unregister_memory(address))

    def known_by(self):
        return f"{ADDRESS}:{self.engine.get_rpc_port()}"

    def read(self, peer, ours, theirs):
        return self.engine.transfer_sync_read(peer, ours, theirs, LENGTH) == 0

    def write(self, peer, ours, theirs, times=1):
        """Writes both halves of the buffer in one batch, which has each half `times` times."""
        half = LENGTH // 2
        here, there = [ours, ours + half] * times, [theirs, theirs + half] * times
        sizes = [half] * len(here)
        return self.engine.batch_transfer_sync_write(peer, here, there, sizes) == 0


class Nixl:
    """An agent, which knows its peer by the peer's metadata."""

    def __init__(self, name):
        from nixl_cu12 import nixl_agent, nixl_agent_config

        self.name, self.peers, self.memory = name, {}, {}
        self.agent = nixl_agent(name, nixl_agent_config(backends=["UCX"]))

    def register(self, address):
        described = [(address, LENGTH, 0, "")]
        self.memory[address] = self.agent.register_memory(described, "VRAM")

    def deregister(self, address):
        self.agent.deregister_memory(self.memory.pop(address))

    def known_by(self):
        return self.agent.get_agent_metadata()

    def read(self, peer, ours, theirs):
        return self.transfer("READ", peer, ours, theirs)

    def write(self, peer, ours, theirs):
        return self.transfer("WRITE", peer, ours, theirs)

    def transfer(self, kind, peer, ours, theirs):
        if peer not in self.peers:
            self.peers[peer] = self.agent.add_remote_agent(peer)
        here, there = (
            self.agent.get_xfer_descs([(address, LENGTH, 0)], "VRAM") for address in (ours, theirs)
        )
        handle = self.agent.initialize_xfer(kind, here, there, self.peers[peer], b"done")
        state = self.agent.transfer(handle)
        while state == "PROC":
            time.sleep(0.01)
            state = self.agent.check_xfer_state(handle)
        self.agent.release_xfer_handle(handle)
        return state == "DONE"


class Peercache:
    """The transport of peercache. The initiator needs the keys of the target's regions. With the
    variable DMABUF the program registers dma-bufs by itself."""

    def __init__(self, _name):
        from peercache.transport import RdmaTransport

        self.transport = RdmaTransport(
            SimpleNamespace(
                device_name=HCA,
                ib_port=1,
                gid_index=gid_index(),
                local_hostname=ADDRESS,
                rdma_port=0,
            )
        )
        self.keys = {}

    def register(self, address):
        if os.environ.get("DMABUF"):
            made = self.transport.register_mr_dmabuf(address, LENGTH, exported(address, LENGTH))
        else:
            made = self.transport.register_mr(address, LENGTH)
        self.keys[address] = made.rkey

    def deregister(self, address):
        self.transport.deregister_mr(address)

    def known_by(self):
        return self.transport.local_endpoint(), self.keys

    def read(self, peer, ours, theirs):
        return self.transport.batch_read_v(*self.described(peer, ours, theirs)) == [True]

    def write(self, peer, ours, theirs):
        return self.transport.batch_write_v(*self.described(peer, ours, theirs)) == [True]

    def described(self, peer, ours, theirs):
        where, keys = peer
        return [where], [ours], [theirs], [keys[theirs]], [LENGTH]


class Libfabric:
    """Debian's libfabric with its verbs provider, through fabric.c. The library has no CUDA, so it
    takes an address of GPU memory for an address of host memory. The target has to let its end
    point answer."""

    def __init__(self, _name):
        self.library, self.point = ctypes.CDLL("/usr/local/lib/fabric.so"), ctypes.c_void_p()
        self.regions, self.keys, self.peers = {}, {}, {}
        self.call("open", ADDRESS.encode(), ctypes.byref(self.point))

    def call(self, name, *words):
        equal(f"fabric_{name}", 0, getattr(self.library, f"fabric_{name}")(*words))

    def register(self, address):
        region, key = ctypes.c_void_p(), ctypes.c_uint64()
        size = ctypes.c_size_t(LENGTH)
        where = ctypes.c_void_p(address)
        self.call("register", self.point, where, size, ctypes.byref(region), ctypes.byref(key))
        self.regions[address], self.keys[address] = region, key.value

    def deregister(self, address):
        self.call("deregister", self.regions.pop(address))

    def known_by(self):
        name, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
        self.call("name", self.point, name, ctypes.byref(size))
        return name.raw[: size.value], self.keys

    def progress(self):
        self.library.fabric_progress(self.point)

    def read(self, peer, ours, theirs):
        return self.move(0, peer, ours, theirs)

    def write(self, peer, ours, theirs):
        return self.move(1, peer, ours, theirs)

    def move(self, writes, peer, ours, theirs):
        name, keys = peer
        if name not in self.peers:
            self.peers[name] = ctypes.c_uint64()
            self.call("peer", self.point, name, ctypes.byref(self.peers[name]))
        there, key, size = (ctypes.c_uint64(each) for each in (theirs, keys[theirs], LENGTH))
        region, here = self.regions[ours], ctypes.c_void_p(ours)
        moved = self.library.fabric_move(
            self.point, writes, self.peers[name], here, region, size, there, key
        )
        return moved == 0


class Ibverbs:
    """Queue pairs of the wheel ibverbs, which looks ibv_reg_mr_iova2 up in the system's libibverbs.
    Both sides have to connect."""

    def __init__(self, _name):
        import ibverbs

        self.verbs, self.regions = ibverbs, {}
        device = next(each for each in ibverbs.get_device_list() if HCA in str(each.name))
        self.device = device.open()
        self.pd, self.queue = self.device.alloc_pd(), self.device.create_cq(16)
        kind = ibverbs.QPType.RC
        self.pair = self.pd.create_qp(
            ibverbs.QPInitAttr(send_cq=self.queue, recv_cq=self.queue, qp_type=kind)
        )
        flags = ibverbs.AccessFlags
        self.access = flags.LOCAL_WRITE | flags.REMOTE_WRITE | flags.REMOTE_READ

    def register(self, address):
        self.regions[address] = self.pd.reg_mr(address, LENGTH, self.access)

    def deregister(self, address):
        self.regions.pop(address).close()

    def known_by(self):
        port, gid = self.device.query_port(1), self.device.query_gid(1, gid_index())
        info = self.verbs.local_qp_info(self.pair, port, gid, port=1)
        return info.to_bytes(), {address: each.rkey for address, each in self.regions.items()}

    def connect(self, peer):
        remote = self.verbs.QPInfo.from_bytes(peer[0])
        how = {"port": 1, "sgid_index": gid_index(), "access": int(self.access)}
        self.verbs.connect_rc(self.pair, remote, **how)

    def read(self, peer, ours, theirs):
        return self.move(self.verbs.WROpcode.RDMA_READ, peer, ours, theirs)

    def write(self, peer, ours, theirs):
        return self.move(self.verbs.WROpcode.RDMA_WRITE, peer, ours, theirs)

    def move(self, opcode, peer, ours, theirs):
        here = self.verbs.SGE(ours, LENGTH, self.regions[ours].lkey)
        request = self.verbs.SendWR(
            wr_id=1,
            sg_list=[here],
            opcode=opcode,
            send_flags=self.verbs.SendFlags.SIGNALED,
            remote_addr=theirs,
            rkey=peer[1][theirs],
        )
        self.pair.post_send(request)
        done = []
        while not done:
            done = self.queue.poll(1)
        done[0].raise_for_status()
        return True


PROGRAMS = {
    "ibverbs": Ibverbs,
    "libfabric": Libfabric,
    "mooncake": Mooncake,
    "nixl": Nixl,
    "peercache": Peercache,
}


def exported(address, length):
    """Returns a descriptor of a dma-buf of GPU memory."""
    descriptor = ctypes.c_int(-1)
    dma_buf = 1
    call("cuMemGetHandleForAddressRange", ctypes.byref(descriptor), address, length, dma_buf, 0)
    return descriptor.value


def pattern(seed):
    made = ["gpuverbs", "pattern", "--seed", str(seed), "--length", str(LENGTH)]
    return subprocess.run(made, capture_output=True, check=True).stdout


def buffers(program, seed):
    """Allocates and registers two buffers: one with the pattern of the seed, and one with zeros."""
    full, empty = alloc(LENGTH), alloc(LENGTH)
    put(full, pattern(seed))
    put(empty, bytes(LENGTH))
    for address in (full, empty):
        program.register(address)
    return full, empty


def target(pipe, name, seed):
    context()
    program = PROGRAMS[name]("target")
    full, empty = buffers(program, seed)
    pipe.send((program.known_by(), full, empty, where_in_gpu(empty)))
    if hasattr(program, "connect"):
        program.connect(pipe.recv())
    while not pipe.poll(0.01):
        getattr(program, "progress", int)()
    pipe.recv()
    for address in (full, empty):
        program.deregister(address)


def started(name):
    context()
    PROGRAMS[name]("alone")


def refused(name):
    context()
    PROGRAMS[name]("alone").register(alloc(LENGTH))


def registered(name):
    """Prints by which way the program has registered a buffer of GPU memory."""
    context()
    program, address = PROGRAMS[name]("alone"), alloc(LENGTH)
    before = served()
    program.register(address)
    pointers, descriptors = served() - before, counters("live_dma_bufs")[0]
    program.deregister(address)
    check("registered by one way", bool(pointers) != bool(descriptors))
    print("way=" + ("pointer" if pointers else "dma-buf"), flush=True)


def served():
    """Returns how many registrations nv_peer_mem has served so far."""
    with open("/sys/kernel/mm/memory_peers/nv_mem/num_alloc_mrs") as file:
        return int(file.read())


def moved(name, seed):
    seed = int(seed)
    pipe, server = process(target, name, seed)
    context()
    program = PROGRAMS[name]("initiator")
    full, empty = buffers(program, seed + 1)
    peer, their_full, their_empty, their_offset = pipe.recv()
    if hasattr(program, "connect"):
        pipe.send(program.known_by())
        program.connect(peer)
    check("read", program.read(peer, empty, their_full))
    check("written", program.write(peer, full, their_empty))
    print(f"read_offset={where_in_gpu(empty)}\nwritten_offset={their_offset}")
    print(f"length={LENGTH}\nholding", flush=True)
    sys.stdin.readline()
    pipe.send("end")
    for address in (full, empty):
        program.deregister(address)
    server.join()
    equal("the target ends well", 0, server.exitcode)


# The places of the numbers that killed() and its child share: how many writes have begun and ended.
BEGUN, ENDED = range(2)
# A write of this many buffers takes much longer than the kill of a process.
LONG = 32


def killed(name):
    pipe, server = process(target, name, 1)
    context()
    program = PROGRAMS[name]("initiator")
    full, _ = buffers(program, 2)
    peer, _, their_empty, _ = pipe.recv()
    check("written before", program.write(peer, full, their_empty))
    shared = (ctypes.c_uint64 * 2).from_buffer(mmap.mmap(-1, mmap.PAGESIZE))
    # The child kills the target while the parent writes, after a write has ended well. The device
    # may still end this write before the kernel has ended the target; then a later write fails.
    ours = os.getpid()
    if not os.fork():
        while os.getppid() == ours and not 0 < shared[ENDED] < shared[BEGUN]:
            time.sleep(0.001)
        os.kill(server.pid, signal.SIGKILL)
        os._exit(0)
    while True:
        shared[BEGUN] += 1
        if not program.write(peer, full, their_empty, LONG):
            break
        shared[ENDED] += 1
    server.join()
    equal("the target was killed", -signal.SIGKILL, server.exitcode)
    check("a write ended well before the kill", shared[ENDED] > 0)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
