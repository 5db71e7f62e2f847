# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""pyverbs on device pointers: every operation that the software HCA has."""
import errno

from pyverbs.mr import MW, MWBind, MWBindInfo

from lab import *
from rdma import *

SIZE = 300001


def filled(seed, size=SIZE):
    address, data = alloc(size), pattern(seed, size)
    put(address, data)
    return address, data


def transfers(hca):
    pair = hca.pair()
    source, sent = filled(1)
    target, kept = filled(2)
    from_, to = hca.register(source, SIZE), hca.register(target, SIZE)
    equal("write", 0, pair.write(from_, source + 7, 200000, to.rkey, target + 11))
    kept = kept[:11] + sent[7:200007] + kept[200011:]
    same("write: the target, and what is around", kept, get(target, SIZE))
    equal("read", 0, pair.read(from_, source + 1, 70000, to.rkey, target + 100000))
    sent = sent[:1] + kept[100000:170000] + sent[70001:]
    same("read: what came", sent, get(source, SIZE))
    equal("send", 0, pair.send(from_, source, 100000, to, target + 5))
    kept = kept[:5] + sent[:100000] + kept[100005:]
    same("send: what was received", kept, get(target, SIZE))
    atomics(pair, from_, source, to, target)
    for thing in (from_, to):
        thing.close()
    free(source)
    free(target)


def atomics(pair, from_, source, to, target):
    place = target + 64
    put(place, (41).to_bytes(8, "little"))
    word = lambda address: int.from_bytes(get(address, 8), "little")
    equal("fetch and add", 0, pair.atomic(e.IBV_WR_ATOMIC_FETCH_AND_ADD, from_, source, to.rkey, place, 1))
    equal("fetch and add: before and after", (41, 42), (word(source), word(place)))
    swap = (e.IBV_WR_ATOMIC_CMP_AND_SWP, from_, source, to.rkey, place)
    equal("compare and swap", 0, pair.atomic(*swap, 42, 1 << 40))
    equal("compare and swap: before and after", (42, 1 << 40), (word(source), word(place)))
    pair.atomic(*swap, 42, 7)
    equal("compare and swap: of another value nothing", (1 << 40, 1 << 40), (word(source), word(place)))


def again(hca):
    """The rights and the domain change, the range does not: that much the software HCA has; before Linux 6.4, nothing."""
    plain = MR(hca.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE)
    if hca.reregister(plain, e.IBV_REREG_MR_CHANGE_ACCESS, ALL) == errno.EOPNOTSUPP:
        return not_again(hca, plain)
    plain.close()
    address, data = filled(3)
    target, _ = filled(4)
    from_, to = hca.register(address, SIZE), hca.register(target, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
    regions = counter("live_umems", CORE)
    refused = hca.pair().write(from_, address, 1000, to.rkey, target)
    equal("without the right to write", e.IBV_WC_REM_ACCESS_ERR, refused)
    equal("registered again, with it", 0, hca.reregister(to, e.IBV_REREG_MR_CHANGE_ACCESS, ALL))
    equal("written then", 0, hca.pair().write(from_, address, 1000, to.rkey, target))
    same("what was written then", data[:1000], get(target, 1000))
    other = PD(hca.context)
    equal("given to another domain", 0, hca.reregister(to, e.IBV_REREG_MR_CHANGE_PD, pd=other))
    check("not written from the one before",
          hca.pair().write(from_, address + 1000, 1000, to.rkey, target) == e.IBV_WC_REM_ACCESS_ERR)
    same("nothing was written then", data[:1000], get(target, 1000))
    equal("another range is refused", errno.EOPNOTSUPP,
          hca.reregister(to, e.IBV_REREG_MR_CHANGE_TRANSLATION, address=address, length=SIZE))
    try:
        MR(hca.pd, 4096, ALL).rereg(e.IBV_REREG_MR_CHANGE_ACCESS, access=ALL)
        fail("rdma-core can register again by now: use that in Hca.reregister")
    except PyverbsRDMAError as found:
        equal("rdma-core itself has no such call, for memory of the CPU either", errno.EOPNOTSUPP, found.error_code)
    equal("the registrations are the same ones", regions, counter("live_umems", CORE))
    for thing in (from_, to, other):
        thing.close()
    free(address)
    free(target)


def not_again(hca, plain):
    address, _ = filled(3)
    mr = hca.register(address, SIZE)
    equal("not registered again, like memory of the CPU", errno.EOPNOTSUPP,
          hca.reregister(mr, e.IBV_REREG_MR_CHANGE_ACCESS, ALL))
    for thing in (mr, plain):
        thing.close()
    free(address)


def windows(hca):
    address, data = filled(5)
    target, kept = filled(6)
    from_, to = hca.register(address, SIZE), hca.register(target, SIZE)
    info = MWBindInfo(to, target + 4096, 8192, e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ)
    for kind, name in ((e.IBV_MW_TYPE_1, "type 1"), (e.IBV_MW_TYPE_2, "type 2")):
        pair = hca.pair()
        window = MW(hca.pd, kind)
        if kind == e.IBV_MW_TYPE_1:
            pair.right.bind_mw(window, MWBind(info, wr_id=1, send_flags=e.IBV_SEND_SIGNALED))
        else:
            request = SendWR(opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
            request.set_bind_wr(window, info)
            pair.right.post_send(request)
        equal(f"window of {name}: bound", [0], pair.wait())
        # Binding one of type 2 gives it the next key.
        rkey = window.rkey if kind == e.IBV_MW_TYPE_1 else window.rkey & ~255 | window.rkey + 1 & 255
        put(target, kept)
        equal(f"window of {name}: written through", 0, pair.write(from_, address, 8192, rkey, target + 4096))
        same(f"window of {name}: what was written, and what is around", kept[:4096] + data[:8192] + kept[12288:],
             get(target, SIZE))
        equal(f"window of {name}: not with rights that it was not given", e.IBV_WC_REM_ACCESS_ERR,
              pair.atomic(e.IBV_WR_ATOMIC_FETCH_AND_ADD, from_, address, rkey, target + 4096, 1))
        window.close()
        check(f"window of {name}: not when it is gone",
              hca.pair().write(from_, address, 8192, rkey, target + 4096) == e.IBV_WC_REM_ACCESS_ERR)
        same(f"window of {name}: nothing was written then", kept[:4096] + data[:8192] + kept[12288:],
             get(target, SIZE))
    for thing in (from_, to):
        thing.close()
    free(address)
    free(target)


context()
hca = Hca()
for part in (transfers, again, windows):
    part(hca)
hca.close()
