# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What ib_gpudirect, libgdsync and gdrcopy begin with: each has a scenario that runs
# by itself, and all three run one after another in the guest of `consumers`.
. /lab/cuda.sh
[ -c /dev/nvidia-lab ] || load_gpu
[ -d /sys/class/infiniband/rxe0 ] || load_rdma
