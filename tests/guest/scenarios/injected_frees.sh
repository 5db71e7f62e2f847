# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory freed at every injection point of a registration, by every kind of task
. /lab/driver.sh
load_neighbours

# in_use CALLBACKS TEXT: frees memory while a device may use it. Checks that the driver then makes
# CALLBACKS callbacks.
in_use() {
	remember
	echo 1 >"$NVIDIA/inject_hold"
	echo after_get >"$NVIDIA/inject"
	hold env "LD_PRELOAD=$INJECTOR" gpuverbs transfer --from 0 --to 8M --length 300001 --seed 3 --hold
	equal "$2, in use: not freed yet" 0 "$(grown frees)"
	echo 0 >"$NVIDIA/inject_hold"
	wait_for "the end of injected frees" injections_over
	equal "$2, in use: freed" 1 "$(grown frees)"
	equal "$2, in use: callbacks" "$1" "$(grown callbacks_fired)"
	check "$2, in use: deregistered" ended_well
	wait_for "everything to be given back" driver_at_rest
}

# If inject_from has the word `process`, this process frees the memory.
LD_PRELOAD=$INJECTOR sleep infinity &
foreign=$!
for support in 0 1; do
	load_module "persistent_api_support=$support"
	# Persistent pins have no callback, so one kind of freeing task is enough.
	[ "$support" = 0 ] && first=EFAULT freers='kthread task close process' || first=ok freers=process
	# The module asks the driver about a pair with a page. The first registration of the pair
	# unpins this page before the registration's own memory is mapped.
	echo kthread >"$NVIDIA/inject_from"
	register_losing "persistent_api_support=$support, the driver is asked" before_put "$first"
	for from in $freers; do
		echo "$from" >"$NVIDIA/inject_from"
		for point in "${!endings[@]}"; do
			# On the machine plain, devices use physical addresses, and the double does
			# not see the end of a mapping of such addresses
			# (tests/doubles/driver/owndma.c).
			[ "$MACHINE" != plain ] || [[ $point != *_dma_unmap ]] || continue
			allowed=${endings[$point]}
			# For a persistent pin the driver looks for the memory twice. After that,
			# the pin keeps the memory.
			[ "$support" = 0 ] || [ "$point" = in_get_gap ] || allowed=ok
			register_losing "persistent_api_support=$support, by $from" "$point" "$allowed"
			# If the memory is gone before the driver can arm the callback, the driver
			# loses its page table.
			[ "$point" != in_get_gap ] ||
				equal "persistent_api_support=$support, by $from: tables that the driver lost" $((1 - support)) "$(grown tables_lost)"
		done
		in_use $((1 - support)) "persistent_api_support=$support, freed by $from"
		registers "persistent_api_support=$support, freed by $from: and then it works" ok
	done
	unload_module
done
kill "$foreign"
wait "$foreign" || true
