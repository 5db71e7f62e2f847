# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory freed between the RDMA core's calls of a registration is never given to the device
. /lab/server.sh
load_neighbours
# shellcheck disable=SC2034 # rows.sh reads it, and has the steps of a verbs client
MODULE=nv_peer_mem
. /lab/defects/rows.sh
load_module persistent_api_support=0
# The first registration of a pair also asks the driver for the map type, which would notice that the
# memory is gone.
registers "with memory that stays" ok

# lose_at POINT ANSWER: frees the memory of a registration that the core holds at POINT, and checks
# that the registration then ends with ANSWER. A registration that the core has activated is
# revoked.
lose_at() {
	start_steps
	step alloc 0 0 0x10000
	stop_at "$1"
	step '&reg 0'
	wait_held "$1"
	say_step free 0
	wait_for "the callback" nvidia_is live_armed_callbacks 0
	lift "$1"
	hear_step
	equal "$1: the free" ok "$answer"
	step join
	equal "$1: the registration" "$2" "$answer"
	end_steps
	wait_for "everything to go" at_rest
}
lose_at map EFAULT
lose_at driver ok
