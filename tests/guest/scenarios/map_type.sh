# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the driver is asked once which device may reach which GPU, and how, and is obeyed
. /lab/driver.sh
load_neighbours

fresh() {
	[ ! -e /sys/module/nv_peer_mem ] || unload_module
	load_module "persistent_api_support=$support"
	remember
	mark_log
}

# known TEXT VERDICT: checks which map type the module knows for the pair. asked_once: checks that
# the driver was asked exactly once since the module was loaded.
known() { equal "$text: $1" "$2" "$(map_types)"; }
asked_once() { equal "$text: the driver was asked once" 1 "$(grown calls_nvidia_p2p_dma_map_pages)"; }

for support in 1 0; do
	text="persistent_api_support=$support"
	fresh
	known "nothing is known at first" ''
	for length in 64K 300001 3M; do
		check "$text, $length: registered" gpuverbs register --offset 0 --length "$length"
	done
	asked_once
	known "and agrees" ours

	# If the module cannot ask the driver, it must not remember a map type. A persistent client
	# pins its memory before the module asks, so the second call of get_pages_persistent is made
	# to fail.
	fresh
	for call in "get_pages_persistent EBUSY $((1 + support))" "dma_map_pages EBUSY 1"; do
		with fail "$call" registers "$text: $call while the driver is asked" EBUSY
		known "which is not remembered" ''
	done

	fresh
	with topology_denied 1 registers "$text: a pair that the driver refuses" EOPNOTSUPP
	expect_log "$text: and the log says what to look at" 'nv_peer_mem: .*does not let this RDMA device .*topology'
	registers "$text: its options do not change while the module is there" EOPNOTSUPP
	asked_once
	known "and refused" refused
	fresh
	registers "$text: the next load asks again" ok

	# Only the driver knows the bus addresses. The network card of this guest cannot use such
	# addresses, so the core's check reports them.
	echo 0 >"$NVIDIA/remap_peer_mmio"
	[ "$MACHINE" != plain ] || echo $((1 << 40)) >"$NVIDIA/bus_offset"
	fresh
	if [ "$support" = 1 ]; then
		registers "$text: the driver's addresses are used" EFAULT
		check "$text: as the core sees" grep -qE '^(unmapped|bad)_address 1:' "$CORE/violations"
		echo clear >"$CORE/violations"
	else
		registers "$text: only the driver can map" EOPNOTSUPP
		expect_log "$text: and the log says what to do" 'nv_peer_mem: .*only the NVIDIA driver can map .*persistent_api_support=1'
	fi
	known "this is remembered" driver
	echo 1 >"$NVIDIA/remap_peer_mmio"
	echo 0 >"$NVIDIA/bus_offset"
done

# If the driver cannot pin the memory persistently, the module does not learn the map type. The next
# registration must then ask the driver again.
fresh
for errno in ENOTSUPP EIO; do
	with fail "get_pages_persistent $errno 1 0" registers "no persistent pin to ask with, $errno" ok
	known "nothing is known then" ''
done
with topology_denied 1 registers "other memory to ask with" EOPNOTSUPP
known "and this is known" refused

# The driver refuses coherent memory only for a time, and not because of the topology, so the module
# must ask again.
support=1
fresh
coherent 1
with fail 'dma_map_pages ENOTSUPP 1' registers "coherent memory that the driver cannot map yet" EOPNOTSUPP
known "nothing is known of it" ''
registers "then it can" ok
coherent 0
