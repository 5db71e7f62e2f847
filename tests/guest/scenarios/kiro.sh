# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what KIRO does: a client syncs a server's memory into its GPU
. /lab/cuda.sh
load_gpu
load_rdma
load_module
cuda kiro
equal "registrations of GPU memory" 3 "$(peer nv_mem num_alloc_mrs)"
