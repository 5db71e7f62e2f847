# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the module can be unloaded and loaded again while memory is pinned; late callbacks find nothing to do
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # rows.sh reads it, and has the steps of a verbs client
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0
callback=/sys/module/nv_peer_mem_callback

# The driver no longer lists the process for this memory. When the process unpins, the driver
# therefore does not find the pin, and reports success nevertheless.
start_steps
step alloc 0 0 0x100000
step reg 0
equal "registered" ok "$answer"
echo 1 >"$NVIDIA/delisted"
step dereg 0
equal "deregistered" ok "$answer"
echo 0 >"$NVIDIA/delisted"
equal "but not unpinned" 1 "$(nvidia_count live_armed_callbacks)"
equal "which nobody can see" 0 "$(statistic orphans)"
ended=0
modprobe -r nv_peer_mem >/tmp/said 2>&1 || ended=$?
equal "modprobe -r takes the module out" 0 "$ended"
equal "without a word about what stays" '' "$(cat /tmp/said)"
check "that is to receive the callback stays" test -d "$callback"
check "and cannot be taken out" eval '! rmmod nv_peer_mem_callback 2>/dev/null'

# Each load of the module must continue to count registrations. If a load began at the same number
# as the load before, this registration would have the number of the orphan.
load_module persistent_api_support=0
step alloc 1 0x800000 0x100000
step reg 1
equal "registered again" ok "$answer"
step free 0
equal "the first memory is freed" ok "$answer"
equal "its callback has come" 1 "$(nvidia_count callbacks_fired)"
equal "the other registration was not revoked" 0 "$(statistic revocations)"
equal "and is the only one" 1 "$(nvidia_count live_armed_callbacks)"

# The module must stay loaded during a callback, and while the core still has the registration.
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

# The module is unloaded and loaded while the memory of orphans is freed. When a callback comes, the
# load that made the pin may still exist, or the next load may exist, or no load at all.
before=$(nvidia_count callbacks_fired)
for round in 1 2 3 4 5 6 7 8 9 10; do
	load_module persistent_api_support=0
	hold gpuverbs inherit --offset 1M --length 64K --count 64 --steps heir-dereg,hold,owner-free
	equal "round $round: orphans" 64 "$(statistic orphans)"
	echo >&"$to_held"
	rmmod nv_peer_mem
	load_module persistent_api_support=0
	check "round $round: freed" ended_well
	check "round $round: and then it works" gpuverbs register --offset 0 --length 1M --expect ok
	unload_module
done
equal "all callbacks came" 640 "$(($(nvidia_count callbacks_fired) - before))"
check "the driver is at rest" driver_at_rest
check "what receives callbacks was there all the time" test -d "$callback"
