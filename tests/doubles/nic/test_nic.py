# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests of the emulated ConnectX without a guest: layouts, queues, keys, requests, the witness."""

import struct
import subprocess
from pathlib import Path

import pytest
from bed import GPU, Bed, data, remote, request, umr, umr_of
from commands import Refused
from keys import Denied
from layout import C, View, byte_of, constants, place, size
from witness import FRAME

# Fields of structures that libmlx5 shares with the device, by its own names and by the kernel's.
SHARED = {
    "mlx5_cqe64": {
        "imm_inval_pkey": "immediate",
        "srqn_uidx": "srqn",
        "byte_cnt": "byte_cnt",
        "sop_drop_qpn": "sop_drop_qpn",
        "wqe_counter": "wqe_counter",
        "slid": "slid",
        "flags_rqpn": "flags_rqpn",
        "op_own": "op_own",
    },
    "mlx5_wqe_ctrl_seg": {"qpn_ds": "qpn_ds", "fm_ce_se": "fm_ce_se", "imm": "imm"},
    "mlx5_wqe_raddr_seg": {"rkey": "rkey"},
    "mlx5_wqe_data_seg": {"lkey": "lkey", "addr": "addr"},
    "mlx5_wqe_atomic_seg": {"compare": "compare"},
    "mlx5_wqe_av": {"dqp_dct": "dqp_dct", "rlid": "rlid", "grh_gid_fl": "grh_gid_fl"},
    "mlx5_wqe_srq_next_seg": {"next_wqe_index": "next_wqe_index"},
    "mlx5_wqe_umr_ctrl_seg": {
        "klm_octowords": "xlt_octowords",
        "translation_offset": "xlt_offset",
        "mkey_mask": "mkey_mask",
    },
}


def test_layouts(tmp_path: Path) -> None:
    """The compiler has the same opinion about the layouts in the header of libmlx5."""
    asked = [(name, field) for name, fields in SHARED.items() for field in fields]
    lines = [f'printf("%zu\\n", offsetof(struct {name}, {field}));' for name, field in asked]
    head = "#include <infiniband/mlx5dv.h>\n#include <stddef.h>\n#include <stdio.h>\n"
    (tmp_path / "ask.c").write_text(f"{head}int main(void) {{ {' '.join(lines)} }}\n")
    subprocess.run(["gcc-14", "-o", tmp_path / "ask", tmp_path / "ask.c"], check=True)
    said = subprocess.run([tmp_path / "ask"], capture_output=True, check=True).stdout.split()
    for (name, field), offset in zip(asked, said, strict=True):
        ours = name.replace("mlx5_wqe_av", "mlx5_av")
        assert byte_of(ours, SHARED[name][field]) == int(offset), (name, field)


def test_bits() -> None:
    """Words of the kernel's header tell some places: names of reserved fields contain these
    places."""
    assert place("create_cq_in", "reserved_at_2e1") == (0x2E1, 0x59F)
    assert place("qpc", "reserved_at_680") == (0x680, 3)
    assert place("create_eq_in", "event_bitmask[1]")[1] == 64
    assert size("mkc") == 64
    assert constants()["MLX5_CMD_OP_CREATE_MKEY"] == 0x200


# ---- queues ------------------------------------------------------------------------------


def test_queues_of_any_place() -> None:
    """A queue begins in the middle of a page and continues in another page. After its last entry, a
    queue begins again."""
    bed = Bed()
    cq = bed.cq(log=2)
    qp = bed.qp(cq, log=1)
    target = bed.pages()[0]
    key = bed.key(0, 4096, [target])
    for number in range(11):
        word = struct.pack(">I", number)
        inline = struct.pack(">I", C.INLINE_SEG | len(word)) + word + bytes(8)
        bed.post(qp, request(C.OPCODE_RDMA_WRITE, remote(key, 4 * number), inline))
    assert bed.device.memory.read(target, 44) == b"".join(n.to_bytes(4) for n in range(11))
    counters = [cqe["wqe_counter"] for cqe in bed.completions(cq)]
    assert counters == [7, 8, 9, 10]
    # The lowest bit says whether the device or the driver owns an entry. The bit changes with each
    # round.
    assert [cqe["op_own"] & 1 for cqe in bed.completions(cq)] == [1, 0, 0, 0]


