# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a process killed in mid-registration leaves nothing
. /lab/server.sh
load_neighbours
for support in 1 0; do
	load_module persistent_api_support=$support
	for task in task close kthread; do
		text="persistent_api_support=$support, freed by $task"
		echo "$task" >"$NVIDIA/free_from"
		hold gpuverbs transfer --from 0 --to 8M --length 3M --seed 9 --hold
		equal "$text: registered" 2 "$(core_count live_mapped)"
		check "$text: the module cannot be unloaded meanwhile" eval '! rmmod nv_peer_mem 2>/dev/null'
		kill -9 "$held"
		rc=0
		ended_well || rc=$?
		equal "$text: it was killed" $((128 + 9)) "$rc"
		wait_for "everything to go" at_rest
		nothing_left "$text"
	done
	unload_module
done
