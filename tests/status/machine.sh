# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A machine as its files show it, below $root: what `status` reads. new_machine
# makes a good one, the other functions change it.

KERNEL=7.3.4-test

# put FILE TEXT: a file below $root.
put() {
	mkdir -p "$root${1%/*}"
	printf '%s\n' "$2" >"$root$1"
}

# gone PATH...: below $root.
gone() { for path; do rm -rf "${root:?}$path"; done; }

# module NAME FIELD=VALUE...: installed, as modinfo tells it.
module() {
	local name=$1
	shift
	mkdir -p "$root/modinfo"
	printf '%s\n' "$@" >"$root/modinfo/$name"
}

# pci PATH VENDOR CLASS NODE: a PCI device at the end of a path of bridges.
pci() {
	local name=${1##*/}
	put "/sys/devices/$1/vendor" "$2"
	put "/sys/devices/$1/class" "$3"
	put "/sys/devices/$1/numa_node" "$4"
	link "$1" 32.0 16
	head -c 256 /dev/zero >"$root/sys/devices/$1/config"
	mkdir -p "$root/sys/bus/pci/devices"
	ln -sfn "../../../devices/$1" "$root/sys/bus/pci/devices/$name"
}

# link PATH SPEED WIDTH [MAX_SPEED MAX_WIDTH]: the PCIe link, now and at best.
link() {
	put "/sys/devices/$1/current_link_speed" "$2 GT/s PCIe"
	put "/sys/devices/$1/current_link_width" "$3"
	put "/sys/devices/$1/max_link_speed" "${4-$2} GT/s PCIe"
	put "/sys/devices/$1/max_link_width" "${5-$3}"
}

# bridges NODE PATH...: each with an ACS register behind another capability, off.
bridges() {
	local node=$1 path
	shift
	for path; do
		pci "$path" 0x8086 0x060400 "$node"
		acs "${path##*/}" 0
	done
}

# acs PCI CONTROL: the register's value; capability 1 comes first in the list.
acs() {
	{
		head -c 256 /dev/zero
		printf '\001\000\001\024' # at 0x100, the next at 0x140
		head -c 60 /dev/zero
		printf '\015\000\001\000\137\000'
		# shellcheck disable=SC2059 # the number is the format
		printf "\\$(printf %03o "$2")\\000"
		head -c 3768 /dev/zero
	} >"$root/sys/bus/pci/devices/$1/config"
}

# gpu PATH NODE
gpu() {
	pci "$1" 0x10de 0x030200 "$2"
	mkdir -p "$root/sys/bus/pci/drivers/nvidia"
	ln -sfn "$root/sys/bus/pci/drivers/nvidia" "$root/sys/devices/$1/driver"
	put "/sys/devices/$1/device" 0x2330
	bar1 "${1##*/}" 131072 131072
}

# bar1 PCI MIB [LARGEST]: its size, and the sizes up to the largest, if it has any.
bar1() {
	local device=/sys/bus/pci/devices/$1
	put "$device/resource" "$(printf '0x%016x 0x%016x 0x0\n' $((0xd0000000)) $((0xd0ffffff)) \
		$((0x380000000000)) $((0x380000000000 + ($2 << 20) - 1)))"
	gone "$device/resource1_resize"
	[ -z "${3-}" ] || put "$device/resource1_resize" "$(printf '%016x' $(($3 * 2 - 64)))"
}

# settings PCI CONTROL: the two bytes of its PCI Express control, in octal, behind
# another capability.
settings() {
	{
		head -c 52 /dev/zero
		printf '\100'
		head -c 11 /dev/zero
		printf '\001\120\000\000' # at 0x40, the next at 0x50
		head -c 12 /dev/zero
		printf '\020\000\002\000\000\000\000\000'
		# shellcheck disable=SC2059 # the number is the format
		printf "$2"
		head -c 166 /dev/zero
	} >"$root/sys/bus/pci/devices/$1/config"
}

# port NIC NUMBER STATE PHYSICAL LAYER
port() {
	local place=/sys/class/infiniband/$1/ports/$2
	put "$place/state" "$3"
	put "$place/phys_state" "$4"
	put "$place/rate" "400 Gb/sec (4X NDR)"
	put "$place/link_layer" "$5"
}

# nic NAME PATH NODE
nic() {
	pci "$2" 0x15b3 0x020700 "$3"
	mkdir -p "$root/sys/class/infiniband/$1"
	ln -sfn "../../../bus/pci/devices/${2##*/}" "$root/sys/class/infiniband/$1/device"
	settings "${2##*/}" '\060\051'
	port "$1" 1 "4: ACTIVE" "5: LinkUp" InfiniBand
	put "/sys/class/infiniband/$1/fw_ver" 28.39.1002
	put "/sys/class/infiniband/$1/board_id" MT_0000000838
	put "/dev/infiniband/uverbs${1##*_}" ''
	put /dev/infiniband/rdma_cm ''
	chmod 666 "$root"/dev/infiniband/*
}

# iommu PCI TYPE
iommu() {
	put "/sys/kernel/iommu_groups/7/type" "$2"
	ln -sfn "$root/sys/kernel/iommu_groups/7" "$(readlink -f "$root/sys/bus/pci/devices/$1")/iommu_group"
}

# loaded_module: nv_peer_mem as it shows itself.
loaded_module() {
	local figure
	put /sys/module/nv_peer_mem/version 2.0.0
	put /sys/module/nv_peer_mem/parameters/persistent_api_support 1
	put /sys/module/nv_peer_mem/parameters/peerdirect_support 0
	put /sys/module/nv_peer_mem/statistics/ground kernel
	put /sys/module/nv_peer_mem/statistics/core_api "MLNX_OFED 5.4 and later"
	put /sys/module/nv_peer_mem/statistics/clients $'nv_mem persistent\nnv_mem_revocable revocable\nnv_mem_fixed persistent'
	for figure in regions bytes registrations revocations failed_no_memory \
		failed_not_supported failed_freed failed_driver; do
		put "/sys/module/nv_peer_mem/statistics/$figure" 0
	done
	put /sys/kernel/mm/memory_peers/nv_mem/version 2.0.0
	put /sys/kernel/mm/memory_peers/nv_mem_revocable/version 2.0.0
	put /sys/kernel/mm/memory_peers/nv_mem_fixed/version 2.0.0
}

# new_machine: everything is as it should be; one GPU and one RDMA device under
# one switch, and the marker that all programs find.
new_machine() {
	rm -rf "${root:?}"
	loaded_module
	module nv_peer_mem version=2.0.0 ground=kernel signer="DKMS module signing key"
	module nvidia version=590.1 license="Dual MIT/GPL"
	put /sys/module/nvidia/version 590.1
	put /sys/module/nvidia/taint OE
	put /sys/module/nv_peer_mem/holders/nvidia_peermem/refcnt 0
	put /sys/module/nvidia_peermem/version 2.0.0
	put /proc/modules "nvidia_peermem 16384 0 - Live 0x0"
	put /proc/kallsyms "0000000000000000 T ib_register_peer_memory_client	[ib_core]"
	put /sys/module/ib_core/refcnt 3
	put /etc/infiniband/nv_peer_mem.conf "ONBOOT=yes"
	put /etc/systemd/system/multi-user.target.wants/nv_peer_mem.service "[Unit]"
	put /sys/kernel/security/lockdown "[none] integrity confidentiality"
	put /sys/module/module/parameters/sig_enforce N
	secure_boot 0
	local switch=pci0000:00/0000:00:01.0/0000:01:00.0
	bridges 0 pci0000:00/0000:00:01.0 "$switch" "$switch/0000:02:00.0" "$switch/0000:02:01.0"
	gpu "$switch/0000:02:00.0/0000:03:00.0" 0
	nic mlx5_0 "$switch/0000:02:01.0/0000:04:00.0" 0
}

# secure_boot 0|1: four bytes of attributes, then the value.
secure_boot() {
	local variables=/sys/firmware/efi/efivars
	mkdir -p "$root$variables"
	# shellcheck disable=SC2059 # the number is the format
	printf "\\006\\000\\000\\000\\00$1" >"$root$variables/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
}

# many_devices: eight GPUs, each below a switch of its own with an RDMA device;
# four more devices without a switch. Half of all belong to each node.
many_devices() {
	gone /sys/devices /sys/bus/pci/devices /sys/class/infiniband /dev/infiniband
	put /sys/devices/system/node/online 0-1
	local i node bus
	for i in 1 2 3 4 5 6 7 8; do
		node=$((i > 4)) bus=pci0000:${i}0/0000:${i}0:01.0
		bridges $node "$bus" "$bus/0000:${i}1:00.0" "$bus/0000:${i}1:00.0/0000:${i}2:00.0" "$bus/0000:${i}1:00.0/0000:${i}2:01.0"
		gpu "$bus/0000:${i}1:00.0/0000:${i}2:00.0/0000:${i}3:00.0" $node
		nic "mlx5_$((i + 1))" "$bus/0000:${i}1:00.0/0000:${i}2:01.0/0000:${i}4:00.0" $node
	done
	for i in 0 1 10 11; do
		node=$((i > 4)) bus=pci0000:a$((i % 10 + 4 * node))/0000:a$((i % 10 + 4 * node)):01.0
		bridges $node "$bus"
		nic "mlx5_$i" "$bus/0000:b$((i % 10 + 4 * node)):00.0" $node
	done
}

# grace PRODUCT: a processor of arm64 with a GPU behind NVLink-C2C, whose BAR is no window
# to its memory, and an RDMA device at another of its root complexes.
grace() {
	gone /sys/devices /sys/bus/pci/devices /sys/class/infiniband /dev/infiniband
	put /processor aarch64
	put /sys/devices/system/node/online 0-8
	bridges 0 pci0009:00/0009:00:00.0 pci0000:00/0000:00:00.0
	gpu pci0009:00/0009:00:00.0/0009:01:00.0 0
	put /sys/devices/pci0009:00/0009:00:00.0/0009:01:00.0/device "$1"
	bar1 0009:01:00.0 64
	nic mlx5_0 pci0000:00/0000:00:00.0/0000:01:00.0 0
}