def test_request_over_the_end() -> None:
    """A request of two blocks goes on at the beginning of its queue."""
    bed = Bed()
    qp = bed.qp(bed.cq(), log=2)
    pages = bed.pages(8)
    key = bed.key(0, 8 * 4096, pages)
    bed.device.memory.write(pages[0], b"abcdefgh")
    bed.post(qp, request(C.OPCODE_NOP))
    bed.post(qp, request(C.OPCODE_NOP))
    bed.post(qp, request(C.OPCODE_NOP))
    parts = [data(key, number, 1) for number in range(8)]
    bed.post(qp, request(C.OPCODE_RDMA_WRITE, remote(key, 4096), *parts))
    assert bed.device.memory.read(pages[1], 8) == b"abcdefgh"
    assert qp.sent == 6


def test_receive_and_what_is_not_ready() -> None:
    bed = Bed()
    cq = bed.cq()
    qp = bed.qp(cq)
    page = bed.pages()[0]
    key = bed.key(0, 4096, [page])
    bed.device.memory.write(page, b"sent")
    qp.context["rnr_retry"] = 7
    bed.post(qp, request(C.OPCODE_SEND_IMM, data(key, 0, 4), imm=0x1234))
    assert not bed.completions(cq)
    assert bed.device.waits()
    assert qp.receives
    for number in range(2):
        entry = data(key, 64 + number * 8, 8) + data(0x100, 0, 0)
        bed.device.memory.write(qp.receives.buffer.address(64 * number), entry)
    bed.ring(qp, C.RCV_DBR, 2)
    bed.device.tick()
    received, sent = bed.completions(cq)
    assert (received["op_own"] >> 4, received["byte_cnt"]) == (C.CQE_RESP_SEND_IMM, 4)
    assert (received["immediate"], received["srqn"]) == (0x1234, 77)
    assert sent["op_own"] >> 4 == C.CQE_REQ
    assert bed.device.memory.read(page + 64, 4) == b"sent"
    # A message that is too long puts both queue pairs into error, and their requests are flushed.
    bed.post(qp, request(C.OPCODE_SEND, data(key, 0, 9)))
    error, refused = bed.completions(cq)[-2:]
    assert View("mlx5_err_cqe", error.data)["syndrome"] == C.CQE_SYNDROME_LOCAL_LENGTH_ERR
    assert View("mlx5_err_cqe", refused.data)["syndrome"] == C.CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
    bed.post(qp, request(C.OPCODE_SEND, data(key, 0, 1)))
    assert View("mlx5_err_cqe", bed.last(cq).data)["syndrome"] == C.CQE_SYNDROME_WR_FLUSH_ERR


def test_a_larger_completion_queue() -> None:
    bed = Bed()
    cq = bed.cq(log=1)
    qp = bed.qp(cq)
    bed.post(qp, request(C.OPCODE_NOP))
    old = bed.device.completion_queues[cq].buffer
    pages = struct.pack(">2Q", *bed.pages(2))
    bed.run("MODIFY_CQ", pages, cqn=cq, op_mod=1, cq_context__log_cq_size=3)
    assert View("mlx5_cqe64", old.read(64, 64))["op_own"] >> 4 == C.CQE_RESIZE_CQ
    bed.post(qp, request(C.OPCODE_NOP))
    assert bed.last(cq)["wqe_counter"] == 1


# ---- keys ----------------------------------------------------------------------------------


def reach(
    bed: Bed, key: int, address: int, length: int, right: str = "rr"
) -> list[tuple[int, int]]:
    pieces = bed.device.keys.translate(key, address, length, right, bed.domain)
    return [(bus, piece) for _, bus, piece in pieces]


