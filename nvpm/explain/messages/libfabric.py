# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages that libfabric and the EFA driver print."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import REG_MR, REG_MR_SILENT

# libfabric registered GPU memory. In most cases the provider is EFA.
EFA_REG = (
    Case(c.VMM, ("errno=EFAULT", "infiniband", "peermem_loaded"), sure=FITS),
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    # Memory of the host can be refused as well, as read-only memory by older kernels.
    Case(c.EFA_PEER, ("errno=EFAULT", "gpu"), ("infiniband",), sure=FITS),
    Case(c.NO_CLIENT, ("errno=EFAULT", "infiniband"), (), sure=FITS),
    Case(c.NO_HMEM, ("errno=EOPNOTSUPP", "infiniband"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), (), sure=FITS),
    Case(c.NO_HMEM, ("errno=ENOSYS",), sure=FITS),
    Case(c.EFA_PEER, ("errno=EFAULT",), ("infiniband", "gpu"), sure=POSSIBLE),
    Case(c.EFA_VERSIONS, ("errno=EFAULT",), ("infiniband",), sure=POSSIBLE),
    Case(
        c.EFA_VERSIONS,
        ("errno=EINVAL,EOPNOTSUPP,EPROTONOSUPPORT",),
        ("infiniband",),
        sure=FITS,
    ),
)
# The EFA driver got no device.
NO_EFA = (
    Case(c.EFA_OTHER_CORE, ("ofed_core",), sure=FITS),
    Case(c.EFA_VERSIONS, (), ("ofed_core",), POSSIBLE),
)
# gdrcopy pinned GPU memory.
GDR_PIN = (
    Case(c.GEFORCE, ("geforce",)),
    Case(c.BAR1, ("errno=ENOMEM",)),
    Case(c.NOT_GPU_MEMORY, ("errno=EINVAL",), sure=POSSIBLE),
    Case(c.GDRDRV_OTHER, (), (), sure=FITS),
)

