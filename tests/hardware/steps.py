# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The steps: for each a name, a time limit, what it tries, and what the contract says. A step runs
in a process of its own. It writes a line for each thing that held, did not hold, or could not be
tried. The same steps run on hardware and in a guest of the lab; `lab` names the scenario that tries
the same with injected faults."""

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import built
import gpus
import machine
import measure
import peer
import traces
import undo
from journal import Journal
from talk import Broken, Client, Loop, NotHere, Pair

KIB, MIB = 1 << 10, 1 << 20
# A completion with one of these is no refusal, because nobody has answered.
SILENCE = ("RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "RESP_TIMEOUT_ERR")
NO_ROOM = "CUDA_ERROR_OUT_OF_MEMORY"
PERSISTENT, REVOCABLE = "persistent", "revocable"
PARAMETERS = {
    PERSISTENT: ["persistent_api_support=1"],
    REVOCABLE: ["persistent_api_support=0"],
}
# The driver frees buffers of whole blocks of this size by themselves (docs/programs.md).
BLOCK = 2 * MIB
MANY = 1000
# The kinds of memory (gpus.TEXTS) that the driver pins for nobody.
NOT_PINNED = ("vmm-plain", "pool", "managed")


class Context:
    """What a step has to work with."""

    def __init__(self, directory: Path, journal: Journal, options: Any) -> None:
        self.directory, self.journal, self.options = directory, journal, options
        self.source = directory / "source"
        self.built = directory / "built"
        self.client_file = self.built / built.CLIENT
        self.step = ""
        self.pair = None  # type: Optional[Pair]
        self.mode = ""
        self.before: Dict[str, Any] = {}

    def line(self, word: str, text: str) -> None:
        self.journal.write("line", step=self.step, word=word, text=text)

    def ok(self, text: str) -> None:
        self.line("ok", text)

    def bad(self, text: str) -> None:
        self.line("bad", text)

    def no(self, text: str) -> None:
        self.line("not", text)

    def check(self, text: str, is_so: bool, more: str = "") -> None:
        if is_so:
            self.ok(text)
        else:
            self.bad(text + (": " + more if more else ""))

    def equal(self, text: str, expected: Any, got: Any) -> None:
        self.check(text, got == expected, f"expected {expected}, got {got}")

    def figure(self, name: str, value: float, unit: str) -> None:
        self.journal.write("figure", step=self.step, name=name, value=value, unit=unit)

    def client(self) -> Client:
        assert self.pair
        return Client(str(self.client_file), self.pair, self.journal)

    def answers(self, text: str, expected: Tuple[str, ...], said: str) -> bool:
        """Judges an answer of the client. Returns whether it was `ok`."""
        word, _, rest = said.partition(" ")
        if word == "not":
            self.no(f"{text}: {rest}")
        else:
            is_right = word in expected
            more = "expected {}, got {}".format(" or ".join(expected), said)
            self.check(f"{text}: {word}", is_right, more)
        return word == "ok"


# ---- the machine ----------------------------------------------------------------------------


def prepare(c: Context) -> None:
    """Builds module and client, or takes the built ones of --built."""
    c.built.mkdir(mode=0o700, exist_ok=True)
    if c.options.built:
        built.taken(c.options.built, [*built.FILES, c.client_file.name], c.built)
        c.ok(f"taken from {c.options.built}, not built here")
        return
    wrong = built.module(c.source, c.directory / "build.log")
    if not wrong:
        for name in built.FILES:
            (c.built / name).write_bytes((c.source / name).read_bytes())
        c.ok("the module is built for this kernel")
        wrong = built.client(c.source, c.client_file, c.directory / "client.log")
    c.check("the client is compiled", not wrong, wrong)


def take_out(c: Context) -> None:
    """Stops the service and unloads the module that serves GPU memory, until the end of the run."""
    stays = undo.stop(c.journal, "nv_peer_mem.service")
    holders = machine.paths("/sys/module/nv_peer_mem/holders/*")
    if undo.loaded("nv_peer_mem") and any(path.endswith("/nvidia_peermem") for path in holders):
        wrong = undo.take_out(c.journal, "nvidia_peermem", undo.MARKER)
    else:
        wrong = undo.take_out(c.journal, "nvidia_peermem", "nvidia-peermem")
    wrong = stays or wrong or undo.take_out(c.journal, "nv_peer_mem", "nv_peer_mem")
    c.check("no module serves GPU memory", not wrong, wrong)


def put_in(c: Context) -> None:
    """Loads the built module in a mode. The module that receives callbacks stays until a reboot."""
    wrong = undo.unload(["nv_peer_mem"]) or undo.unload(["nvidia_peermem"])
    if not wrong and not undo.loaded("nv_peer_mem_callback"):
        callback = machine.run(["insmod", str(c.built / built.FILES[0])], undo.LIMIT)
        wrong = callback.output if callback.code else ""
    wrong = wrong or undo.put_in(
        c.journal, "nv_peer_mem", c.built / built.FILES[1], PARAMETERS[c.mode]
    )
    c.check(f"loaded with {PARAMETERS[c.mode][0]}", not wrong, wrong)


def out_again(c: Context) -> None:
    """The module can be unloaded after all that was done with it."""
    wrong = undo.unload(["nv_peer_mem"])
    c.check("the module can be unloaded", not wrong, wrong)


# ---- registrations --------------------------------------------------------------------------


def room(c: Context) -> Tuple[int, int]:
    """Returns how many bytes of BAR1 the pair's GPU has, and how many of them are free."""
    assert c.pair
    total, used = traces.bar1().get(traces.short(c.pair.pci), [0, 0])
    return total * MIB, (total - used) * MIB