def test_pages() -> None:
    """The first page holds the key's first address. Pages in a row are one piece."""
    bed = Bed()
    pages = [0x40_0000, 0x41_0000, 0x80_0000]
    key = bed.key(0x1234, 0x21000, pages, shift=16)
    assert reach(bed, key, 0x1234, 1) == [(0x40_1234, 1)]
    assert reach(bed, key, 0x1234, 0x21000) == [(0x40_1234, 0x1EDCC), (0x80_0000, 0x2234)]
    for address, length in ((0x1233, 1), (0x22234, 1), (0x22233, 2), (0x1234, 0x21001)):
        with pytest.raises(Denied):
            reach(bed, key, address, length)


@pytest.mark.parametrize("right", ["lr", "lw", "rr", "rw", "a"])
def test_rights(right: str) -> None:
    bed = Bed()
    page = bed.pages()
    assert reach(bed, bed.key(0, 16, page), 0, 16, right)
    with pytest.raises(Denied):
        reach(bed, bed.key(0, 16, page, **{right: 0}), 0, 16, right)


def test_tag_domain_and_end() -> None:
    bed = Bed()
    key = bed.key(0, 16, bed.pages())
    for number, domain in ((key ^ 1, bed.domain), (key, bed.domain + 1), (key + 256, bed.domain)):
        with pytest.raises(Denied):
            list(bed.device.keys.translate(number, 0, 1, "lr", domain))
    bed.run("DESTROY_MKEY", mkey_index=key >> 8)
    with pytest.raises(Denied):
        reach(bed, key, 0, 1)
    with pytest.raises(Refused):
        bed.run("DESTROY_MKEY", mkey_index=key >> 8)


def test_changes_of_a_key() -> None:
    """A request fills a part of the table, changes what its mask says, and ends the key."""
    bed = Bed()
    cq = bed.cq(log=3)
    qp = bed.qp(cq, log=3)
    key = bed.key(0, 4 * 4096, [0x40_0000] * 4)

    def change(*segments: bytes) -> int:
        bed.post(qp, request(C.OPCODE_UMR, *segments, umr_mkey=key))
        return bed.last(cq)["op_own"] >> 4

    table = struct.pack(">2Q", 0x60_0003, 0x70_0001)
    assert change(umr(C.UMR_TRANSLATION_OFFSET_EN, 0, table, offset=1)) == C.CQE_REQ
    assert reach(bed, key, 0, 3 * 4096) == [(0x40_0000, 4096), (0x40_0000, 4096), (0x60_0000, 4096)]
    with pytest.raises(Denied):
        reach(bed, key, 3 * 4096, 1, "rw")
    assert change(umr(0, C.MKEY_MASK_LEN, len=4096)) == C.CQE_REQ
    with pytest.raises(Denied):
        reach(bed, key, 4096, 1)
    assert change(umr(C.UMR_CHECK_FREE, C.MKEY_MASK_FREE, free=1)) == C.CQE_REQ
    with pytest.raises(Denied):
        reach(bed, key, 0, 1)
    assert change(umr(C.UMR_CHECK_FREE, 0)) == C.CQE_REQ_ERR


def test_entries_in_another_protection_domain() -> None:
    """The driver of Linux 5.10 has its queue for such requests in one domain, and the list of
    entries in another. A card reads the list nevertheless, but not beyond its key."""
    bed = Bed()
    cq = bed.cq(log=3)
    qp = bed.qp(cq, log=3)
    key = bed.key(0, 2 * 4096, [0x40_0000] * 2)
    place = bed.pages()[0]
    bed.domain, own = bed.run("ALLOC_PD")["pd"], bed.domain
    assert bed.domain != own
    entries = bed.key(place, 16, [place])
    bed.domain = own
    bed.device.memory.write(place, struct.pack(">2Q", 0x60_0003, 0x70_0003))

    def change(list_key: int, length: int) -> int:
        segments = umr_of(C.UMR_TRANSLATION_OFFSET_EN, 0, length), data(list_key, place, length)
        bed.post(qp, request(C.OPCODE_UMR, *segments, umr_mkey=key))
        return bed.last(cq)["op_own"] >> 4

    assert change(entries, 16) == C.CQE_REQ
    assert reach(bed, key, 0, 2 * 4096) == [(0x60_0000, 4096), (0x70_0000, 4096)]
    # A message by the same key is refused.
    bed.post(qp, request(C.OPCODE_RDMA_WRITE, remote(key, 0), data(entries, place, 16)))
    assert bed.last(cq)["op_own"] >> 4 == C.CQE_REQ_ERR


