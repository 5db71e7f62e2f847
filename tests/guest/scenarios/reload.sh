# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module goes and comes again whatever is still pinned; late callbacks find nothing to do
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # for steps of a verbs client, which are with the rows
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0
callback=/sys/module/nv_peer_mem_callback

# The object that has the memory lists the process no more: the driver finds no pin, and says nothing.
start_steps
step alloc 0 0 0x100000
step reg 0
equal "registered" ok "$answer"
echo 1 >"$NVIDIA/delisted"
step dereg 0
equal "deregistered" ok "$answer"
echo 0 >"$NVIDIA/delisted"
equal "but not unpinned" 1 "$(nvidia_count live_armed_callbacks)"
equal "which nobody can see" 0 "$(statistic left_behind)"
check "modprobe -r takes the module out" modprobe -r nv_peer_mem
check "that is to receive the callback stays" test -d "$callback"
check "and cannot be taken out" eval '! rmmod nv_peer_mem_callback 2>/dev/null'

# A registration of the next load; without numbers that go on it would have that of the first.
load_module persistent_api_support=0
step alloc 1 0x800000 0x100000
step reg 1
equal "registered again" ok "$answer"
step free 0
equal "the first memory is freed" ok "$answer"
equal "its callback has come" 1 "$(nvidia_count callbacks_fired)"
equal "the other registration was not revoked" 0 "$(statistic revocations)"
equal "and is the only one" 1 "$(nvidia_count live_armed_callbacks)"

# While a callback is inside, and the core still has the registration, the module stays.
stop_at invalidate
step '&free 1'
wait_held invalidate
check "not during a callback" eval '! rmmod nv_peer_mem 2>/dev/null'
lift invalidate
step join
equal "freed" ok "$answer"
step dereg 1
equal "deregistered in the end" ok "$answer"
end_steps
unload_module

# Again and again, while processes leave registrations behind: each load meets callbacks of the one before.
left_by_others() {
	while [ ! -e /tmp/enough ]; do
		gpuverbs inherit --offset 1M --length 64K --count 8 --steps heir-dereg,owner-free
		gpuverbs inherit --offset 2M --length 64K --count 8 --steps owner-kill,heir-exit
	done >/dev/null 2>&1
	true
}
left_by_others &
others=$!
remember
for _ in 1 2 3 4 5 6 7 8 9 10; do
	load_module persistent_api_support=0
	fired=$(nvidia_count callbacks_fired)
	wait_for "callbacks" eval '[ "$(nvidia_count callbacks_fired)" -gt "$((fired + 8))" ]'
	wait_for "a moment without registrations" rmmod nv_peer_mem
done
touch /tmp/enough
check "the others have ended" wait "$others"
check "callbacks came: $(grown callbacks_fired)" test "$(grown callbacks_fired)" -gt 80
wait_for "the driver to be at rest" driver_at_rest
equal "no violation" '' "$(violations "$NVIDIA" "$CORE")"
equal "loaded all the time" 1 "$(cat "$callback/refcnt")"
