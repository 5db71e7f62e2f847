# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what gdrcopy does beside nv_peer_mem: the CPU maps the memory that is registered
. /lab/cuda.sh
load_gpu
load_rdma
modprobe cpumap
wait_for "its device" test -c /dev/cpumap
cuda cpu_map not_without_a_client foreign

load_module persistent_api_support=0
cuda cpu_map sharing revocation

# The host sees the same bytes in the file behind the GPU's BAR.
gpuverbs pattern --seed 31 --length 1000001 >/tmp/pattern
check "written by the CPU, read by RDMA" hold python3 -B /lab/cuda/cpu_map.py held
for how in written read; do
	offset=$(sed -n "s/^$how=//p" /tmp/held)
	equal "what was $how, seen from outside" yes "$(ask pattern "$offset" 1000001 31)"
done
for module in cpumap nv_peer_mem nvidia; do
	check "meanwhile $module stays" eval "! rmmod $module 2>/dev/null"
done
check "it ends well" ended_well
unload_module

load_module
cuda cpu_map persistence
rmmod cpumap
unload_module
equal "nothing is left in the driver" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
