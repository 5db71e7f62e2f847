# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Mooncake, unchanged, as its wheel has it, between the GPU memory of two processes
. /lab/cuda.sh
. /lab/wheels.sh
load_gpu
load_rdma
use_seed
ip link set lo up
refused mooncake 'Failed to register memory 0x[0-9a-f]+: Bad address \[14\]' python3
load_module
served mooncake python3
