# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: memory freed at every injection point of a registration, by every kind of task
# All: all injection points by all tasks take a minute; errors and kill have some
. /lab/driver.sh
load_gpu
load_rdma

# How a registration may end that loses its memory at such a point: refused, because
# the memory is not there any more; or made, and then revoked or ended. Where
# both are possible it depends on who comes first.
declare -A endings=(
	[in_get_gap]='EFAULT'
	[before_get_returns]='EFAULT ok'
	[after_get]='EFAULT ok'
	[in_dma_map]='EFAULT'
	[after_dma_map]='EFAULT ok'
	[in_dma_unmap]='ok'
	[after_dma_unmap]='ok'
	[before_put]='ok'
	[after_put]='ok'
)
get_points='in_get_gap before_get_returns after_get'
put_points='before_put after_put'
map_points='in_dma_map after_dma_map in_dma_unmap after_dma_unmap'

# freed_at POINT ENDINGS TEXT
freed_at() {
	remember
	register_losing "$1"
	check "$3, $1: ended with ${result:-nothing}" grep -qw -- "$result" <<<"$2"
	equal "$3, $1: injected once" 1 "$(grown "injected_$1")"
	wait_for "everything to be given back" driver_at_rest
}

# freers: who frees. With persistent pins nobody is called back, whoever it is:
# two kinds will do.
freers() {
	if [ "$support" = 0 ]; then echo kthread task close process; else echo kthread process; fi
}

# in_use CALLBACKS TEXT: while the device may use it.
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

# Frees for other processes, if that is who frees.
LD_PRELOAD=$INJECTOR sleep infinity &
foreign=$!
for support in 0 1; do
	load_module "persistent_api_support=$support"
	points="$get_points $put_points"
	# The driver itself maps what is persistent; the rest takes a kernel with ftrace.
	if [ "$support" = 1 ] || [ "$(cat "$NVIDIA/own_dma")" = Y ]; then
		points+=" $map_points"
	else
		say "this kernel has no ftrace: nothing can be freed inside the client's own mapping"
	fi
	for from in $(freers); do
		echo "$from" >"$NVIDIA/inject_from"
		for name in $points; do
			allowed=${endings[$name]}
			[ "$support" = 0 ] || allowed=ok
			freed_at "$name" "$allowed" "persistent_api_support=$support, freed by $from"
		done
		in_use $((1 - support)) "persistent_api_support=$support, freed by $from"
		check "persistent_api_support=$support, freed by $from: and then it works" \
			gpuverbs register --offset 0 --length 1M
	done
	unload_module
done
kill "$foreign"
wait "$foreign" || true
