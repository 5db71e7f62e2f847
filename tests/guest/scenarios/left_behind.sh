# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: registrations that another process deregisters are counted, bounded, and gone when freed
. /lab/server.sh
load_all persistent_api_support=0
mark_log
check "what a child deregisters fills nobody's memory" \
	hold gpuverbs inherit --offset 0 --length 64K --count 1024 --steps heir-dereg,owner-register:EDQUOT,hold,owner-free,hold
expect_log "and the log says why" 'nv_peer_mem: a process has 1024 orphaned registrations .*stay pinned until the memory is freed'
equal "left behind" 1024 "$(statistic left_behind)"
equal "refused for that" 1 "$(statistic failed_left_behind)"
equal "pins" 1024 "$(nvidia_count live_pins)"
check "another process has its own bound" gpuverbs register --offset 1M --length 1M --expect ok
go_on
wait_for "the pins to go" nvidia_is live_pins 0
equal "freed: nothing is left behind" 0 "$(statistic left_behind)"
check "all ended well" ended_well
registers "and then it works" ok