def sizes(c: Context) -> None:
    """Memory of 4 KiB to as much as BAR1 has room for is registered; more is refused."""
    total, free = room(c)
    largest = free - free // 8 if total else 16 * MIB
    wanted = [4 * KIB, 64 * KIB, MIB, 16 * MIB]
    while wanted[-1] * 4 <= largest:
        wanted.append(wanted[-1] * 4)
    if total and largest > wanted[-1]:
        wanted.append(largest // BLOCK * BLOCK)
    with c.client() as client:
        for size in wanted:
            said = client.ask("alloc", 0, "device", size)
            if said == NO_ROOM:
                c.no(f"{size} bytes: the GPU has no such room")
                continue
            if said != "ok":
                raise Broken(f"cudaMalloc of {size} bytes: {said}")
            if c.answers(f"{size} bytes", ("ok",), client.ask("reg", 0, 0, 0, size)):
                c.equal(f"{size} bytes, its end", "ok", client.ask("dereg", 0))
            client.sure("free", 0)
        if not total:
            c.no("more than 16 MiB: nvidia-smi does not say how large BAR1 is")
        elif client.ask("alloc", 0, "device", total) != "ok":
            c.no("more than BAR1 has: the GPU has no such memory, or has it all in BAR1")
        else:
            # With static BAR1 all memory is in BAR1 already.
            said = client.ask("reg", 0, 0, 0, total)
            if c.answers("more than BAR1 has free", ("ENOMEM", "ok"), said):
                client.sure("dereg", 0)
            client.sure("free", 0)


def kinds(c: Context) -> None:
    """Each kind of memory is registered, or refused with the errno of docs/troubleshooting.md."""
    with c.client() as client:
        for kind, text in gpus.TEXTS.items():
            if not gpus.allocated(c, client, kind, BLOCK, [gpus.NOT_SUPPORTED]):
                continue
            expected = "EFAULT" if kind in NOT_PINNED else "ok"
            if c.answers(text, (expected,), client.ask("reg", 0, 0, 0, BLOCK)):
                c.equal(f"{text}, its end", "ok", client.ask("dereg", 0))
            client.sure("free", 0)
        client.sure("alloc", 0, "device", BLOCK)
        where = int(client.sure("where", 0)[0])
        client.sure("free", 0)
        c.answers("freed memory", ("EFAULT",), client.ask("regraw", 0, where, BLOCK))


def across(c: Context) -> None:
    """A range over two allocations is refused; each by itself is registered."""
    with c.client() as client:
        places = {}
        for buffer in range(16):
            client.sure("alloc", buffer, "device", BLOCK)
            places[int(client.sure("where", buffer)[0])] = buffer
        together = [start for start in places if start + BLOCK in places]
        if not together:
            raise NotHere("CUDA places no two allocations side by side")
        start = together[0]
        said = client.ask("regraw", 0, start + BLOCK - 1, 2)
        c.answers("two bytes, of two allocations", ("EFAULT",), said)
        said = client.ask("regraw", 0, start, 2 * BLOCK)
        c.answers("all of two allocations", ("EFAULT",), said)
        for at in (start, start + BLOCK):
            c.answers("an allocation by itself", ("ok",), client.ask("regraw", 0, at, BLOCK))
            client.sure("dereg", 0)


# ---- transfers ------------------------------------------------------------------------------

# Lengths and offsets as in the scenario `layouts`.
RANGES = ((65536, 0), (1, 65535), (4096, 4095), (300001, 7), (3 * MIB + 17, 65000))


def transfers(c: Context) -> None:
    """Write, read and send move exactly the bytes, at odd offsets, in GPU and host memory."""
    with c.client() as client:
        loop = Loop(client, client)
        for near, far in (("device", "device"), ("host", "device"), ("device", "host")):
            client.sure("alloc", 0, near, 8 * MIB)
            client.sure("alloc", 1, far, 8 * MIB)
            for seed, (length, skip) in enumerate(RANGES, 1):
                for operation in ("write", "read", "send"):
                    moved(c, client, loop, operation, (near, far), (length, skip, seed))
            client.sure("free", 0)
            client.sure("free", 1)
        loop.close()


def moved(
    c: Context,
    client: Client,
    loop: Loop,
    operation: str,
    kinds_of: Tuple[str, str],
    what: Tuple[int, int, int],
) -> None:
    """Moves bytes from one buffer to the other, and compares both, and the bytes around them."""
    length, skip, seed = what
    text = "{} from {} to {}, {} bytes at {}".format(operation, *kinds_of, length, skip)
    around = min(64, skip)
    client.sure("fill", 0, skip, length, seed)
    client.sure("fill", 1, skip - around, length + around + 64, 0)
    client.sure("reg", 0, 0, skip, length)
    client.sure("reg", 1, 1, skip, length)
    # A read is made by the target's side, so the local region is the target.
    local, remote = (1, 0) if operation == "read" else (0, 1)
    said = loop.do(operation, local, 0, length, remote)
    if said != "ok":
        raise Broken(f"{text}: {said}")
    there = client.ask("compare", 1, skip, length, seed)
    here = client.ask("compare", 0, skip, length, seed)
    before = client.ask("compare", 1, skip - around, around, 0) if around else "ok"
    behind = client.ask("compare", 1, skip + length, 64, 0)
    c.equal(text, ["ok"] * 4, [there, here, before, behind])
    client.sure("dereg", 0)
    client.sure("dereg", 1)


def atomics(c: Context) -> None:
    """Two atomic additions to GPU memory return the old values, and add up."""
    with c.client() as client:
        client.sure("atomics")
        loop = Loop(client, client)
        for buffer in (0, 1):
            client.sure("alloc", buffer, "device", BLOCK)
            client.sure("fill", buffer, 0, 64, 0)
            client.sure("reg", buffer, buffer, 0, BLOCK)
        for before in (0, 7):
            c.equal("an addition", "ok", loop.do("atomic", 0, 0, 8, 1, 7))
            c.equal("the old value", [str(before)], client.sure("word", 0, 0))
            c.equal("the new value", [str(before + 7)], client.sure("word", 1, 0))


def dma_buf(c: Context) -> None:
    """A dma-buf is registered beside the module, and moves the same bytes."""
    with c.client() as client:
        for buffer in (0, 1):
            client.sure("alloc", buffer, "device", BLOCK)
        said = client.ask("regbuf", 0, 0, BLOCK)
        if said in ("EOPNOTSUPP", "EPROTONOSUPPORT"):
            raise NotHere(f"the RDMA device takes no dma-buf ({said})")
        if c.answers("a dma-buf", ("ok",), said):
            loop = Loop(client, client)
            client.sure("fill", 0, 0, BLOCK, 5)
            client.sure("fill", 1, 0, BLOCK, 0)
            client.sure("reg", 1, 1, 0, BLOCK)
            c.equal("write from it to a pointer's memory", "ok", loop.do("write", 0, 0, BLOCK, 1))
            c.equal("its bytes", "ok", client.ask("compare", 1, 0, BLOCK, 5))


# ---- ends at the wrong time -----------------------------------------------------------------


def refused(status: str) -> bool:
    return status != "ok" and status not in SILENCE


def freed(c: Context) -> None:
    """Memory freed while it is registered: pinned until the end, or refused to the device."""
    for far_is_freed in (False, True):
        with c.client() as client:
            text = "freed at the {} end".format("far" if far_is_freed else "near")
            before = traces.statistic("revocations")
            loop = set_up(client, "device", "device")
            c.equal(text + ": a write before", "ok", loop.do("write", 0, 0, BLOCK, 1))
            client.sure("free", 1 if far_is_freed else 0)
            # The device reads what was freed. It must not write there: somebody else may own it.
            said = loop.do("read" if far_is_freed else "write", 0, 0, 4096, 1)
            judge_freed(c, text, said)
            revoked = traces.statistic("revocations") - before
            c.equal(text + ": revocations", 1 if c.mode == REVOCABLE else 0, revoked)
            c.equal(text + ": its end", "ok", client.ask("dereg", 1 if far_is_freed else 0))
            c.equal(text + ": the other's end", "ok", client.ask("dereg", int(not far_is_freed)))


def judge_freed(c: Context, text: str, said: str) -> None:
    if c.mode == PERSISTENT:
        c.equal(text + ": the device still reads it", "ok", said)
    else:
        c.check(text + f": the device is refused ({said})", refused(said))


def set_up(client: Client, near: str, far: str, length: int = BLOCK) -> Loop:
    """Makes two registered buffers and a loop between them."""
    loop = Loop(client, client)
    for buffer, kind in enumerate((near, far)):
        client.sure("alloc", buffer, kind, length)
        client.sure("fill", buffer, 0, length, buffer + 1)
        client.sure("reg", buffer, buffer, 0, length)
    return loop


def freed_meanwhile(c: Context) -> None:
    """Memory freed while a transfer runs: the transfers go on, or are refused; nothing hangs."""
    with c.client() as client:
        loop = set_up(client, "device", "host", 8 * MIB)
        loop.begin("write", 0, 8 * MIB, 1)
        time.sleep(0.5)
        client.sure("free", 0)
        time.sleep(0.5)
        said = loop.end()
        if c.mode == PERSISTENT:
            c.equal("the transfers go on", "ok", said[0])
        else:
            c.check(f"the transfers are refused ({said[0]})", refused(said[0]))
        c.check("transfers were made before", int(said[1]) > 0)
        for region in (0, 1):
            c.equal(f"the end of registration {region}", "ok", client.ask("dereg", region))


def killed(c: Context) -> None:
    """A process killed in mid-transfer, and one killed while it registers, leave nothing."""
    client = c.client()
    loop = set_up(client, "device", "device", 8 * MIB)
    loop.begin("write", 0, 8 * MIB, 1)
    time.sleep(0.5)
    client.kill()
    c.check("a process in mid-transfer is killed", client.process.returncode == -9)
    client = c.client()
    client.sure("alloc", 0, "device", BLOCK)
    client.process.stdin.write(  # type: ignore[union-attr]
        f"time 0 {BLOCK} 1000000 4 pointer\n".encode()
    )
    client.process.stdin.flush()  # type: ignore[union-attr]
    time.sleep(1)
    client.kill()
    c.check("a process that registers is killed", client.process.returncode == -9)


def forked(c: Context) -> None:
    """A child of fork() cannot register the parent's memory, and the parent does not notice."""
    with c.client() as client:
        loop = set_up(client, "device", "device")
        c.answers("a child registers it", ("EFAULT",), client.ask("child", 0, BLOCK))
        client.sure("fill", 1, 0, BLOCK, 0)
        c.equal("a write of the parent after that", "ok", loop.do("write", 0, 0, BLOCK, 1))
        c.equal("its bytes", "ok", client.ask("compare", 1, 0, BLOCK, 1))


def many(c: Context) -> None:
    """A thousand registrations at once, made and ended by eight threads."""
    with c.client() as client:
        client.sure("alloc", 0, "device", MANY * 64 * KIB)
        said = client.ask("storm", 0, 8, MANY, 64 * KIB)
        c.equal(f"{MANY} registrations by 8 threads", "ok", said)
        if said == "ok":
            c.equal("that the module counts", MANY, traces.statistic("reachable_regions"))
        c.equal("their ends", "ok", client.ask("calm"))


def in_use(c: Context) -> None:
    """A module in use is not unloaded, and goes on."""
    with c.client() as client:
        loop = set_up(client, "device", "device")
        done = machine.run(["rmmod", "nv_peer_mem"], undo.LIMIT)
        c.check("rmmod is refused", done.code != 0 and undo.loaded("nv_peer_mem"), done.output)
        c.equal("a write after that", "ok", loop.do("write", 0, 0, BLOCK, 1))


# ---- the table ------------------------------------------------------------------------------


class Step(NamedTuple):
    name: str
    act: Callable[[Context], None]
    # The seconds after which the step hangs, and about how long it takes.
    limit: int
    takes: int
    # Which scenario of the lab tries the same, with faults that only a double can make.
    lab: str = ""
    pair: Optional[Pair] = None
    mode: str = ""
    # The steps that must have held before. If one did not, this step is not tried.
    needs: Tuple[str, ...] = ()

    @property
    def last(self) -> str:
        return self.name.rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        return (self.act.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")


OF_A_PAIR = (
    ("sizes", sizes, 300, 10, "straight errors"),
    ("kinds", kinds, 120, 5, "security"),
    ("across", across, 120, 5, "security"),
    ("transfers", transfers, 300, 10, "straight layouts"),
    ("atomics", atomics, 120, 3, ""),
    ("freed", freed, 180, 10, "revoke freed"),
    ("freed-meanwhile", freed_meanwhile, 180, 10, "revoke injected_frees"),
    ("killed", killed, 180, 10, "kill"),
    ("forked", forked, 120, 5, "inherit"),
    ("many", many, 180, 10, "regions stress"),
    ("in-use", in_use, 120, 5, "reload inherit"),
    ("dma-buf", dma_buf, 120, 5, "own_dma_bufs"),
)  # type: Tuple[Tuple[str, Callable[[Context], None], int, int, str], ...]


def plan_of_gpus(every: List[Pair], is_measured: bool) -> List[Step]:
    """Returns the steps of a run that tries only GPUs."""
    steps = [Step("build", gpus.prepare, built.CLIENT_LIMIT + 60, 10)]
    for gpu in every:
        for name, act, limit, takes in gpus.OF_A_GPU:
            if act is not gpus.measured or is_measured:
                whole = f"cuda/{gpu.name}/{name}"
                steps.append(Step(whole, act, limit, takes, "", gpu, "", ("build",)))
    return steps


def plan(pairs: List[Pair], is_measured: bool, builds: bool, has_peer: bool = False) -> List[Step]:
    """Returns the steps of a run, in order."""
    steps = [
        Step("build", prepare, built.MODULE_LIMIT + 300, 120 if builds else 1),
        Step("take-out", take_out, 300, 2, needs=("build",)),
    ]
    if has_peer:
        steps.append(Step("peer", peer.carry, 180, 5, needs=("build",)))
    for mode in (PERSISTENT, REVOCABLE):
        load = f"{mode}/load"
        steps.append(Step(load, put_in, 300, 2, "parameters", None, mode, ("take-out",)))
        for pair in pairs:
            for name, act, limit, takes, lab in OF_A_PAIR:
                whole = f"{mode}/{pair.name}/{name}"
                steps.append(Step(whole, act, limit, takes, lab, pair, mode, (load,)))
            for name, act, limit, takes, lab in peer.OF_PEER if has_peer else ():
                if act is not peer.measured or is_measured:
                    whole = f"{mode}/{pair.name}/{name}"
                    needs = (load, "peer")
                    steps.append(Step(whole, act, limit, takes, lab, pair, mode, needs))
            if is_measured:
                whole = f"{mode}/{pair.name}/measure"
                steps.append(Step(whole, measure.ours, 600, 30, "bench", pair, mode, (load,)))
        steps.append(Step(f"{mode}/unload", out_again, 300, 2, "reload", None, mode, (load,)))
    if is_measured:
        needs = ("take-out", "revocable/unload")
        theirs = "nvidia-peermem/load"
        steps.append(Step(theirs, measure.load_theirs, 300, 2, needs=needs))
        for pair in pairs:
            whole = f"nvidia-peermem/{pair.name}/measure"
            steps.append(Step(whole, measure.ours, 600, 30, "bench", pair, "", (theirs,)))
            whole = f"dma-buf/{pair.name}/measure"
            steps.append(Step(whole, measure.by_dma_buf, 600, 30, "", pair, "", ("build",)))
    return steps
