# shellcheck shell=sh disable=SC2030,SC2031
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The GPUs, the RDMA devices, and how they are connected: lists what sysfs says
# of each, for topology.awk to judge.

devices=/sys/bus/pci/devices

device_facts() {
	{
		gpus
		nics
	} | {
		seen=' '
		while IFS='|' read -r kind name pci what; do
			printf '%s|%s|%s|%s\n' "$kind" "$name" "$pci" "$what"
			[ -n "$pci" ] || continue
			path=$(readlink -f "$root$devices/$pci")
			path=pci${path##*/pci}
			text_of "$devices/$pci/numa_node" || text=-1
			printf 'path|%s|%s|%s|%s\n' "$pci" "$path" "$text" "$(iommu "$pci")"
			# Every bridge on the way, once.
			for bridge in $(dirname "$path" | tr / ' '); do
				case $seen$bridge in *" $bridge "*"$bridge" | *pci*) continue ;; esac
				seen="$seen$bridge "
				printf 'acs|%s|%s\n' "$bridge" "$(acs "$bridge")"
			done
		done
	} | awk -F '|' -f "$here/status.d/topology.awk"
}

# gpus: NVIDIA's display controllers, and whatever its driver drives.
gpus() {
	for device in "$root$devices"/*; do
		driver=$(readlink "$device/driver") && driver=${driver##*/}
		pci=${device##*/}
		text_of "$devices/$pci/vendor"
		vendor=$text
		text_of "$devices/$pci/class"
		case $driver:$vendor:$text in
		nvidia:* | *:0x10de:0x03*) printf 'gpu|%s|%s|%s\n' "$pci" "$pci" "$driver" ;;
		esac
	done
}

# nics: RDMA devices. One made of software has its network card's place.
nics() {
	for device in "$root"/sys/class/infiniband/*; do
		[ -e "$device" ] || continue
		base "$device"
		software=
		place=$device
		if [ ! -e "$device/device" ] && text_of "/sys/class/infiniband/$base/parent"; then
			software=$text
			place=$root/sys/class/net/$software
		fi
		printf 'nic|%s|%s|%s\n' "$base" "$(pci_of "$(readlink -f "$place/device")")" "$software"
	done
}

# pci_of PATH: the PCI device that the path leads to, or through.
pci_of() {
	printf '%s\n' "$1" | tr / '\n' |
		grep -xE '[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]' | tail -n 1
}

# iommu PCI: how the addresses are translated that the device uses.
iommu() {
	if text_of "$devices/$1/iommu_group/type"; then
		echo "$text"
	elif [ -e "$root$devices/$1/iommu_group" ]; then
		echo unknown
	else
		echo none
	fi
}

# acs PCI: the bridge's ACS control register, as a number; `none` without one;
# `unreadable` for all but root.
acs() {
	od -An -v -tu1 "$root$devices/$1/config" 2>/dev/null | awk '
		function word(at) { return byte[at] + 256 * byte[at + 1] }
		{ for (i = 1; i <= NF; i++) byte[n++] = $i }
		END {
			if (n <= 64) { print "unreadable"; exit }
			# The list of extended capabilities; ACS is number 13.
			for (at = 256; at >= 256 && at < n && tries++ < 960; at = int(word(at + 2) / 16))
				if (word(at) == 13) { print word(at + 6); exit }
			print "none"
		}'
}
