# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a process killed in mid-registration leaves nothing
. /lab/server.sh
load_gpu
load_rdma
for support in 1 0; do
	for task in task close kthread; do
		echo "$task" >"$NVIDIA/free_from"
		load_module persistent_api_support=$support
		hold gpuverbs transfer --from 0 --to 8M --length 3M --seed 9 --hold
		equal "registered (persistent_api_support=$support)" 2 "$(core_count live_mapped)"
		check "the module cannot be unloaded meanwhile" eval '! rmmod nv_peer_mem 2>/dev/null'
		kill -9 "$held"
		rc=0
		ended_well || rc=$?
		equal "it was killed" $((128 + 9)) "$rc"
		wait_for "the pins to go" nvidia_is live_pins 0
		wait_for "the persistent pins to go" nvidia_is live_persistent_pins 0
		wait_for "the memory to go" nvidia_is live_allocations 0
		wait_for "the regions to go" core_is live_umems 0
		equal "freed by $task: nothing is left" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
		unload_module
	done
done
