# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an unpin that comes too late does not unpin somebody else's memory
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # for steps of a verbs client, which are with the rows
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0

# The driver knows a pin by its page table's address, which it gives out again.
echo 1 >"$NVIDIA/reuse"
start_steps
step alloc 0 0 0x100000
step alloc 1 0x800000 0x100000
step reg 0
equal "registered" ok "$answer"

# One thread deregisters and unpins. Before the unpinning, the memory is freed with its page table, and the
# thread waits there, with a key that is not valid any more.
echo before_put >"$NVIDIA/inject"
echo before_put >"$NVIDIA/hold"
step '&dereg 0'
wait_for "the unpin" nvidia_is live_held 1
equal "the callback came" 1 "$(nvidia_count callbacks_fired)"

# Another thread registers other memory, for which the driver would use that key.
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
