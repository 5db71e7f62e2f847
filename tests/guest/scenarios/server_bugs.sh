# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: known bugs of RDMA cores do the module no harm
. /lab/server.sh
load_neighbours
seed_driver
moved() { transfer_seen 0 8M 300001 "$@"; }

# freed_before_unmap COUNTER: holds a deregistration at dma_unmap while the driver's callback asks
# the core to revoke. Checks that the core counts this event in COUNTER.
freed_before_unmap() {
	local counted
	counted=$(core_count "$1")
	echo kthread >"$NVIDIA/free_from"
	register_killed
	stop_at invalidate
	stop_at unmap
	lift driver
	wait_held unmap
	wait_held invalidate
	lift invalidate
	wait_for "the core to count it as $1" core_is "$1" $((counted + 1))
	wait_for "the end of the callback" nvidia_is live_pins 0
	lift unmap
	wait_for "the end of it" at_rest
	echo task >"$NVIDIA/free_from"
}

# B2: the core hangs if a registration fails in the driver. For clients without tickets, it also
# unlocks locks that it did not take. The module must therefore give the driver no reason to fail.
turn b2_stop_inverted 1
load_module
check "B2, pinned: transfer" moved 1 --shift 65000
check "B2: the bug was met" test "$(core_count b2_unlocks)" -gt 0
unload_module
load_module persistent_api_support=0
for layout in descending holes64k fragmented; do
	with layout "$layout" check "B2, revocable, $layout: transfer" \
		gpuverbs transfer --from 0 --to 8M --length 300001 --seed 2 --shift 65000
done
turn b2_stop_inverted 0

# B11: the core unmaps a region without having stopped it. If the driver's callback comes before the
# unmapping, the callback finds the region in the same state as a region in use.
turn b11_no_stop 1
check "B11: transfer" moved 5
check "B11: the bug was met" test "$(core_count b11_unstopped)" -gt 0
freed_before_unmap revoked_umems
registers "B11: and then it works" ok
turn b11_no_stop 0

# B13: the driver of an RDMA device never says that a region is ready, so an invalidation of the
# region would wait for ever. With persistent pins there are no invalidations.
turn b13_never_activates 1
check "B13, revocable: transfer" moved 6
freed_before_unmap b13_hangs
unload_module
load_module
hangs=$(core_count b13_hangs)
check "B13, pinned: transfer" moved 7
check "B13, pinned: memory stays" revoke --expect pinned
equal "B13, pinned: no invalidation" "$hangs" "$(core_count b13_hangs)"
turn b13_never_activates 0
unload_module

# B9: the core prints no message when it refuses a client whose name is taken.
for name in nv_mem nv_mem_revocable nv_mem_fixed; do
	mark_log
	echo "$name" >/sys/module/ib_core/parameters/peer_taken_name
	check "B9: with $name taken the module does not load" eval '! load_module 2>/dev/null'
	expect_log "B9: and says so" "nv_peer_mem: .*$name"
	equal "B9: and leaves nothing" 0 "$(core_count live_clients)"
	echo >/sys/module/ib_core/parameters/peer_taken_name
done
load_module
registers "B9: and then it works" ok
