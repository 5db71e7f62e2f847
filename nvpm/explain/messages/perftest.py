# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that perftest, the examples in rdma-core and gpu_direct_rdma_access
print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import REG_MR, REM_ACCESS, RETRY

# Registration of memory that the program calls GPU memory; the line has no error.
REG_GPU_MR = (
    Case(c.AMD, ("amd",)),
    Case(c.GEFORCE, ("geforce",)),
    Case(c.NO_PEER_ON_SOC, ("gb10",)),
    Case(c.MEMLOCK, ("memlock_limited",), ("peermem_loaded",), POSSIBLE),
    Case(c.MEMLOCK, ("memlock_limited", "peermem_loaded"), sure=FITS),
    Case(c.NO_CLIENT, (), ("peermem_loaded",), FITS),
    Case(c.BAR1, ("peermem_loaded",), ("memlock_limited",), POSSIBLE),
)
# Registration of memory that may also be host memory; the line has no error.
REG_ANY_MR = (
    Case(c.AMD, ("gpu", "amd")),
    Case(c.GEFORCE, ("gpu", "geforce")),
    Case(c.NO_PEER_ON_SOC, ("gpu", "gb10")),
    Case(c.MEMLOCK, ("memlock_limited",), ("gpu",)),
    Case(c.MEMLOCK, ("gpu", "memlock_limited", "peermem_loaded"), sure=FITS),
    Case(c.NO_CLIENT, ("gpu",), ("peermem_loaded",), FITS),
    Case(c.BAR1, ("gpu", "peermem_loaded"), ("memlock_limited",), POSSIBLE),
    Case(c.MEMLOCK, (), ("gpu", "memlock_limited"), POSSIBLE),
)

