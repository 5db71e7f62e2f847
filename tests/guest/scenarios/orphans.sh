# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: registrations that another process deregisters are counted, bounded, and gone when freed
. /lab/server.sh
load_all persistent_api_support=0
mark_log
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
check "what a child deregisters fills nobody's memory" hold "${nobody[@]}" gpuverbs inherit \
	--offset 0 --length 64K --count 16384 --steps heir-dereg,owner-register:EDQUOT,hold,owner-free,hold
expect_log "and the log says why" 'nv_peer_mem: the processes of user 65534 have 16384 orphaned registrations .*stay pinned until the memory is freed'
equal "orphans" 16384 "$(statistic orphans)"
equal "refused for that" 1 "$(statistic failed_orphans)"
equal "pins" 16384 "$(nvidia_count live_pins)"
check "other processes of the user are refused, too" as_nobody gpuverbs register --offset 1M --length 1M --expect EDQUOT
check "host memory is not" as_nobody gpuverbs probe --parts host:64K
check "another user has another bound" setpriv --reuid 65533 --regid 65533 --clear-groups -- \
	gpuverbs register --offset 1M --length 1M --expect ok
equal "nothing of it holds the module" 0 "$(cat /sys/module/nv_peer_mem/refcnt)"
go_on
wait_for "the pins to go" nvidia_is live_pins 0
equal "freed: no orphan stays" 0 "$(statistic orphans)"
check "all ended well" ended_well
registers "and then it works" ok
