# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what libgdsync has in GPU memory: buffers, queues and doorbells; its order of unloading
. /lab/cuda.sh
load_gpu
load_rdma
cuda libgdsync
load_module
cuda libgdsync nv_mem nv_mem nv_mem_revocable
unload_module
load_module persistent_api_support=0
cuda libgdsync nv_mem nv_mem_nc nv_mem
unload_module

# As in libgdsync's README, the users of the driver are unloaded first, and then the driver is
# loaded again.
service=/etc/init.d/nv_peer_mem
check "the service starts" "$service" start
check "the driver cannot go before" eval '! modprobe -r nvidia 2>/dev/null'
for command in "$service stop" "modprobe -r nvidia" "modprobe nvidia" "$service start" "$service stop"; do
	check "$command" eval "$command"
done