@pytest.mark.parametrize("wrong", ["longer than its key", "of no key"])
def test_entries_that_cannot_be_read(wrong: str) -> None:
    bed = Bed()
    cq = bed.cq()
    qp = bed.qp(cq)
    key = bed.key(0, 2 * 4096, [0x40_0000] * 2)
    place = bed.pages()[0]
    entries = bed.key(place, 16, [place])
    length, number = (32, entries) if wrong == "longer than its key" else (16, entries + 0x1000)
    bed.post(
        qp, request(C.OPCODE_UMR, umr_of(0, 0, length), data(number, place, length), umr_mkey=key)
    )
    assert bed.last(cq)["op_own"] >> 4 == C.CQE_REQ_ERR


def test_key_of_keys() -> None:
    bed = Bed()
    parts = [bed.key(0, 4096, bed.pages(), rw=0), bed.key(0, 4096, bed.pages())]
    table = b"".join(struct.pack(">IIQ", 100, key, 10) for key in parts)
    out = bed.run(
        "CREATE_MKEY",
        table,
        translations_octword_actual_size=2,
        memory_key_mkey_entry__access_mode_1_0=C.MKC_ACCESS_MODE_KLMS,
        memory_key_mkey_entry__len=200,
        memory_key_mkey_entry__pd=bed.domain,
        memory_key_mkey_entry__rw=1,
    )
    key = out["mkey_index"] << 8
    first, second = (bed.device.keys.by_index[part >> 8].pages[0] & ~0xFFF for part in parts)
    assert reach(bed, key, 99, 2, "rw") == [(first + 109, 1), (second + 10, 1)]
    with pytest.raises(Denied):
        reach(bed, key, 199, 2, "rw")


# ---- requests -----------------------------------------------------------------------------------


def test_atomic_operations() -> None:
    bed = Bed()
    cq = bed.cq(log=4)
    qp = bed.qp(cq, log=4)
    page = bed.pages()[0]
    key = bed.key(0, 4096, [page])
    bed.device.memory.write(page, (5).to_bytes(8, "little"))

    def atomic(opcode: int, address: int, operand: int, compare: int) -> int:
        operands = struct.pack(">QQ", operand, compare)
        bed.post(qp, request(opcode, remote(key, address), operands, data(key, 64, 8)))
        return int.from_bytes(bed.device.memory.read(page, 8), "little")

    assert atomic(C.OPCODE_ATOMIC_FA, 0, (1 << 64) - 1, 0) == 4
    assert atomic(C.OPCODE_ATOMIC_CS, 0, 9, 5) == 4
    assert atomic(C.OPCODE_ATOMIC_CS, 0, 9, 4) == 9
    assert bed.device.memory.read(page + 64, 8) == (4).to_bytes(8, "little")
    atomic(C.OPCODE_ATOMIC_FA, 4, 1, 0)
    error = View("mlx5_err_cqe", bed.last(cq).data)
    assert error["syndrome"] == C.CQE_SYNDROME_REMOTE_INVAL_REQ_ERR


def test_refused_by_the_other_side() -> None:
    bed = Bed()
    cq = bed.cq()
    qp = bed.qp(cq)
    key = bed.key(0, 4096, bed.pages())
    bed.post(qp, request(C.OPCODE_RDMA_READ, remote(key, 4090), data(key, 0, 7)))
    error = View("mlx5_err_cqe", bed.last(cq).data)
    assert (error["syndrome"], error["vendor_err_synd"]) == (C.CQE_SYNDROME_REMOTE_ACCESS_ERR, 0x88)
    assert qp.state == C.QP_STATE_ERR