SECTION = Section(
    "perftest",
    "`ib_write_bw`, `ib_read_bw`, `ib_send_lat` and so on, pyverbs, and the examples of rdma-core.",
    (
        Message(
            "Couldn't allocate MR with error=14",
            "linux-rdma/perftest: src/perftest_resources.c; perftest#269, #346",
            REG_MR,
            note="EFAULT. `--use_cuda` alone needs peer memory; `--use_cuda_dmabuf` registers by "
            "dma-buf",
        ),
        Message(
            "Couldn't allocate MR with error=12",
            "linux-rdma/perftest: src/perftest_resources.c",
            REG_MR,
            note="ENOMEM; a smaller `-s` fits into a small BAR1",
        ),
        Message(
            "Couldn't allocate MR with error=22",
            "linux-rdma/perftest: src/perftest_resources.c",
            (Case(c.NO_DMABUF, ("perftest_dmabuf",), ("geforce", "amd"), FITS), *REG_MR),
            note="EINVAL: the device refuses this memory or these flags",
            do="Without `--use_cuda_dmabuf` and `--use_data_direct`, with the module",
        ),
        Message(
            "Couldn't allocate MR with error=93",
            "linux-rdma/perftest: src/perftest_resources.c; perftest#280",
            (Case(c.NO_DMABUF),),
            note="EPROTONOSUPPORT: the RDMA core of the host has no dma-buf",
            do="Load the module and leave `--use_cuda_dmabuf` out",
        ),
        Message(
            "Couldn't allocate MR with error=95",
            "linux-rdma/perftest: src/perftest_resources.c",
            (
                Case(c.AMD, ("amd",)),
                Case(
                    c.NO_ODP,
                    ("perftest_dmabuf", "mlx5_nic", "kernel>=7.2"),
                    ("amd", "data_direct"),
                    FITS,
                ),
                Case(c.NO_DMABUF, ("perftest_dmabuf",), ("amd",)),
                Case(
                    c.NO_ODP,
                    ("perftest_dmabuf", "mlx5_nic"),
                    ("amd", "kernel>=7.2", "data_direct"),
                    POSSIBLE,
                ),
                Case(c.EFA_PEER, ("efa",), ("perftest_dmabuf",)),
                Case(c.NIC_REFUSED, (), ("amd", "efa", "perftest_dmabuf"), POSSIBLE),
            ),
            note="EOPNOTSUPP: with `--use_cuda_dmabuf` the device or its driver takes none; else "
            "`dmesg` often says more",
        ),
        Message(
            "Couldn't allocate MR",
            "linux-rdma/perftest: src/perftest_resources.c, up to 24.10; perftest#126, #31",
            REG_ANY_MR,
            note="older versions do not print the error; a line `ERRNO: Bad address.` may follow",
            unless=("line:with error=",),
        ),
        Message(
            "failed to create mr",
            "linux-rdma/perftest: src/perftest_resources.c",
            note="a consequence of `Couldn't allocate MR`",
            do="Look for `Couldn't allocate MR` above it, in the output for errors",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create MR",
            "linux-rdma/perftest: src/perftest_resources.c",
            note="a consequence of `Couldn't allocate MR`",
            do="Look for `Couldn't allocate MR` above it, in the output for errors",
            kind=FOLLOWS,
        ),
        Message(
            "Couldn't create IB resources",
            "linux-rdma/perftest: src/write_bw.c",
            note="the last line after `Couldn't allocate MR`, or after another failure",
            do="Look for `Couldn't` above it, in the output for errors",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to register a MR",
            "linux-rdma/rdma-core: pyverbs/mr.pyx",
            REG_MR,
            note="pyverbs prints the error behind it",
            sure=FITS,
        ),
        Message(
            "ERRNO: Bad address",
            "linux-rdma/perftest: src/perftest_resources.c; perftest#126",
            REG_MR,
            note="perftest with `-R`: the error of `Couldn't allocate MR`, which stands above",
        ),
        Message(
            "Couldn't read remote address",
            "linux-rdma/perftest: src/perftest_communication.c; perftest#289",
            note="the other side has ended",
            do="Look for the error in the output of the other side",
            kind=FOLLOWS,
        ),
        Message(
            "OFED stack does not support DMA-BUF",
            "linux-rdma/perftest: src/perftest_resources.c",
            (Case(c.NO_DMABUF),),
            do="Load the module and leave `--use_cuda_dmabuf` out",
        ),
        Message(
            "DMA-BUF is not supported on this GPU",
            "linux-rdma/perftest: src/cuda_memory.c",
            (
                Case(c.NO_PEER_ON_SOC, ("gb10",)),
                Case(c.GEFORCE, ("geforce",)),
                Case(c.NO_DMABUF, (), ("gb10", "geforce")),
            ),
            note="the proprietary driver has no dma-buf",
        ),
        Message(
            "DMABUF requested but not supported in this build",
            "linux-rdma/perftest: src/perftest_resources.c",
            (Case(c.OPTIONS),),
            note="perftest was built with an rdma-core before 34",
            do="Build perftest again; or leave the flag out and load the module",
        ),
        Message(
            "CUDA DMA-BUF cannot be used without CUDA",
            "linux-rdma/perftest: src/perftest_parameters.c; perftest#336",
            (Case(c.OPTIONS),),
            note="the order of the options matters",
            do="`--use_cuda=0` before `--use_cuda_dmabuf`",
        ),
        Message(
            "Unsupported memory type",
            "linux-rdma/perftest: src/perftest_parameters.c",
            (Case(c.OPTIONS, ("perftest",)),),
            note="perftest was built without CUDA",
            do="Build perftest with `./configure CUDA_H_PATH=/usr/local/cuda/include/cuda.h`",
        ),
        Message(
            "supports CUDA latency tests with read/send verbs only",
            "linux-rdma/perftest: src/perftest_parameters.c, 23.10",
            (Case(c.OPTIONS),),
            note="`ib_write_lat` polls its buffer with the CPU",
            do="`ib_read_lat` or `ib_send_lat`",
        ),
        Message(
            "CUDA tests with inline messages: inline size set to 0",
            "linux-rdma/perftest: src/perftest_parameters.c",
            kind=FINE,
        ),
        Message(
            "syndrom 0x51",
            "linux-rdma/perftest: src/perftest_resources.h; perftest#289, #140",
            (Case(c.ACS),),
            note="status 4, local protection error",
            sure=FITS,
        ),
        Message(
            "syndrom 0x81",
            "linux-rdma/perftest: src/perftest_resources.h",
            RETRY,
            note="status 12, retries exceeded. `-x` sets the GID index, and `-m` the MTU",
            sure=FITS,
        ),
        Message(
            "syndrom 0x88",
            "linux-rdma/perftest: src/perftest_resources.h",
            REM_ACCESS,
            note="status 10, remote access error",
            do="Look at the output of the other side",
            sure=FITS,
        ),
        Message(
            "Completion with error at client",
            "linux-rdma/perftest: src/perftest_resources.h",
            note="a transfer failed",
            do="Look for `syndrom` and its number in the next line",
            kind=FOLLOWS,
        ),
        Message(
            "cuMemGetHandleForAddressRange error=",
            "linux-rdma/perftest: src/cuda_memory.c",
            (
                Case(c.CUDA_CONTEXT, ("line:error=201",)),
                Case(
                    c.EXPORT_PAGES,
                    ("line:error=1",),
                    ("line:error=10", "line:error=999"),
                    FITS,
                    do="`-s` with whole pages of the host (`getconf PAGESIZE`), in multiples of 64 "
                    "KiB",
                ),
                Case(c.DESCRIPTORS, ("line:error=304",), sure=FITS),
                Case(c.NO_DMABUF, ("line:error=801",)),
                Case(c.NO_DMABUF, (), ("line:error=201", "line:error=304", "line:error=801"), FITS),
            ),
            note="the driver exports no dma-buf for this memory. 801: not supported; 201: no CUDA "
            "context; 1: the range is refused; 304: the operating system refused",
            do="Without `--use_cuda_dmabuf` and `--use_cuda_pcie_mapping`, with the module",
        ),
        Message(
            "No data direct support",
            "linux-rdma/perftest: src/perftest_resources.c",
            (Case(c.NOT_MLX5),),
            do="Leave `--use_data_direct` out",
        ),
        Message(
            "Failed to load CUDA library dynamically",
            "linux-rdma/perftest: src/cuda_memory.c",
            (Case(c.NO_LIBCUDA),),
        ),
        Message(
            "Couldn't register GPU MR",
            "Mellanox/gpu_direct_rdma_access; gpu_direct_rdma_access#5",
            REG_GPU_MR,
            note="gpu_direct_rdma_access does not print the error",
        ),
        Message(
            "Couldn't register MR",
            "linux-rdma/rdma-core: libibverbs/examples/rc_pingpong.c",
            REG_ANY_MR,
            note="an example of rdma-core, or libgdsync. Both print no error",
        ),
        Message(
            "Unable to Connect the HCA's through the link",
            "linux-rdma/perftest: src/atomic_bw.c and others",
            (Case(c.GID),),
            note="the two sides cannot reach each other; MTU and VLAN can be the reason, too",
            do="`-x` with a GID index that suits; ping between the NICs",
            sure=FITS,
        ),
        Message(
            "Couldn't init GPU context",
            "linux-rdma/perftest: src/cuda_memory.c",
            (Case(c.AMD, ("amd",)), Case(c.NO_NVIDIA, (), ("amd",), POSSIBLE)),
            note="the driver does not answer, or there is no GPU with this number",
            do="`nvidia-smi -L` fails without the driver; else check the number of `--use_cuda=`",
        ),
        Message(
            "Failed to initialize RDMA contexts",
            "linux-rdma/perftest: src/perftest_communication.c; perftest#126",
            note="perftest with `-R`: `Couldn't allocate MR` stands above",
            do="Look for `Couldn't allocate MR` above it, in the output for errors",
            kind=FOLLOWS,
        ),
        Message(
            "Unable to create QP",
            "linux-rdma/perftest: src/perftest_resources.c",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",), ("efa",), FITS),
                Case(c.MEMLOCK, (), ("memlock_unlimited", "efa"), FITS),
                Case(
                    c.OPTIONS,
                    ("efa",),
                    sure=FITS,
                    do="`-c SRD` (or `-c UD`), and a perftest built with an rdma-core that has "
                    "`efadv`",
                ),
            ),
            note="the NIC may also refuse the depth: try a smaller `-t` and `-q`",
        ),
        Message(
            "Couldn't get context for the device",
            "linux-rdma/perftest: src/atomic_bw.c and others",
            (Case(c.DEVICE_DENIED),),
            note="the library of the NIC (ibverbs-providers) may be missing, too",
            sure=FITS,
        ),
        Message(
            "Failed to modify QP to INIT",
            "linux-rdma/perftest: src/perftest_resources.c",
            (Case(c.PORT),),
            note="or `-i` has the wrong number of a port",
            sure=FITS,
        ),
        Message(
            "<Unable to find the Infiniband/RoCE device|Did not detect devices|No IB devices found"
            ">",
            "linux-rdma/perftest: src/perftest_resources.c; rdma-core: libibverbs/examples",
            (Case(c.NO_DEVICE),),
            do="`ibv_devinfo` in the container; `-d` with a name that it prints",
            sure=FITS,
        ),
        Message(
            "IB device <w> not found",
            "linux-rdma/perftest: src/perftest_resources.c; rdma-core: libibverbs/examples",
            (Case(c.NO_DEVICE),),
            do="`-d` with a name that `ibv_devinfo` prints",
        ),
        Message(
            "Port number <n> state is <w>",
            "linux-rdma/perftest: src/perftest_parameters.c",
            (Case(c.PORT),),
        ),
        Message(
            "Failed to modify QP <n> to RTR",
            "linux-rdma/perftest: src/perftest_resources.c; uccl#641",
            (
                Case(c.TRAFFIC_CLASS, ("traffic_class", "infiniband")),
                Case(c.RAILS, ("errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH",)),
                Case(
                    c.GID,
                    (),
                    ("infiniband", "errno=ETIMEDOUT,EHOSTUNREACH,ENETUNREACH"),
                    FITS,
                ),
                Case(c.RAILS, (), ("ethernet",), POSSIBLE),
            ),
            note="the step to the peer failed; `-x` sets the GID index, and `-m` the MTU",
        ),
        Message(
            "<can't read sgid of index|Could not get local gid for>",
            "linux-rdma/rdma-core: libibverbs/examples/rc_pingpong.c",
            (Case(c.GID),),
            do="`show_gids` lists the entries: `-g` with one of RoCE v2",
        ),
        Message(
            "Couldn't get local LID",
            "linux-rdma/rdma-core: libibverbs/examples/rc_pingpong.c",
            (Case(c.GID),),
            note="on RoCE there are no LIDs: `-g` with a GID index is needed. On InfiniBand the "
            "port has no subnet manager",
            do="`-g` with an index that `show_gids` prints",
            sure=FITS,
        ),
        Message(
            "Couldn't create <CQ|a receiver CQ>",
            "linux-rdma/perftest: src/perftest_resources.c",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",), sure=FITS),
                Case(c.MEMLOCK, ("memlock_limited",)),
                Case(c.MEMLOCK, (), ("memlock_unlimited", "memlock_limited"), FITS),
            ),
        ),
        Message(
            "no available device(s) that support CUDA",
            "linux-rdma/perftest: src/cuda_memory.c",
            (Case(c.NO_NVIDIA),),
            note="or the container has no GPU (`--gpus all`)",
            sure=FITS,
        ),
        Message(
            "cuInit(0) returned <n>",
            "linux-rdma/perftest: src/cuda_memory.c",
            (Case(c.NO_NVIDIA),),
            note="CUDA does not start. 803: driver and library differ; 802: the fabric manager of "
            "NVSwitch does not run",
            do="`nvidia-smi`, and the `NVRM:` lines of dmesg",
            sure=FITS,
            unless=("line:cuInit(0) returned 0",),
        ),
        Message(
            "CUDA Memory type is not supported with no odp MR",
            "linux-rdma/perftest: src/perftest_parameters.c",
            (Case(c.OPTIONS),),
            do="`--cuda_mem_type=0`, or without `--use_cuda_dmabuf`",
        ),
        Message(
            "<mlx5_copy_to_recv_wqe|mlx5_copy_to_send_wqe|copy_to_scat|mlx5_copy_to_recv_srq>",
            "linux-rdma/rdma-core: providers/mlx5/qp.c; nv_peer_memory#104, perftest#326, lci#18",
            (Case(c.SCATTER, ("gpu",)),),
            note="in a backtrace of a segmentation fault",
            sure=FITS,
        ),
        Message(
            "ailed to get IB devices list",
            "linux-rdma/rdma-core: libibverbs/examples",
            (
                Case(c.NO_DEVICE),
                Case(c.NO_DEVICE, ("errno=ENOSYS",), do="`modprobe ib_uverbs` on the node"),
            ),
            sure=FITS,
        ),
        Message(
            "Warning: couldn't stat '/sys/class/infiniband/",
            "linux-rdma/rdma-core: libibverbs/init.c, older; byteps#313, horovod#3333",
            note="a container does not see the NICs that belong to others",
            kind=FINE,
        ),
        Message(
            "<RDMA_CM_EVENT_UNREACHABLE|RDMA_CM_EVENT_ROUTE_ERROR>",
            "linux-rdma/rdma-core: librdmacm/cma.c",
            (Case(c.RAILS),),
            sure=POSSIBLE,
        ),
        Message(
            "RDMA_CM_EVENT_ADDR_ERROR",
            "linux-rdma/rdma-core: librdmacm/cma.c; byteps#365",
            (Case(c.NO_DEVICE),),
            note="the address belongs to no NIC with RDMA, or no neighbour answers",
            do="The address of the NIC itself (`rdma link`, `ibdev2netdev`), and a ping from it",
            sure=POSSIBLE,
        ),
        Message(
            "<IBV_WC_LOC_PROT_ERR|IBV_WC_REM_OP_ERR|IBV_WC_RETRY_EXC_ERR>",
            "linux-rdma/rdma-core: libibverbs/verbs.h; monarch#3759, uccl#803",
            (
                Case(c.ACS, ("line:IBV_WC_LOC_PROT_ERR",), sure=POSSIBLE),
                Case(c.PEER_NIC, ("line:IBV_WC_REM_OP_ERR",)),
                *(one._replace(when=("line:IBV_WC_RETRY_EXC_ERR", *one.when)) for one in RETRY),
            ),
            note="the status of a completion in any program",
            unless=("line:case IBV_WC_",),
            sure=FITS,
        ),
    ),
)
