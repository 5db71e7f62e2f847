# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Rows about messages of NIXL."""

from .. import causes as c
from ..model import FINE, FITS, FOLLOWS, POSSIBLE, Case, Message, Section
from ..verbs import REG_MR_SILENT
from .libfabric import EFA_REG

# An object of libfabric was made.
FI_OPEN = (
    Case(c.NIC_LIMIT, ("errno=ENOMEM", "memlock_unlimited"), sure=FITS),
    Case(c.MEMLOCK, ("errno=ENOMEM",), (), sure=FITS),
    Case(c.DEVICE_DENIED, ("errno=EPERM,EACCES",), sure=FITS),
    Case(c.NO_DEVICE, ("errno=ENODEV,ENODATA",), sure=FITS),
)

SECTION = Section(
    "NIXL",
    "`UCX_LOG_LEVEL=warn` shows UCX's reason. NIXL's packages contain their own UCX.",
    (
        Message(
            "Amazon EFA(s) were detected, but the UCX backend was configured",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp; nixl#909, ray#62339, vllm#41814, "
            "modelexpress#259",
            (Case(c.EFA_BACKEND),),
            note="NIXL prints no other line about it",
        ),
        Message(
            "NIXL_ERR_BACKEND",
            "ai-dynamo/nixl: src/bindings/python/nixl_bindings.cpp; nixl#177, #1628, "
            "LMCache#605; vllm-project/vllm#29569",
            note="in most cases UCX or libfabric refused the memory",
            do="`UCX_LOG_LEVEL=warn`, and look for UCX's lines, such as "
            "`ibv_reg_mr(address=`, or with libfabric `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "registration failed for the specified or all potential",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            note="UCX or libfabric refused the memory",
            do="`UCX_LOG_LEVEL=warn`, and look for UCX's lines, such as "
            "`ibv_reg_mr(address=`, or with libfabric `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "VRAM memory is detected as host",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp; nixl#1385, #1628",
            (
                Case(c.UCX_TLS, ("ucx_tls_without_cuda",)),
                Case(
                    c.UCX_NO_CUDA,
                    (),
                    (),
                    do="With the wheels nixl-cu12 and nixl-cu13: `UCX_MODULE_DIR` with the "
                    "directory `nixl_cu12.libs/ucx` or `nixl_cu13.libs/ucx` of site-packages, "
                    "because their UCX does not always find its CUDA plug-ins. Else a UCX built "
                    "`--with-cuda`: `ucx_info -d | grep cuda` must list devices",
                ),
            ),
            unless=("amd",),
        ),
        Message(
            "UCX CUDA support was not found",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            (
                Case(c.UCX_TLS, ("ucx_tls_without_cuda",)),
                Case(c.UCX_NO_CUDA, (), ()),
            ),
        ),
        Message(
            "accelerated IB support was not found",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            (
                Case(c.NO_DEVICE, ("container",), ("one_node",)),
                Case(c.RDMA_OFF, ("var:UCX_TLS",), sure=POSSIBLE),
                Case(c.UCX_NO_IB, ("one_node",), sure=POSSIBLE),
                Case(c.UCX_NO_IB, (), ("one_node",)),
            ),
            note="UCX sends by TCP. It is also printed if the ports of all NICs are down",
            sure=FITS,
        ),
        Message(
            "<f|F>ailed to ucp_mem_map",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            note="UCX could not register the memory",
            do="`UCX_LOG_LEVEL=warn`, and look for UCX's lines, such as `ibv_reg_mr(address=`",
            kind=FOLLOWS,
        ),
        Message(
            "no available backends for mem type '<*>VRAM",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            (Case(c.UCX_NO_CUDA),),
            note="no backend of this agent takes GPU memory",
            do="Create the backend `UCX` first; `ucx_info -d` must list `cuda_copy`",
            sure=FITS,
        ),
        Message(
            "backend creation failed for '<w>'",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            note="the plug-in did not start",
            do="Look at the plug-in's lines above it; `UCX_LOG_LEVEL=warn`, `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "NIXL_ERR_REMOTE_DISCONNECT",
            "ai-dynamo/nixl: src/core/nixl_enum_strings.cpp; vllm-project/vllm#35799",
            note="the peer is gone, or its memory could not be reached: NIXL registers memory also "
            "if no NIC accepts it, and the transfer fails later. If it began with a new "
            "version, UCX may now take RDMA where it took NVLink (`cuda_ipc`)",
            do="Look at the peer's log. Within a node: the version from before, or "
            "`UCX_TLS=cuda_ipc,cuda_copy,rc,tcp`",
            kind=FOLLOWS,
        ),
        Message(
            "NIXL is not available",
            "vllm-project/vllm: vllm/distributed/kv_transfer/kv_connector/v1/nixl_connector.py",
            (Case(c.OPTIONS),),
            note="vLLM does not find the Python package of NIXL, or the package does not find "
            "its UCX",
            do="`pip install nixl` for this Python and this CUDA",
            sure=FITS,
        ),
        Message(
            "Unexpected UCX error",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_enums.cpp",
            do="`UCX_LOG_LEVEL=warn`, and look for UCX's lines, such as `ibv_reg_mr(address=`",
            kind=FOLLOWS,
        ),
        Message(
            "fi_mr_reg failed on rail",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp; libfabric#12019",
            EFA_REG,
        ),
        Message(
            "VRAM memory requested but provider does not support FI_HMEM",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            (Case(c.NO_HMEM),),
            note="an error or wrong data follows",
        ),
        Message(
            "Using provider without FI_HMEM support",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            (Case(c.NO_HMEM),),
            note="nothing is wrong if only host memory is transferred",
            sure=FITS,
        ),
        Message(
            "Rail Manager registerMemory failed",
            "ai-dynamo/nixl: src/plugins/libfabric/libfabric_backend.cpp",
            do="Look for `fi_mr_reg failed on rail` above it. `FI_LOG_LEVEL=warn`, and look "
            "for libfabric's lines, such as `Unable to register MR of`",
            kind=FOLLOWS,
        ),
        Message(
            "could not find a common backend in the specified or",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            note="in most cases the two agents registered the memory with different backends",
            do="Look for `registration failed` above it, on both sides; use the same backends "
            "on both",
            kind=FOLLOWS,
        ),
        Message(
            "no specified or potential backend had the required",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            note="the memory is not registered with a backend that both sides have",
            do="Look for `registration failed` above it, on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "<fi_domain|fi_getinfo|fi_endpoint|fi_enable> failed for rail <n>",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            FI_OPEN,
            note="the plug-in of libfabric could not open a device",
        ),
        Message(
            "<fi_cq_open with FI_WAIT_NONE|fi_av_open> failed for rail <n>",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            FI_OPEN,
        ),
        Message(
            "No network devices found with any provider",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_common.cpp",
            (Case(c.EFA_VERSIONS, ("efa",), sure=POSSIBLE), Case(c.NO_DEVICE)),
            sure=FITS,
        ),
        Message(
            "No network devices discovered",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail_manager.cpp",
            note="libfabric offers no device",
            do="`fi_info -p efa` in the container; `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to register memory on rail",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail_manager.cpp",
            note="libfabric refused the memory",
            do="Look for `fi_mr_reg failed on rail` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "CQ read failed on rail",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            note="a transfer failed",
            do="`FI_LOG_LEVEL=warn`, and look for the words of libfabric for `prov_errno`",
            kind=FOLLOWS,
        ),
        Message(
            "Transfer completed with CQ error",
            "ai-dynamo/nixl: src/plugins/libfabric/libfabric_backend.cpp",
            note="a transfer failed",
            do="Look for `CQ read failed on rail` above it, and `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "<fi_writedata|fi_read|fi_senddata> failed on rail",
            "ai-dynamo/nixl: src/utils/libfabric/libfabric_rail.cpp",
            note="libfabric refused a transfer",
            do="Look for the first error above it, and `FI_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to initialize libfabric backend",
            "ai-dynamo/nixl: src/plugins/libfabric/libfabric_backend.cpp",
            note="the plug-in of libfabric did not start",
            do="Look for `failed for rail` and `No network devices` above it",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create UCX <context|worker>",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp; dynamo#10852, smg#2520",
            note="UCX could not open a device. In most cases that is a NIC for management, or "
            "one without an address, which UCX takes because no device is named",
            do="`UCX_LOG_LEVEL=warn`, and look for `UCX  ERROR`, which names the device; "
            "`UCX_NET_DEVICES` with the NICs of the fabric only",
            kind=FOLLOWS,
        ),
        Message(
            "UCX endpoint create failed",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            note="UCX found no way to the peer",
            do="`UCX_LOG_LEVEL=warn` on both sides, and look for `UCX  ERROR`",
            kind=FOLLOWS,
        ),
        Message(
            "<f|F>ailed to ucp_rkey_pack",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            note="UCX could not describe the memory to the peer",
            do="`UCX_LOG_LEVEL=warn`, and look for `UCX  ERROR`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to unpack UCX rkey",
            "ai-dynamo/nixl: src/plugins/ucx/rkey.cpp",
            note="the peer registered the memory for transports that this side does not have",
            do="The same version of UCX, `UCX_TLS` and `UCX_NET_DEVICES` on both sides; "
            "`UCX_LOG_LEVEL=warn`",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create device memory list",
            "ai-dynamo/nixl: src/plugins/ucx/mem_list.cpp; nixl#2259",
            note="UCX's transfers from the GPU itself do not work with this memory or NIC; plain "
            "transfers may work",
            do="`UCX_LOG_LEVEL=warn`, and look for `UCX  ERROR`",
            kind=FOLLOWS,
        ),
        Message(
            "which is less than 1.19, CUDA support",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            note="an older UCX is found before NIXL's own",
            do="If a transfer fails: `LD_LIBRARY_PATH` without the older UCX",
            kind=FINE,
        ),
        Message(
            "Failed to load plugin from <*>libplugin_",
            "ai-dynamo/nixl: src/core/nixl_plugin_manager.cpp",
            note="NIXL tries all plug-ins. One whose library is missing matters only if the "
            "program asks for it",
            do="If `unsupported backend` follows: install the library that the line names",
            kind=FINE,
        ),
        Message(
            "unsupported backend '<w>'",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            (Case(c.NO_PLUGIN),),
            do="`NIXL_LOG_LEVEL=info`, and look for `Failed to load plugin`, which names the "
            "missing library; `NIXL_PLUGIN_DIR`, and `LD_LIBRARY_PATH` with UCX's libraries",
        ),
        Message(
            "no common backend to connect with",
            "ai-dynamo/nixl: src/core/nixl_agent.cpp",
            note="the two agents have different backends",
            do="Look for `backend creation failed` above it, on both sides",
            kind=FOLLOWS,
        ),
        Message(
            "Failed to create gpu umem",
            "ai-dynamo/nixl: src/plugins/gpunetio/verbs/verbs.cpp",
            (Case(c.GEFORCE, ("geforce",)), Case(c.PINNED_QUEUES, (), (), sure=FITS)),
            note="the plug-in GPUNETIO has its queues in GPU memory",
            do="Load this module, or the open NVIDIA driver with dma-buf",
        ),
        Message(
            "Failed to doca_uar_create NC DEDICATED",
            "ai-dynamo/nixl: src/plugins/gpunetio/verbs/verbs.cpp",
            (Case(c.DEVX),),
            sure=FITS,
        ),
        Message(
            "gpunetio_backend.cpp:<n>] Failed to create mr",
            "ai-dynamo/nixl: src/plugins/gpunetio/verbs/verbs.cpp",
            REG_MR_SILENT,
            note="the plug-in tries dma-buf first, then `ibv_reg_mr`",
        ),
        Message(
            "doca_gpu_mem_alloc with DOCA_GPU_MEM_TYPE_GPU_CPU returned",
            "ai-dynamo/nixl: src/plugins/gpunetio/gpunetio_backend.cpp",
            note="this memory needs gdrcopy. The plug-in goes on with host memory, and is slower",
            do="Load gdrdrv, and give the container `/dev/gdrdrv`",
            kind=FINE,
        ),
        Message(
            "<Failed to open DOCA device|Failed to get RDMA devices list, ibdev_list null>",
            "ai-dynamo/nixl: src/plugins/gpunetio/gpunetio_backend.cpp",
            (Case(c.NO_DEVICE),),
            sure=FITS,
        ),
        Message(
            "Failed to query ibv gid attributes",
            "ai-dynamo/nixl: src/plugins/gpunetio/gpunetio_backend.cpp",
            (Case(c.GID),),
            sure=FITS,
        ),
        Message(
            "Can't register memory for unknown device",
            "ai-dynamo/nixl: src/plugins/gpunetio/gpunetio_backend.cpp",
            (Case(c.OPTIONS),),
            note="the memory is on another GPU than the one that the plug-in was started with",
            do="The GPU of the memory in the parameter `gpu_devices` of the plug-in",
        ),
        Message(
            "Failed to register memory with UCCL engine",
            "ai-dynamo/nixl: src/plugins/uccl/uccl_backend.cpp",
            note="UCCL could not register the memory",
            do="Look for UCCL's line with `ibv_reg_mr` above it, which has the error",
            kind=FOLLOWS,
        ),
        Message(
            "Still waiting to create device memory list",
            "ai-dynamo/nixl: src/plugins/ucx/mem_list.cpp; nixl#2205",
            note="UCX does not get the connection that transfers from the GPU itself need",
            do="Look for `accelerated IB support was not found` above it; `ibstat`: the ports of "
            "the NICs have to be up",
            kind=FOLLOWS,
        ),
        Message(
            "NIXL_ERR_NOT_SUPPORTED",
            "ai-dynamo/nixl: src/core/nixl_enum_strings.cpp",
            note="the backend does not do what was asked for",
            do="`NIXL_LOG_LEVEL=info`, and look for the first line of the plug-in above it",
            kind=FOLLOWS,
        ),
        Message(
            "callback was invoked with status -80",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp; vllm#49238",
            (Case(c.NETWORK),),
            note="the peer was restarted, or the network between the two is broken",
            sure=FITS,
        ),
        Message(
            "callback was invoked with status -25",
            "ai-dynamo/nixl: src/plugins/ucx/ucx_utils.cpp",
            note="the peer closed the connection, in most cases because it failed or ended",
            do="The log of the peer at that time",
            kind=FOLLOWS,
        ),
        Message(
            "failed to create UD QP",
            "openucx/ucx: src/uct/ib/base/ib_iface.c; dynamo#285",
            (Case(c.NOT_MLX5, ("errno=EINVAL,EOPNOTSUPP", "other_nic")),),
            note="eRDMA has no queue pairs of the kind UD, which UCX uses to connect",
            do="`UCX_TLS` with `rc` and `tcp` and without `ud`, or Mooncake in place of UCX",
            sure=FITS,
        ),
        Message(
            "Failed to load plugin from <*>libplugin_<UCX|UCX_MO>.so: <libcuda|libcudart>",
            "ai-dynamo/nixl: src/core/nixl_plugin_manager.cpp; nixl#838",
            (Case(c.NO_LIBCUDA, sure=FITS),),
            note="NIXL's wheel needs CUDA's libraries, also for host memory. Machines without an "
            "NVIDIA GPU do not have them",
            do="In a container with GPUs `--gpus all`; on a machine without an NVIDIA GPU build "
            "NIXL and UCX from source, without CUDA",
        ),
    ),
)
