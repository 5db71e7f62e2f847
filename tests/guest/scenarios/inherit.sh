# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: a registration ended by another process than made it leaves nothing
load_neighbours

# module_stays: succeeds if the module cannot be unloaded. A registration keeps the module loaded,
# because the RDMA core may still call the module. An orphan does not keep it loaded.
module_stays() { ! rmmod nv_peer_mem 2>/dev/null; }

# story VIA STEPS EXPECTED...: runs STEPS. At each step `hold`, compares the number of the driver's
# pins and of the core's regions with the next EXPECTED, which is PINS/REGIONS. A revocable pin
# without a region must count as an orphan.
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

# The stories contain each way to inherit and each way to end, but not every order of these ends.
# The models `orphans` test all orders.

# Another process cannot end a revocable pin, because the driver does not find the pin. The driver
# reports success nevertheless, and calls back when the memory is freed.
support=0
load_module persistent_api_support=0
# A program has the doorbells of a ConnectX in its address space, and this mapping keeps the verbs
# context although every descriptor is closed. So the region stays until the program ends.
closed=1/0 freed=0/0
[ "$NICS" = 0 ] || closed=1/1 freed=0/1
story fork heir-register:EFAULT,heir-free:EINVAL,hold 1/1
story fork heir-dereg,hold,owner-free,hold 1/0 0/0
story fork owner-free,hold,heir-dereg,hold 0/1 0/0
story fork owner-kill,hold,heir-exit,hold 0/1 0/0
story fork owner-close,hold,heir-close,hold,owner-free,hold 1/1 "$closed" "$freed"
story fork owner-close,heir-kill,hold,owner-kill,hold "$closed" 0/0
story socket owner-exit,hold,heir-close,hold 0/1 0/0
story socket owner-close,heir-exit,hold,owner-free,hold "$closed" "$freed"
unload_module

# Any process can end a persistent pin, but freeing the memory does not end it.
support=1
load_module persistent_api_support=1
story fork heir-dereg,hold 0/0
story fork owner-kill,hold,heir-exit,hold 1/1 0/0
story fork owner-free,hold,heir-dereg,hold 1/1 0/0
story socket owner-exit,hold,heir-close,hold 1/1 0/0
