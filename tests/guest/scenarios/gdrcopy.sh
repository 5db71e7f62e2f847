# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what gdrcopy does beside nv_peer_mem: the CPU maps the memory that is registered
. /lab/cuda.sh
load_gpu
load_rdma
modprobe cpumap
wait_for "its device" test -c /dev/cpumap
load_module persistent_api_support=0
cuda gdrcopy revocable
unload_module
load_module
cuda gdrcopy persistent
rmmod cpumap
