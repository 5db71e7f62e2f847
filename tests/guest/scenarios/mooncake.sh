# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Mooncake, unchanged, as its wheel has it, between the GPU memory of two processes
. /lab/cuda.sh
. /lab/wheels.sh
load_gpu
load_rdma
load_module
use_seed
ip link set lo up
served mooncake python3
