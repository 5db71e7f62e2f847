# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The GPU's half of the tests: what needs no RDMA device, no module and no right to load one. CUDA
allocates each kind of memory, and exports it as a dma-buf, which an RDMA device would take."""

from typing import Callable, Sequence, Tuple

import built
import measure
import traces
from context import BLOCK, MIB, Context
from talk import Client, NotHere

SIZES = (*measure.SIZES, 1024 * MIB)
TEXTS = {
    "device": "memory of cudaMalloc",
    "vmm": "memory of cuMemCreate with gpuDirectRDMACapable",
    "vmm-plain": "memory of cuMemCreate without it",
    "pool": "memory of a pool",
    "managed": "managed memory",
    "host": "host memory",
}
GPU_KINDS = [kind for kind in TEXTS if kind != "host"]
NOT_SUPPORTED = "CUDA_ERROR_NOT_SUPPORTED"
NO_ROOM = "CUDA_ERROR_OUT_OF_MEMORY"
# What CUDA answers for memory that is no GPU memory, or that moves between GPU and host.
NO_EXPORT = ("CUDA_ERROR_INVALID_VALUE", NOT_SUPPORTED)
# What CUDA answers for memory that this machine does not have, or has no room for.
ABSENT = (NOT_SUPPORTED, NO_ROOM)
NO_DMA_BUF = "CUDA exports no dma-buf: the driver is the proprietary one, or too old"


def prepare(c: Context) -> None:
    """Builds the client without libibverbs."""
    c.built.mkdir(mode=0o700, exist_ok=True)
    if c.options.built:
        built.taken(c.options.built, [c.client_file.name], c.built)
        c.ok(f"taken from {c.options.built}, not built here")
        return
    log = c.directory / "client.log"
    wrong = built.client(c.source, c.client_file, log, has_verbs=False)
    c.check("the client is compiled", not wrong, wrong)


def allocated(
    c: Context, client: Client, kind: str, size: int, absent: Sequence[str] = ABSENT
) -> bool:
    """Allocates buffer 0. Writes a line and returns false if this machine has no such memory."""
    said = client.ask("alloc", 0, kind, size)
    if said.startswith("not ") or said in absent:
        c.no("{}, {} bytes: {}".format(TEXTS[kind], size, said.replace("not ", "", 1)))
        return False
    c.equal(f"{TEXTS[kind]} is allocated", "ok", said)
    return said == "ok"


def memory(c: Context) -> None:
    """Memory of each kind holds the bytes that are copied to it, at odd offsets."""
    with c.client() as client:
        client.sure("cuda")
        for kind in GPU_KINDS:
            if not allocated(c, client, kind, 8 * MIB):
                continue
            for seed, (length, skip) in enumerate(((1, 65535), (300001, 7), (4 * MIB, 4095)), 1):
                text = f"{TEXTS[kind]}, {length} bytes at {skip}"
                client.sure("fill", 0, skip - 1, length + 2, 0)
                client.sure("fill", 0, skip, length, seed)
                there = client.ask("compare", 0, skip, length, seed)
                around = [client.ask("compare", 0, at, 1, 0) for at in (skip - 1, skip + length)]
                c.equal(text, ["ok"] * 3, [there, *around])
            client.sure("free", 0)


def exports(c: Context) -> None:
    """Each kind of memory is exported as a dma-buf of its size, or refused by CUDA."""
    with c.client() as client:
        client.sure("cuda")
        has_dma_buf(client)
        for kind in TEXTS:
            if not allocated(c, client, kind, BLOCK):
                continue
            said = client.ask("export", 0, BLOCK)
            if kind in ("managed", "host"):
                c.check(f"{TEXTS[kind]} is refused ({said})", said in NO_EXPORT, said)
            else:
                c.equal(f"{TEXTS[kind]}: a dma-buf of its size", f"ok {BLOCK}", said)
            if said.startswith("ok"):
                client.sure("unexport", 0)
            client.sure("free", 0)
        client.sure("alloc", 0, "device", BLOCK)
        said = client.ask("export", 0, 1000)
        c.check(f"a part of a page is refused ({said})", said == NO_EXPORT[0], said)
        client.sure("free", 0)


def has_dma_buf(client: Client) -> None:
    """Ends the step if the driver exports nothing at all."""
    client.sure("alloc", 63, "device", BLOCK)
    said = client.ask("export", 63, BLOCK)
    if said in (NOT_SUPPORTED, "libcuda.so.1 exports no dma-buf"):
        raise NotHere(NO_DMA_BUF)
    if said.startswith("ok"):
        client.sure("unexport", 63)
    client.sure("free", 63)


def settled(client: Client, wanted: int) -> int:
    """Returns the free bytes of the GPU as soon as they are the wanted, or after a while."""
    return traces.settled(lambda: int(client.sure("room")[0]), wanted)


def freed(c: Context) -> None:
    """A dma-buf keeps its memory after the program has freed it, and gives it back at its end."""
    size = 256 * MIB
    with c.client() as client:
        client.sure("cuda")
        has_dma_buf(client)
        # CUDA reserves memory for itself at the first use.
        client.sure("alloc", 0, "device", size)
        client.sure("free", 0)
        before = int(client.sure("room")[0])
        client.sure("alloc", 0, "device", size)
        client.sure("export", 0, size)
        client.sure("free", 0)
        held = before - int(client.sure("room")[0])
        c.check(f"freed, and not given back ({held} bytes)", held >= size)
        client.sure("unexport", 0)
        c.equal("given back at the end of the dma-buf", before, settled(client, before))


def killed(c: Context) -> None:
    """A process that is killed with memory exported leaves nothing."""
    size = 256 * MIB
    with c.client() as witness:
        witness.sure("cuda")
        before = int(witness.sure("room")[0])
        client = c.client()
        has_dma_buf(client)
        # CUDA itself uses memory of the GPU for each process.
        began = int(witness.sure("room")[0])
        client.sure("alloc", 0, "device", size)
        client.sure("export", 0, size)
        c.check("its memory is in use", began - int(witness.sure("room")[0]) >= size)
        client.kill()
        c.check("it is killed", client.process.returncode == -9)
        c.equal("all memory is given back", before, settled(witness, before))


def measured(c: Context) -> None:
    """The time of an export as dma-buf and of its end, by size and threads."""
    with c.client() as client:
        client.sure("cuda")
        has_dma_buf(client)
        for size in SIZES:
            if not allocated(c, client, "device", size):
                continue
            measure.timed(c, client, size, ("export", "its close"), "time-export")
            client.sure("free", 0)


# For each step its name, what it does, the seconds after which it hangs, and those that it takes.
OF_A_GPU: Tuple[Tuple[str, Callable[[Context], None], int, int], ...] = (
    ("memory", memory, 120, 5),
    ("exports", exports, 120, 5),
    ("freed", freed, 120, 5),
    ("killed", killed, 120, 5),
    ("measure", measured, 300, 15),
)
