# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Measurements, each reported to the host as a line "metrics {JSON}" (tests/lab/bench.sh).
. /lab/bench/held.sh

# What is compared, by its name for modprobe.
MODULES='nv_peer_mem nvidia-peermem'

# How it lies on the bus; of these the ends.
LAYOUTS='contiguous holes2m holes64k'
ENDS='contiguous holes64k'

# What is registered, and the rounds of which each value is the minimum.
SIZES=$(word sizes 64K,1M,16M,256M,4G,64G | tr , ' ')
rounds() {
	case $1 in
	64K | 1M) echo 21 ;;
	16M) echo 11 ;;
	256M) echo 5 ;;
	4G) echo 3 ;;
	*) echo 1 ;;
	esac
}

# prepare_bench: the doubles as light as they can be: what they look at would
# count as the cost of the core and of the driver.
prepare_bench() {
	load_gpu own_dma=0
	load_rdma
	echo 0 >"$NVIDIA/verify"
	echo 0 >"$NVIDIA/quarantine_max"
	# Room for anything: what does not fit is another test's.
	echo $((1 << 40)) >"$NVIDIA/bar1_bytes"
	echo light 1 >"$CORE/switch"
	prepare_held
}

# load_measured MODULE MODE: with the client of that mode first in line for what
# is registered then, in the way of --way. Versions of nvidia-peermem without the
# parameter say so and ignore it: their clients are in the order of the revocable.
load_measured() {
	module=$1 mode=$2
	load_for_mode modprobe "$module"
}

# load_ground GROUND MODE: nv_peer_mem on that ground.
load_ground() {
	module=nv_peer_mem-$1 mode=$2
	load_for_mode insmod "/lib/nv_peer_mem/ground-$1/nv_peer_mem.ko"
	equal "the ground that is measured" "$1" "$(cat /sys/module/nv_peer_mem/statistics/ground)"
}

# load_for_mode COMMAND...: what loads the module.
load_for_mode() {
	case $mode in
	persistent)
		"$@"
		way=fixed
		;;
	revocable)
		"$@" persistent_api_support=0
		way=revocable
		;;
	esac
	# The first registration has the driver asked: measure_module has what that costs.
	gpuverbs measure --way "$way" --length 64K >/dev/null || fail "measuring $module, $mode: nothing can be registered"
}

# metrics MEMBERS: one line for the host, MEMBERS of a JSON object in it.
metrics() {
	report "# metrics: {\"machine\":\"$(word name stock)\",\"module\":\"$module\",\"mode\":\"$mode\",$1}"
}

bytes() { numfmt --from=iec "$1"; }

# measured MEMBERS OPTION...: MEMBERS and what was measured.
measured() {
	local members=$1 result
	shift
	result=$(gpuverbs measure --way "$way" "$@") || {
		fail "measuring $module, $mode: $members"
		return
	}
	metrics "$members,$result"
}

# measured_twice MEMBERS OPTION...: with the simulated driver's own costs, and with
# those that are published of real ones.
measured_twice() {
	local members=$1 costs
	shift
	for costs in 0 1; do
		echo "$costs" >"$NVIDIA/costs"
		measured "$members,\"published\":$costs" "$@"
	done
	echo 0 >"$NVIDIA/costs"
}

# measure_costs SIZE: registration and deregistration.
measure_costs() {
	measured_twice "$(costs_of "$1")" --length "$1" --times "$(rounds "$1")"
}

# measure_simulated SIZE: the same, with the simulated driver's own costs alone.
measure_simulated() {
	measured "$(costs_of "$1"),\"published\":0" --length "$1" --times "$(rounds "$1")"
}

costs_of() {
	printf '"kind":"costs","layout":"%s","size":%s' "$layout" "$(bytes "$1")"
}

# measure_freed SIZE: what freeing memory takes that is registered.
measure_freed() {
	measured "\"kind\":\"freed\",\"layout\":\"$layout\",\"size\":$(bytes "$1")" \
		--free --length "$1" --times "$(rounds "$1")"
}

# measure_held SIZE: bytes of kernel memory that the module holds for a registration.
measure_held() {
	metrics "\"kind\":\"held\",\"layout\":\"$layout\",\"size\":$(bytes "$1"),\"bytes\":$(held "$1")"
}

# measure_ground GROUND: all that is measured of nv_peer_mem on that ground, which has
# the guest for itself. For where the kernel finds memory for the driver depends on
# all that was before, and that can make more of a difference than the bounds allow.
measure_ground() {
	local size
	for mode in persistent revocable; do
		load_ground "$1" "$mode"
		for layout in $ENDS; do
			echo "$layout" >"$NVIDIA/layout"
			for size in $SIZES; do
				[ "$(bytes "$size")" -le $((4 << 30)) ] || continue
				measure_simulated "$size"
					measure_freed "$size"
			done
		done
		rmmod nv_peer_mem
	done
}

# measure_threads N: registrations of 1 MiB by so many threads.
measure_threads() {
	measured_twice "\"kind\":\"threads\"" --length 1M --cycles 1500 --threads "$1"
}

# measure_module MODULE: the module's file, the memory that its code and data take,
# how long the kernel takes to load it, and what the first registration costs, in which
# ours asks the driver for its verdict on GPU and device. Of either the file without debug
# information, which the one has and the other has not.
measure_module() {
	local module=$1 mode=persistent file name first
	file=/tmp/$module.ko
	name=${module//-/_}
	strip --strip-debug -o "$file" "$(modinfo -n "$module")"
	trace_loading insmod "$file"
	first=$(gpuverbs measure --way fixed --length 64K | sed -n 's/.*"register_total":\([0-9]*\).*/\1/p')
	metrics "\"kind\":\"module\",\"file\":$(stat -c %s "$file"),\"core\":$(cat "/sys/module/$name/coresize"),\"load\":$loading,\"first\":${first:-null}"
	rmmod "$module"
}
