# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an unpin that comes too late does not unpin somebody else's memory
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # rows.sh reads it, and has the steps of a verbs client
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0

# The driver identifies a pin by the address of its page table. With this knob, the driver gives the
# address of a freed table to the next table.
echo 1 >"$NVIDIA/reuse"
start_steps
step alloc 0 0 0x100000
step alloc 1 0x800000 0x100000
step reg 0
equal "registered" ok "$answer"

# A thread begins to deregister, and is held before it unpins. In the meantime the memory and its
# page table are freed. The address with which the thread will unpin is then no longer valid.
echo before_put >"$NVIDIA/inject"
echo before_put >"$NVIDIA/hold"
step '&dereg 0'
wait_for "the unpin" nvidia_is live_held 1
equal "the callback came" 1 "$(nvidia_count callbacks_fired)"

# A second thread registers other memory. The page table of this memory would get the address of the
# freed table.
say_step reg 1
wait_for "the other registration" in_client acquire
echo none >"$NVIDIA/hold"
hear_step
equal "the other registration" ok "$answer"
step join
equal "the deregistration" ok "$answer"
equal "the late unpin found nothing" 1 "$(nvidia_count put_not_found)"
equal "the other's callback is still armed" 1 "$(nvidia_count live_armed_callbacks)"
step dereg 1
equal "the other's deregistration" ok "$answer"
equal "its callback is not" 0 "$(nvidia_count live_armed_callbacks)"
end_steps
