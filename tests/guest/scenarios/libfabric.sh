# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: Debian's libfabric, unchanged, between the GPU memory of two processes. Its verbs provider connects by rdma_cm, so the scenario needs a software HCA
. /lab/cuda.sh
. /lab/wheels.sh
load_gpu
load_rdma
use_seed
ip link set lo up

# libfabric makes queues for as many peers as this variable says, and rxe has no room for 256.
export FI_UNIVERSE_SIZE=2
FI_LOG_LEVEL=warn refused libfabric "Unable to register MSG MR" python3
load_module
served libfabric python3
