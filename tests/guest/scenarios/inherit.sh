# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a registration ended by another process than made it leaves nothing
load_neighbours

# module_stays: while memory is registered, the module must stay, because the RDMA core may call. Orphans do
# not hold the module.
module_stays() { ! rmmod nv_peer_mem 2>/dev/null; }

# story VIA STEPS EXPECTED...: for each `hold` among the steps, how many pins
# the driver has then and how many regions the core, as PINS/REGIONS. A pin that can be
# revoked and has no region is left behind, and counted.
story() {
	local expected orphans text="$support, $1: $2"
	hold gpuverbs inherit --offset 0 --length 300001 --via "$1" --steps "$2" || fail "$text: it ended early"
	for expected in "${@:3}"; do
		equal "$text: pins and regions" "$expected" \
			"$(($(nvidia_count live_pins) + $(nvidia_count live_persistent_pins)))/$(core_count live_umems)"
		orphans=0
		[ "$support-$expected" != 0-1/0 ] || orphans=1
		equal "$text: orphans" "$orphans" "$(statistic orphans)"
		if [ "${expected#*/}" != 0 ]; then
			check "$text: the module stays" module_stays
		else
			equal "$text: nothing holds the module" 0 "$(cat /sys/module/nv_peer_mem/refcnt)"
		fi
		go_on || break
	done
	check "$text: all steps ended well" ended_well
}

# Each way to get it, each end and each order once; models `orphans` have the orders.

# Another process cannot put a pin that can be revoked: the driver finds nothing
# and says nothing, and its callback stays armed until the memory is freed.
support=0
load_module persistent_api_support=0
story fork heir-register:EFAULT,heir-free:EINVAL,hold 1/1
story fork heir-dereg,hold,owner-free,hold 1/0 0/0
story fork owner-free,hold,heir-dereg,hold 0/1 0/0
story fork owner-kill,hold,heir-exit,hold 0/1 0/0
story fork owner-close,hold,heir-close,hold,owner-free,hold 1/1 1/0 0/0
story fork owner-close,heir-kill,hold,owner-kill,hold 1/0 0/0
story socket owner-exit,hold,heir-close,hold 0/1 0/0
story socket owner-close,heir-exit,hold,owner-free,hold 1/0 0/0
unload_module

# A persistent pin anybody can put, but nothing else ends it.
support=1
load_module persistent_api_support=1
story fork heir-dereg,hold 0/0
story fork owner-kill,hold,heir-exit,hold 1/1 0/0
story fork owner-free,hold,heir-dereg,hold 1/1 0/0
story socket owner-exit,hold,heir-close,hold 1/1 0/0
