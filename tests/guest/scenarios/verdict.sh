# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: the driver is asked once which device may reach which GPU, and how, and is obeyed
. /lab/driver.sh
load_gpu
load_rdma
verdicts() { awk '{ print $NF }' /sys/module/nv_peer_mem/statistics/pairs; }
asked() { grown calls_nvidia_p2p_dma_map_pages; }
fresh() {
	[ ! -e /sys/module/nv_peer_mem ] || unload_module
	load_module "persistent_api_support=$support"
	remember
	mark_log
}

# in_probe CALL: which of its calls is the one of the probe: a persistent client has pinned
# before.
in_probe() {
	case $support-$1 in
	1-get_pages_persistent) echo 2 ;;
	*) echo 1 ;;
	esac
}

for support in 1 0; do
	text="persistent_api_support=$support"
	fresh
	equal "$text: nothing is known at first" '' "$(verdicts)"
	for length in 64K 300001 3M; do
		check "$text, $length: registered" gpuverbs register --offset 0 --length "$length"
	done
	equal "$text: the driver was asked once" 1 "$(asked)"
	equal "$text: and agrees" ours "$(verdicts)"

	# No answer is no verdict.
	fresh
	for name in get_pages_persistent dma_map_pages; do
		echo "$name EBUSY $(in_probe "$name")" >"$NVIDIA/fail"
		check "$text: $name fails while the driver is asked" register EBUSY
		echo clear >"$NVIDIA/fail"
		equal "$text: which is not remembered" '' "$(verdicts)"
	done

	fresh
	echo 1 >"$NVIDIA/topology_denied"
	check "$text: a pair that the driver refuses" register EOPNOTSUPP
	expect_log "$text: and the log says what to look at" 'nv_peer_mem: .*does not let this RDMA device .*topology'
	echo 0 >"$NVIDIA/topology_denied"
	check "$text: its options do not change while the module is there" register EOPNOTSUPP
	equal "$text: it was asked once" 1 "$(asked)"
	equal "$text: and refused" refused "$(verdicts)"
	fresh
	check "$text: the next load asks again" register ok

	# Addresses that only the driver knows. To the card they are nothing here, as the
	# core sees.
	echo 0 >"$NVIDIA/remap_peer_mmio"
	[ "$MACHINE" != plain ] || echo $((1 << 40)) >"$NVIDIA/bus_offset"
	fresh
	if [ "$support" = 1 ]; then
		check "$text: the driver's addresses are used" register EFAULT
		check "$text: as the core sees" grep -qE '^(unmapped|bad)_address 1:' "$CORE/violations"
		echo clear >"$CORE/violations"
	else
		check "$text: only the driver can map" register EOPNOTSUPP
		expect_log "$text: and the log says what to do" 'nv_peer_mem: .*only the NVIDIA driver itself.*persistent_api_support=1'
	fi
	equal "$text: this is remembered" driver "$(verdicts)"
	echo 1 >"$NVIDIA/remap_peer_mmio"
	echo 0 >"$NVIDIA/bus_offset"
done

# Where the driver cannot be asked with some memory it has no say of that, and is asked with other.
support=0
fresh
for errno in ENOTSUPP EIO; do
	echo "get_pages_persistent $errno 1 0" >"$NVIDIA/fail"
	check "no persistent pin to ask with, $errno: registered" register ok
	echo clear >"$NVIDIA/fail"
	equal "and nothing is known" '' "$(verdicts)"
done
echo 1 >"$NVIDIA/topology_denied"
check "other memory to ask with: refused" register EOPNOTSUPP
echo 0 >"$NVIDIA/topology_denied"
equal "and this is known" refused "$(verdicts)"

# Coherent memory is refused for a time, not for its topology.
support=1
fresh
coherent 1
echo 'dma_map_pages ENOTSUPP 1' >"$NVIDIA/fail"
check "coherent memory that the driver cannot map yet: EOPNOTSUPP" register EOPNOTSUPP
echo clear >"$NVIDIA/fail"
equal "and nothing is known" '' "$(verdicts)"
check "then it can" register ok
coherent 0
