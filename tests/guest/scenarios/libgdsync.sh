# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what libgdsync has in GPU memory: buffers, queues and doorbells; its order of unloading
. /lab/cuda.sh
load_gpu
load_rdma
service=/etc/init.d/nv_peer_mem
cuda queues not_without_a_client

load_module
cuda queues stream objects=nv_mem,nv_mem without_persistent_pins=nv_mem_revocable
unload_module

load_module persistent_api_support=0
cuda queues objects=nv_mem,nv_mem_nc without_persistent_pins=nv_mem
unload_module

# As its README has it: what uses the driver goes first, then the driver is loaded again.
modprobe cpumap
check "the service starts" "$service" start
check "the driver cannot go before" eval '! modprobe -r nvidia 2>/dev/null'
hold python3 -B /lab/cuda/outside.py /etc/hostname
check "the service does not stop under a registration" eval "! $service stop"
check "the registration ends" ended_well
modprobe -r cpumap
for command in "$service stop" "modprobe -r nvidia" "modprobe nvidia" "$service start"; do
	check "$command" eval "$command"
done
wait_for "the GPU" test -c /dev/nvidia-lab
cuda queues stream
check "the service stops" "$service" stop