SECTION = Section(
    "libfabric",
    "`FI_LOG_LEVEL=info` shows all of these lines. EFA does not use this module, "
    "but its own module efa_nv_peermem.",
    (
        Message(
            "Failover failed: ibv_reg_mr(",
            "ofiwg/libfabric: prov/verbs/src/verbs_mr.c",
            REG_MR,
            note="dma-buf was refused before it",
        ),
        Message(
            "Failover on: ibv_reg_dmabuf_mr() ==> ibv_reg_mr()",
            "ofiwg/libfabric: prov/verbs/src/verbs_mr.c",
            note="the provider verbs uses peer memory from now on",
            kind=FINE,
        ),
        Message(
            "Unable to register MSG MR",
            "ofiwg/libfabric: prov/rxm/src/rxm_domain.c",
            REG_MR_SILENT,
            note="the provider below ofi_rxm, in most cases verbs, refused the memory",
            sure=FITS,
        ),
        Message(
            "unable to open MSG CQ",
            "ofiwg/libfabric: prov/rxm/src/rxm_ep.c",
            (Case(c.NIC_LIMIT), Case(c.MEMLOCK, ("memlock_limited",))),
            note="ofi_rxm makes queues for 256 peers, which small devices refuse",
            do="`FI_UNIVERSE_SIZE` with the number of peers; `ulimit -l unlimited`",
            sure=FITS,
        ),
        Message(
            "Cannot register memory for uninitialized iface",
            "ofiwg/libfabric: prov/verbs/src/verbs_mr.c",
            (Case(c.NO_HMEM),),
            do="`FI_HMEM=cuda`, and a libfabric built `--with-cuda` that finds libcuda",
        ),
        Message(
            "vrb_check_hints():<n><info> Requested: <*>FI_HMEM",
            "ofiwg/libfabric: prov/verbs/src/verbs_info.c; libfabric#8444",
            (Case(c.OFI_VERBS_HMEM),),
            note="libfabric prints the line for each device and each kind of endpoint. Nothing is "
            "wrong if one of them is taken",
            sure=POSSIBLE,
        ),
        Message(
            "Failed to dlopen libcuda.so",
            "ofiwg/libfabric: src/hmem_cuda.c",
            (Case(c.NO_LIBCUDA, ("gpu",), sure=FITS),),
            note="nothing is wrong if only host memory is transferred",
        ),
        Message(
            "Failed to perform cuMemGetAddressRange",
            "ofiwg/libfabric: src/hmem_cuda.c",
            (Case(c.NOT_GPU_MEMORY),),
        ),
        Message(
            "Failed to register CUDA buffer with the EFA device",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c; libfabric#11256",
            (Case(c.EFA_PEER),),
            note="EFA tries a small buffer at the start",
            sure=FITS,
        ),
        Message(
            "Unable to register MR",
            "ofiwg/libfabric: prov/efa/src/efa_mr.c; libfabric#12019",
            EFA_REG,
        ),
        Message(
            "Unable to register CUDA device buffer via dmabuf",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c",
            note="EFA goes on with `ibv_reg_mr`, which needs efa_nv_peermem",
            do="If `Failed to register CUDA buffer` follows: the newest EFA installer",
            kind=FINE,
        ),
        Message(
            "Unable to retrieve dmabuf fd of CUDA device buffer",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c",
            note="the NVIDIA driver exports no dma-buf. EFA goes on with `ibv_reg_mr`, which "
            "needs efa_nv_peermem",
            do="If `Failed to register CUDA buffer` follows: the open NVIDIA driver",
            kind=FINE,
        ),
        Message(
            "ofi_hmem_get_dmabuf_fd failed for",
            "ofiwg/libfabric: prov/efa/src/efa_mr.c",
            (Case(c.EFA_PEER),),
            note="the NVIDIA driver exports no dma-buf of this memory",
            do="The open NVIDIA driver; for memory of another kind `cudaMalloc`",
        ),
        Message(
            "FI_HMEM_CUDA P2P support is not available",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c",
            note="EFA cannot reach GPU memory",
            do="`FI_LOG_LEVEL=info`, and look for `Failed to register CUDA buffer` and for "
            "`FI_HMEM_DISABLE_P2P` above it",
            kind=FOLLOWS,
        ),
        Message(
            "unset FI_HMEM_DISABLE_P2P",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c",
            (Case(c.OPTIONS),),
            do="Unset `FI_HMEM_DISABLE_P2P`",
        ),
        Message(
            "build libfabric with rdma-core >= 34",
            "ofiwg/libfabric: prov/efa/src/efa_mr.c",
            (Case(c.EFA_VERSIONS),),
            note="rdma-core before 34 has no dma-buf",
        ),
        Message(
            "Unable to register handle for GPU memory",
            "ofiwg/libfabric: prov/efa/src/rdm/efa_rdm_mr.c; pplx-garden#4",
            GDR_PIN,
            note="newer versions of libfabric go on without gdrcopy",
            do="`FI_HMEM_CUDA_USE_GDRCOPY=0` to go on without gdrcopy",
        ),
        Message(
            "gdr_pin_buffer failed",
            "ofiwg/libfabric: src/hmem_cuda_gdrcopy.c",
            GDR_PIN,
            note="newer versions of libfabric go on without gdrcopy",
            do="`FI_HMEM_CUDA_USE_GDRCOPY=0` to go on without gdrcopy",
        ),
        Message(
            "Nvidia proprietary is unsupported",
            "amzn/amzn-drivers: kernel/linux/efa_nv_peermem/src/efa_nv_peermem_main.c",
            (Case(c.OPEN_NEEDED),),
            note="EFA's own peer-memory module works with the open driver only",
            do="The open NVIDIA driver",
        ),
        Message(
            "Failure to post internal receive buffers",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h; awslabs/awsome-distributed-ai#647",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",)),
                Case(c.MEMLOCK, (), ()),
            ),
            note="libfabric could not register its own buffers",
            sure=FITS,
        ),
        Message(
            "Libfabric error: (<n>) Cannot allocate memory",
            "ofiwg/libfabric: prov/efa/src/efa_base_ep.c; awslabs/awsome-distributed-ai#647",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",)),
                Case(c.MEMLOCK, (), ()),
            ),
            sure=FITS,
        ),
        Message(
            "cannot allocate memory for EFA's <RX|TX> packet pool",
            "ofiwg/libfabric: prov/efa/src/rxr/rxr_ep.c, 1.x; aws-ofi-nccl#141",
            (
                Case(c.NIC_LIMIT, ("memlock_unlimited",)),
                Case(c.MEMLOCK, (), ()),
            ),
            sure=FITS,
        ),
        Message(
            "Unreachable remote",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h; aws-ofi-nccl#1294",
            (Case(c.SECURITY_GROUP),),
            note="the device reports it if packets are dropped on their way",
            sure=FITS,
        ),
        Message(
            "Unresponsive remote",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            (Case(c.NETWORK),),
            do="The log of the peer first",
            sure=FITS,
        ),
        Message(
            "Unresponsive receiver",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h; libfabric#10410",
            (Case(c.NETWORK),),
            note="before libfabric 2.0, these words also stand for a peer that was never reached: "
            "then for the security group",
            do="The log of the peer first; then the security group, which has to allow all "
            "traffic within itself, in and out",
            sure=FITS,
        ),
        Message(
            "Bad queue pair (QP) number",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            (Case(c.NETWORK),),
            note="the peer's program has ended",
            do="The log of the peer",
            sure=FITS,
        ),
        Message(
            "Remote memory registration is invalid",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            (Case(c.FREED),),
            sure=FITS,
        ),
        Message(
            "RMA address verification failed",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h; nixl#2278",
            (Case(c.FREED),),
            sure=FITS,
        ),
        Message(
            "<Remote feature mismatch|when zero copy recv mode is ON>",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            (Case(c.OTHER_VERSIONS),),
            note="the two sides have different versions or settings of libfabric",
            sure=FITS,
        ),
        Message(
            "efa_device_construct_gid failed",
            "ofiwg/libfabric: prov/efa/src/efa_device.c; libfabric#12708",
            (Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES,ENOENT",)),),
            note="libfabric then offers no EFA device at all, even if the refused device is "
            "another NIC (mlx5) of the node",
            do="In a pod: only the devices of the EFA device plug-in, and no mount of "
            "`/dev/infiniband` beside them; or a newer libfabric, which passes over such devices",
        ),
        Message(
            "provider efa output empty list",
            "ofiwg/libfabric: src/fabric.c; libfabric#12708",
            note="libfabric found no EFA device",
            do="Look for `ibv_open_device failed` and `efa_device_construct_gid` above it; "
            "`ls /dev/infiniband` in the container",
            kind=FOLLOWS,
        ),
        Message(
            "fi_getinfo: -61 (No data available)",
            "ofiwg/libfabric: util/info.c; aws-ofi-nccl#1020, libfabric#12708",
            (
                Case(c.NO_DEVICE, ("container",), ("line:provider",), sure=FITS),
                Case(c.NO_DEVICE, (), ("line:provider",)),
            ),
            note="`fi_info` found no device that fits its options. With `-c FI_HMEM` the reason "
            "may be that libfabric has no CUDA",
            sure=POSSIBLE,
        ),
        Message(
            "No EFA RDMA read support",
            "ofiwg/libfabric: prov/efa/src/efa_hmem.c",
            (Case(c.EFA_PEER),),
            note="this instance type, or an old driver, has no RDMA read",
        ),
        Message(
            "FI_HMEM support is disabled",
            "ofiwg/libfabric: prov/efa/src/efa_mr.c",
            (Case(c.NO_HMEM),),
            note="the program did not ask for FI_HMEM, or the provider lacks it",
            sure=FITS,
        ),
        Message(
            "gdr_map failed",
            "ofiwg/libfabric: src/hmem_cuda_gdrcopy.c",
            GDR_PIN,
            do="`FI_HMEM_CUDA_USE_GDRCOPY=0` to go on without gdrcopy",
        ),
        Message(
            "gdrcopy initialization failed",
            "ofiwg/libfabric: src/hmem_cuda.c",
            note="libfabric goes on without gdrcopy, and small messages are slower",
            do="If gdrcopy is wanted: load gdrdrv, and give the container `/dev/gdrdrv`",
            kind=FINE,
        ),
        Message(
            "<gdrcopy_dl_hmem_init failed|Failed to dlopen libgdrapi.so>",
            "ofiwg/libfabric: src/hmem_cuda_gdrcopy.c; libfabric#11256",
            note="libfabric goes on without gdrcopy, and small messages are slower",
            do="If gdrcopy is wanted: install its library",
            kind=FINE,
        ),
        Message(
            "Failed to dlopen libnvidia-ml.so",
            "ofiwg/libfabric: src/hmem_cuda.c",
            note="libfabric needs this library for copies within a node only",
            kind=FINE,
        ),
        Message(
            "OFI_MRAIL_ADDR_STRC env variable not set",
            "ofiwg/libfabric: prov/mrail/src/mrail_fabric.c; libfabric#11256",
            note="the provider mrail is not used",
            kind=FINE,
        ),
        Message(
            "Missing or unavailable event queue",
            "ofiwg/libfabric: prov/efa/src/efa_base_ep.c; aws-ofi-nccl#141",
            note="libfabric ends the program after an error",
            do="Look for `prov_errno` in this line and for the first warning above it",
            kind=FOLLOWS,
        ),
        Message(
            "prov_err<|no>: Not a directory",
            "ofiwg/libfabric: prov/efa/src/rxr/rxr_cq.c, up to 1.17; aws-ofi-nccl#156",
            (Case(c.SECURITY_GROUP),),
            note="the words are those of error 20, which is libibverbs' status 20: no answer",
            sure=FITS,
        ),
        Message(
            "completed with error. RC: 20.",
            "aws/aws-ofi-nccl: src/nccl_ofi_net.c, up to 1.4; aws-ofi-nccl#156",
            (Case(c.SECURITY_GROUP),),
            note="20 is libibverbs' status 20: no answer",
            sure=FITS,
        ),
        Message(
            "Unable to insert remote address into address vector",
            "aws/aws-ofi-nccl: src/nccl_ofi_rdma.cpp and others; aws-ofi-nccl#663; "
            "awsome-distributed-ai#519",
            (
                Case(c.SECURITY_GROUP, ("efa",)),
                Case(
                    c.EFA_VERSIONS,
                    do="The same image with the newest EFA installer on all instances, in one "
                    "availability zone",
                ),
            ),
            sure=POSSIBLE,
        ),
        Message(
            "ibv_create_ah failed with EINVAL",
            "ofiwg/libfabric: prov/efa/src/efa_ah.c",
            (
                Case(
                    c.RAILS,
                    do="All instances in one availability zone and one subnet",
                ),
            ),
            note="an EFA device reaches only devices of its own subnet",
            sure=FITS,
        ),
        Message(
            "<ofi_copy_to_mr_iov|ofi_copy_from_mr_iov|ofi_copy_mr_iov|smr_copy_from_sar"
            "|smr_copy_to_sar|ofi_memcpy>",
            "ofiwg/libfabric: src/iov.c, prov/shm/src/smr_progress.c; libfabric#12328, #7977, "
            "#8480",
            (Case(c.MEMTYPE, ("gpu",)), Case(c.MEMTYPE, ("efa",))),
            note="these functions copy with the CPU, in a backtrace of a crash",
            sure=FITS,
        ),
        Message(
            "EFA cannot support FI_HMEM because it was not compiled",
            "ofiwg/libfabric: prov/efa/src/efa_user_info.c",
            (Case(c.NO_HMEM),),
            sure=FITS,
        ),
        Message(
            "EFA cannot support FI_HMEM because the EFA device",
            "ofiwg/libfabric: prov/efa/src/efa_user_info.c",
            (Case(c.EFA_PEER),),
            note="this instance type has no RDMA. The plug-in of NCCL goes on with host memory",
            sure=POSSIBLE,
        ),
        Message(
            "FI_HMEM capability requires RDMA, which this device does not support",
            "ofiwg/libfabric: prov/efa/src/rxr/rxr_attr.c, up to 1.17; aws-ofi-nccl#161",
            note="this instance type has no GPUDirect RDMA, and NCCL's plug-in goes on with host "
            "memory",
            do="An instance type with GPUDirect RDMA, if it is wanted",
            kind=FINE,
        ),
        Message(
            "EFA cannot support FI_HMEM because the environment",
            "ofiwg/libfabric: prov/efa/src/efa_user_info.c",
            (Case(c.OPTIONS),),
            do="Unset `FI_EFA_USE_DEVICE_RDMA`",
        ),
        Message(
            "FI_HMEM cannot be supported because no compatible",
            "ofiwg/libfabric: prov/efa/src/efa_user_info.c",
            (Case(c.NO_LIBCUDA, ("gpu",)),),
            note="libfabric did not find libcuda or libcudart",
            sure=FITS,
        ),
        Message(
            "FI_HMEM_P2P_DISABLED was set",
            "ofiwg/libfabric: prov/efa/src/efa_user_info.c",
            (Case(c.OPTIONS),),
            do="Unset `FI_HMEM_DISABLE_P2P`",
        ),
        Message(
            "<Fork support requested but ibv_fork_init failed|Using libibverbs fork support and "
            "huge pages is not>",
            "ofiwg/libfabric: prov/efa/src/efa_fork_support.c",
            (Case(c.FORK),),
            sure=FITS,
        ),
        Message(
            "Operation aborted because the peer closed its memory registration",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            (Case(c.FREED),),
            sure=FITS,
        ),
        Message(
            "Unexpected status re<turned by responder|ceived from remote>",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h; libfabric#9694",
            note="the peer has ended, or its device is in an error state",
            do="The log of the peer",
            kind=FOLLOWS,
        ),
        Message(
            "SHM internal error",
            "ofiwg/libfabric: prov/efa/src/efa_errno.h",
            note="a transfer within the node failed, which goes through shared memory",
            do="`FI_LOG_LEVEL=warn`, and look for the first warning; "
            "`FI_EFA_ENABLE_SHM_TRANSFER=0` sends within the node by the EFA device",
            kind=FOLLOWS,
        ),
        Message(
            "Unable to start run, PSM3_GPUDIRECT requires rv module",
            "ofiwg/libfabric: prov/psm3/psm3/psm_gpu.c",
            (Case(c.OPTIONS),),
            note="psm3 (Omni-Path, Intel's Ethernet) needs the module rv, built for this NVIDIA "
            "driver",
            do="`modprobe rv`, built with CUDA; or `PSM3_GPUDIRECT=0`",
            sure=FITS,
        ),
        Message(
            "No valid EFA devices found",
            "aws-samples/aws-efa-k8s-device-plugin; sagemaker-hyperpod-cli#367",
            (Case(c.NO_DEVICE),),
            note="the node has no EFA device: the instance type has none, or it was started "
            "without, or the EFA driver is not loaded",
            do="An instance type with EFA, with an EFA interface in its launch template; "
            "`fi_info -p efa`, `modprobe efa`",
            sure=FITS,
        ),
        Message(
            "efa<*>Failed to register ib device",
            "amzn/amzn-drivers: kernel/linux/efa/src/efa_main.c; amzn-drivers#308",
            NO_EFA,
            note="the EFA driver in the kernel's log",
        ),
        Message(
            "efa: probe of <w> failed with error <n>",
            "torvalds/linux: drivers/base/dd.c; amzn-drivers#308",
            NO_EFA,
            note="the EFA driver in the kernel's log",
        ),
        Message(
            "efa <w>: probe with driver efa failed with error <n>",
            "torvalds/linux: drivers/base/dd.c (6.8 and later)",
            NO_EFA,
            note="the EFA driver in the kernel's log",
        ),
    ),
)
