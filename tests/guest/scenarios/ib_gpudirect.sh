# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what ib_gpudirect did: its README's program, as it was, through a preload
. /lab/cuda.sh
load_gpu
load_rdma
preload=/usr/local/lib/ib_gpudirect_preload.so
load_module
cuda ib_gpudirect unaided
LD_PRELOAD=$preload cuda ib_gpudirect exchange
equal "registrations" 4 "$(peer nv_mem num_alloc_mrs)"
