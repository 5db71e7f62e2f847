# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a process killed in mid-registration leaves nothing
# All: behind an IOMMU straight and layouts show the same
# Test: plain
# Needs: plain iommu
load_gpu
load_rdma
for support in 1 0; do
	for task in task close kthread; do
		echo "$task" >"$NVIDIA/free_from"
		load_module persistent_api_support=$support
		coproc HOLD { exec gpuverbs transfer --from 0 --to 8M --length 3M --seed 9 --hold; }
		pid=$HOLD_PID out=${HOLD[0]}
		until read -r -u "$out" line && [ "$line" = holding ]; do :; done
		check "registered (persistent_api_support=$support)" test "$(core_count live_mapped)" = 2
		check "the module cannot be unloaded meanwhile" eval '! rmmod nv_peer_mem 2>/dev/null'
		kill -9 "$pid"
		wait "$pid" 2>/dev/null || true
		wait_for "the pins to go" test "$(nvidia_count live_pins)" = 0
		wait_for "the memory to go" sh -c "grep -q '^live_allocations 0' $NVIDIA/counters"
		wait_for "the regions to go" sh -c "grep -q '^live_umems 0' $CORE/counters"
		equal "freed by $task: nothing is left" '' "$(live_gauges "$NVIDIA" | paste -sd' ')"
		unload_module
	done
done