def test_key_that_the_other_side_may_not_end() -> None:
    bed = Bed()
    cq = bed.cq()
    qp = bed.qp(cq)
    key = bed.key(0, 4096, bed.pages())
    bed.ring(qp, C.RCV_DBR, 1)
    bed.post(qp, request(C.OPCODE_SEND_INVAL, imm=key))
    error = View("mlx5_err_cqe", bed.last(cq).data)
    assert error["syndrome"] == C.CQE_SYNDROME_REMOTE_ACCESS_ERR
    assert reach(bed, key, 0, 1)


def test_message_to_a_queue_that_is_not_mapped() -> None:
    """The device goes on, also when a request is tried again later."""
    bed = Bed()
    qp = bed.qp(bed.cq())
    qp.context["rnr_retry"] = 7
    bed.post(qp, request(C.OPCODE_SEND, data(bed.key(0, 8, bed.pages()), 0, 8)))
    qp.doorbell += 1 << 40
    bed.device.tick()
    assert bed.violations == {"queue_unmapped"}


# ---- the witness ----------------------------------------------------------------------


def pin(bed: Bed, first: int, count: int, begins: bool) -> None:
    word = first | count << 16 | (0 if begins else 1 << 31)
    bed.device.write_config(0xC0, word.to_bytes(4, "little"))


def test_witness_of_pins() -> None:
    bed = Bed()
    pin(bed, 1, 2, True)
    key = bed.key(0x8000, 2 * FRAME, [GPU + FRAME, GPU + 2 * FRAME, GPU + 3 * FRAME], shift=16)
    assert bed.violations == {"entry_unpinned"}
    bed.run("DESTROY_MKEY", mkey_index=key >> 8)
    bed.device.witness.violations.clear()
    # The page behind the last byte of a key does not count.
    key = bed.key(0x8000, FRAME + 0x8000, [GPU + FRAME, GPU + 2 * FRAME, GPU + 3 * FRAME], shift=16)
    assert not bed.violations
    pin(bed, 2, 1, False)
    assert bed.violations == {"unpinned"}
    bed.device.read_key(key, 0x8000, 1, "rr", bed.domain)
    assert bed.violations == {"unpinned"}
    bed.device.read_key(key, FRAME, 1, "rr", bed.domain)
    assert bed.violations == {"unpinned", "access_unpinned"}


def test_witness_of_two_pins_and_of_revocation() -> None:
    bed = Bed()
    cq = bed.cq()
    qp = bed.qp(cq)
    pin(bed, 1, 1, True)
    pin(bed, 1, 1, True)
    key = bed.key(0, FRAME, [GPU + FRAME], shift=16)
    pin(bed, 1, 1, False)
    assert not bed.violations
    bed.post(qp, request(C.OPCODE_UMR, umr(0, C.MKEY_MASK_FREE, free=1), umr_mkey=key))
    pin(bed, 1, 1, False)
    assert not bed.violations


def test_witness_of_more_keys_than_pins() -> None:
    """Another pin does not excuse a key whose own pin has ended."""
    bed = Bed()
    for _ in range(2):
        pin(bed, 1, 1, True)
        bed.key(0, FRAME, [GPU + FRAME], shift=16)
    pin(bed, 1, 1, False)
    assert bed.violations == {"unpinned"}


def test_witness_of_queues() -> None:
    """A queue and its doorbell record hold addresses until the queue ends."""
    bed = Bed()
    pin(bed, 1, 2, True)
    pages = struct.pack(">Q", GPU + FRAME)
    fields = {"cq_context__log_cq_size": 2, "cq_context__dbr_addr": GPU + 2 * FRAME}
    cq = bed.run("CREATE_CQ", pages, **fields)["cqn"]
    assert not bed.violations
    pin(bed, 2, 1, False)
    assert bed.violations == {"unpinned"}
    bed.device.witness.violations.clear()
    bed.device.unmapped(GPU + FRAME, 4096)
    assert bed.violations == {"unmapped"}
    bed.device.witness.violations.clear()
    bed.run("DESTROY_CQ", cqn=cq)
    pin(bed, 1, 1, False)
    assert not bed.violations


