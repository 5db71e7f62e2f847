# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of mscclpp."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, Case, Message, Section
from ..verbs import MODIFY_QP, REG_DMABUF_MR, REG_MR, RETRY

# mscclpp has seen nvidia_peermem in `/proc/modules` before it registers.
REG_WITH_MODULE = (
    *(one for one in REG_MR if one.cause not in (c.NO_CLIENT, c.VMM)),
    Case(c.VMM, ("errno=EFAULT",), ("geforce", "amd"), FITS),
)

SECTION = Section(
    "mscclpp",
    "mscclpp looks for the name nvidia_peermem in `/proc/modules`: load the marker "
    "with this module.",
    (
        Message(
            "nvidia_peermem kernel module is not loaded",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.MARKER),),
            note="the GPU's driver has no dma-buf either",
        ),
        Message(
            "DMABUF is required but is not supported",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.VMM),),
            note="memory of `cuMemMap`, which mscclpp registers by dma-buf only",
            do="The open NVIDIA driver and kernel 5.12; or memory of `cudaMalloc`",
        ),
        Message(
            "ibv_reg_mr failed (errno<=| >",
            "microsoft/mscclpp: src/core/ib.cc; mscclpp#657, #496",
            REG_WITH_MODULE,
            note="mscclpp looks for nvidia_peermem first, so the module is loaded; its own "
            "`RawGpuBuffer` is VMM memory",
        ),
        Message(
            "ibv_reg_dmabuf_mr failed (errno<=| >",
            "microsoft/mscclpp: src/core/ib.cc",
            REG_DMABUF_MR,
        ),
        Message(
            "ibv_modify_qp failed (errno<=| >",
            "microsoft/mscclpp: src/core/ib.cc; mscclpp#431",
            (Case(c.GID, ("errno=ENODEV", "ethernet")), *MODIFY_QP),
            note="mscclpp takes the GID of index 0 if `MSCCLPP_IB_GID_INDEX` is not set, and older "
            "versions know InfiniBand only",
        ),
        Message(
            "<invalid GID index|ibv_query_gid failed for port>",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.GID),),
            do="`show_gids` lists the entries: `MSCCLPP_IB_GID_INDEX` with one of RoCE v2",
        ),
        Message(
            "a work item failed: status <n>",
            "microsoft/mscclpp: src/core/connection.cc, up to 0.8; mscclpp#315, #323",
            (
                Case(c.ACS, ("line:status 4 (",)),
                Case(c.FREED, ("line:status 10 (",)),
                Case(c.PEER_NIC, ("line:status 11 (",)),
                *(one._replace(when=("line:status 12 (", *one.when)) for one in RETRY),
            ),
            note="the number is the status of a completion, and the words in parentheses have no "
            "meaning: `status 12 (Ib failure: Cannot allocate memory)` is a timeout",
            sure=FITS,
        ),
        Message(
            "<pollCq timed out|pollSendCq timed out|pollCq is stuck>",
            "microsoft/mscclpp: src/core/connection.cc",
            note="a transfer did not end",
            do="The log of the peer first; `ib_write_bw` between the same two NICs shows the "
            "network alone",
            kind=FOLLOWS,
        ),
        Message(
            "<IB device not found|IB device index out of range|IB transport out of range>",
            "microsoft/mscclpp: src/core/ib.cc; mscclpp#323",
            (Case(c.NO_DEVICE),),
            note="mscclpp takes the devices in the order of `ibv_devices`, `IB0` is the first",
            do="`ibv_devinfo` in the container; `MSCCLPP_HCA_DEVICES=mlx5_0,mlx5_1` with the names "
            "of the NICs to use",
            sure=FITS,
        ),
        Message(
            "Not enough HCA devices are defined",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.NO_DEVICE),),
            do="Name a NIC in `MSCCLPP_HCA_DEVICES` for each transport that the program uses, or "
            "unset it",
        ),
        Message(
            "<No active port found|no active IB port found|No usable port found (device>",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.PORT),),
            do="`ibstat`; `MSCCLPP_HCA_DEVICES` with the names of NICs whose ports are up",
        ),
        Message(
            "<Failed to load libibverbs:|Failed to open libibverbs:>",
            "microsoft/mscclpp: src/core/ibverbs_wrapper.cc; sglang#6834",
            (Case(c.NO_PROVIDER),),
            note="mscclpp opens the name `libibverbs.so`, which only the development package has",
            do="Install libibverbs-dev (or rdma-core-devel), or link `libibverbs.so` to "
            "`libibverbs.so.1`",
            sure=FITS,
        ),
        Message(
            "IB host-no-atomic mode on CUDA requires GDRCopy",
            "microsoft/mscclpp: src/core/connection.cc",
            (Case(c.GDRDRV),),
        ),
        Message(
            "<We don't support DMABUF on HIP platforms yet|Registeration of dma-buf based memory "
            "region failed on HIP>",
            "microsoft/mscclpp: src/core/ib.cc",
            (Case(c.AMD),),
        ),
        Message(
            "does not support RDMA atomics",
            "microsoft/mscclpp: src/core/context.cc",
            note="mscclpp sends signals in another way",
            kind=FINE,
        ),
    ),
)
