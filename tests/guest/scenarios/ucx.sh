# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Open MPI over UCX, both Debian's and unchanged, moves GPU memory over the queues of an mlx5 device, made by DevX and by verbs
. /lab/openmpi.sh
load_gpu
load_rdma
use_seed
check "without the module UCX gives up" gives_up
load_module

pointers() { peer nv_mem num_alloc_mrs; }
exchanged "by DevX" -x UCX_LOG_LEVEL=debug
check "by DevX: UCX says so" grep -q "md open by 'uct_ib_mlx5_devx_md_ops' is successful" /tmp/job
check "by DevX: GPU memory was registered by pointer" [ "$(pointers)" -gt 0 ]
registered=$(pointers)
exchanged "by verbs" -x UCX_LOG_LEVEL=debug -x UCX_IB_MLX5_DEVX=n
check "by verbs: UCX says so" grep -q "$HCA: DEVX is not supported" /tmp/job
check "by verbs: GPU memory was registered by pointer" [ "$(pointers)" -gt "$registered" ]
