# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: known bugs of RDMA cores do the module no harm
. /lab/server.sh
load_gpu
load_rdma
seed_driver
moved() { transfer_seen 0 8M 300001 "$@"; }

# freed_before_unmap: the deregistration has come as far as dma_unmap, and is held
# there, when the driver's callback asks the core.
freed_before_unmap() {
	echo kthread >"$NVIDIA/free_from"
	register_killed
	stop_at invalidate
	stop_at unmap
	lift driver
	wait_held unmap
	wait_held invalidate
	lift invalidate
}

# B2: a core that hangs when a registration fails in the driver, and unlocks what it
# has not locked for clients without tickets. It is given nothing to fail for.
turn b2_stop_inverted 1
load_module
check "B2, pinned: transfer" moved 1 --shift 65000
check "B2: the bug was met" test "$(core_count b2_unlocks)" -gt 0
unload_module
load_module persistent_api_support=0
for layout in descending holes64k fragmented; do
	echo "$layout" >"$NVIDIA/layout"
	check "B2, revocable, $layout: transfer" \
		gpuverbs transfer --from 0 --to 8M --length 300001 --seed 2 --shift 65000
done
echo contiguous >"$NVIDIA/layout"
turn b2_stop_inverted 0

# B7: a core that takes the first address for that of the range's first page.
turn b7_no_trim 1
for shift in 0 4096 12345 65535; do
	check "B7: transfer from byte $shift of a page" moved 3 --shift $shift
done
turn b7_no_trim 0

# B8: a core whose figures of what has ended are wrong. Nobody goes by them.
turn b8_dereg_figures 1
before=$(peer nv_mem num_dereg_pages)
ended=$(peer nv_mem num_dealloc_mrs)
check "B8: transfer" moved 4
equal "B8: the bug was met" "$before" "$(peer nv_mem num_dereg_pages)"
equal "B8: registrations ended all the same" $((ended + 2)) "$(peer nv_mem num_dealloc_mrs)"
turn b8_dereg_figures 0

# B11: a core that unmaps at the last moment, without having told the region to
# stop: the driver's callback comes in between, and finds it as if in use.
turn b11_no_stop 1
check "B11: transfer" moved 5
check "B11: the bug was met" test "$(core_count b11_unstopped)" -gt 0
revoked=$(core_count revoked_umems)
freed_before_unmap
wait_for "the revocation" core_is revoked_umems $((revoked + 1))
wait_for "the end of the callback" nvidia_is live_callbacks_running 0
lift unmap
wait_for "the end of it" at_rest
echo task >"$NVIDIA/free_from"
check "B11: and then it works" register ok
turn b11_no_stop 0

# B13: a driver of an RDMA device that never says that a region is ready. An
# invalidation of it would wait for ever: the only defence is pinned memory.
turn b13_never_activates 1
hangs=$(core_count b13_hangs)
check "B13, revocable: transfer" moved 6
freed_before_unmap
wait_for "the invalidation that would hang" core_is b13_hangs $((hangs + 1))
lift unmap
wait_for "the end of it" at_rest
echo task >"$NVIDIA/free_from"
unload_module
load_module
check "B13, pinned: transfer" moved 7
check "B13, pinned: memory stays" gpuverbs revoke --from 0 --to 8M --length 300001 --expect pinned
equal "B13, pinned: no invalidation" $((hangs + 1)) "$(core_count b13_hangs)"
turn b13_never_activates 0
unload_module

# B9: a core that refuses a name that is taken, and does not say so.
for name in nv_mem nv_mem_revocable nv_mem_fixed; do
	mark_log
	echo "$name" >/sys/module/ib_core/parameters/peer_taken_name
	check "B9: with $name taken the module does not load" eval '! load_module 2>/dev/null'
	expect_log "B9: and says so" "nv_peer_mem: .*$name"
	equal "B9: and leaves nothing" 0 "$(core_count live_clients)"
	echo >/sys/module/ib_core/parameters/peer_taken_name
done
load_module
check "B9: and then it works" register ok