def test_witness_of_memory_for_queues() -> None:
    """While a queue uses memory that a user has registered, the memory must stay registered and
    pinned."""
    bed = Bed()
    pin(bed, 3, 1, True)
    # A page of 128 KiB, in whose second half the memory begins.
    page = struct.pack(">Q", GPU + 2 * FRAME)
    fields = {"umem__log_page_size": 5, "umem__page_offset": FRAME, "umem__num_of_mtt": 1}
    umem = bed.run("CREATE_UMEM", page, **fields)["umem_id"]
    assert not bed.violations
    qp = bed.qp(bed.cq())
    qp.buffer = bed.device.memories[umem]
    with pytest.raises(Refused):
        bed.run("DESTROY_UMEM", umem_id=umem)
    pin(bed, 3, 1, False)
    assert bed.violations == {"unpinned"}


def test_witness_of_an_iommu() -> None:
    """If only a part of the GPU's memory is mapped, the mapping is that of an IOMMU, and must not
    stay."""
    bed = Bed()
    pin(bed, 3, 2, True)
    bed.device.memory.map(0x9000_0000, FRAME + 1, bed.gpu, 3 * FRAME)
    bed.device.witness.rest()
    assert not bed.violations
    pin(bed, 4, 1, False)
    bed.device.witness.rest()
    assert bed.violations == {"left_mapped"}
    bed.device.witness.violations.clear()
    bed.device.memory.unmap(0x9000_0000, FRAME + 1)
    pin(bed, 3, 1, False)
    bed.device.witness.rest()
    assert not bed.violations


def test_witness_of_mappings() -> None:
    bed = Bed()
    key = bed.key(0, 8192, [0x10_0000, 0x7000_0000])
    assert bed.violations == {"entry_unmapped"}
    bed.device.witness.violations.clear()
    bed.device.unmapped(0x10_1000, 4096)
    assert not bed.violations
    bed.device.unmapped(0x10_0FFF, 1)
    assert bed.violations == {"unmapped"}
    bed.run("TEARDOWN_HCA")
    assert bed.violations == {"unmapped", "left_at_unload"}
    assert key >> 8 not in bed.device.keys.by_index


# ---- the firmware ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PD", "XRCD", "TRANSPORT_DOMAIN", "Q_COUNTER", "UAR", "UCTX"])
def test_objects_without_a_behaviour(kind: str) -> None:
    bed = Bed()
    make, end = ("CREATE", "DESTROY") if kind == "UCTX" else ("ALLOC", "DEALLOC")
    bed.run(f"{make}_{kind}")
    bed.run(f"{end}_{kind}")


def test_many_event_queues() -> None:
    """The number of a queue of events has eight bits, even after many queues were made."""
    bed = Bed()
    for _ in range(300):
        bed.run("ALLOC_PD")
    numbers = [bed.run("CREATE_EQ", struct.pack(">Q", page))["eq_number"] for page in bed.pages(3)]
    assert list(bed.device.event_queues) == numbers


def test_firmware_that_dies() -> None:
    bed = Bed()
    key = bed.key(0, 4096, bed.pages())
    beat = bed.device.read(byte_of("mlx5_init_seg", "health_counter"), 4)
    assert beat != (beat := bed.device.read(byte_of("mlx5_init_seg", "health_counter"), 4))
    bed.device.firmware.die(1)
    assert beat == bed.device.read(byte_of("mlx5_init_seg", "health_counter"), 4)
    assert bed.device.wire.find(1) is None
    bed.device.end_faults()
    assert beat != bed.device.read(byte_of("mlx5_init_seg", "health_counter"), 4)
    with pytest.raises(Denied):
        reach(bed, key, 0, 1)
