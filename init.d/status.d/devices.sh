# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The GPUs, the RDMA devices and the bridges above them: lists what sysfs says of
# each, for three awk programs to judge. A machine may have hundreds of PCI
# devices, so no program is started for an attribute: what the shell can read, it
# reads itself, and `cd -P` follows a link.

devices=/sys/bus/pci/devices

device_facts() {
	virtual_facts
	kernel_facts
	text_of "/sys/module/$module/parameters/persistent_api_support" && persistent=$text || persistent=1
	# What turns the translation off has a name of its own there.
	case $(uname -m) in aarch64) untranslated=iommu.passthrough=1 ;; *) untranslated=iommu=pt ;; esac
	text_of /sys/devices/system/node/online || text=0
	{
		gpus
		nics
	} | listed | awk -F '|' -v virtual="$virtual" -v flavour="$flavour" -v nodes="$text" \
		-v persistent="$persistent" -v untranslated="$untranslated" \
		-f "$here/status.d/topology.awk" -f "$here/status.d/link.awk" -f "$here/status.d/devices.awk"
	port_facts
	access_facts
}

# listed: behind each device its path, its link, and those of every bridge on the
# way, once.
listed() {
	seen=' '
	while IFS='|' read -r kind name pci what; do
		printf '%s|%s|%s|%s\n' "$kind" "$name" "$pci" "$what"
		[ -n "$pci" ] || continue
		cd -P "$root$devices/$pci" 2>/dev/null || continue
		path=pci${PWD##*/pci}
		text_of "$devices/$pci/numa_node" || text=-1
		printf 'path|%s|%s|%s|%s\n' "$pci" "$path" "$text" "$(iommu "$pci")"
		link_of "$pci"
		[ "$kind" = gpu ] || config_of "$pci" 256
		depth=0
		while [ "${path#*/*/}" != "$path" ]; do
			path=${path#*/}
			bridge=${path%%/*}
			depth=$((depth + 1))
			case $seen in *" $bridge "*) continue ;; esac
			seen="$seen$bridge "
			link_of "$bridge"
			# What lies under one root port does not pass it.
			[ "$depth" = 1 ] || config_of "$bridge" 4096
		done
	done
}

# link_of PCI: speed and width now, then what the device can.
link_of() {
	line="link|$1"
	for attribute in current_link_speed current_link_width max_link_speed max_link_width; do
		text_of "$devices/$1/$attribute"
		line="$line|${text% PCIe}"
	done
	printf '%s\n' "$line"
}

# config_of PCI BYTES: the configuration space, as numbers of four bytes. All but
# root get 64 bytes of it.
config_of() {
	printf 'config|%s\n' "$1"
	od -An -v -tu4 -N "$2" "$root$devices/$1/config" 2>/dev/null
}

# gpus: NVIDIA's display controllers, and whatever its driver drives. Behind each
# its driver, its number among NVIDIA's products, the size of BAR1, the largest
# that it could have (MiB, 0 if it cannot change), its MIG instances, and "coherent".
gpus() {
	for device in "$root$devices"/*; do
		driver=
		cd -P "$device/driver" 2>/dev/null && driver=${PWD##*/}
		pci=${device##*/}
		text_of "$devices/$pci/vendor"
		vendor=$text
		text_of "$devices/$pci/class"
		case $driver:$vendor:$text in
		nvidia:* | *:0x10de:0x03*)
			text_of "$devices/$pci/device" || text=0
			product=$text
			printf 'gpu|%s|%s|%s|%s|%s|%s|%s|%s\n' "$pci" "$pci" "$driver" $((product)) \
				"$(bar1 "$pci")" "$(largest_bar1 "$pci")" "$(instances "$pci")" "$(coherent "$pci" "$product")"
			;;
		esac
	done
}

# bar1 PCI: the size of the GPU's window for others, in MiB.
bar1() {
	{
		read -r _ && read -r first last _ && [ $((last)) -gt 0 ] && echo $(((last - first + 1) / 1048576))
	} 2>/dev/null <"$root$devices/$1/resource"
}

# largest_bar1 PCI: of the sizes that it can have, one bit each from 1 MiB on.
largest_bar1() {
	text_of "$devices/$1/resource1_resize" || text=0
	sizes=$((0x$text)) size=0
	while [ "$sizes" -gt 0 ]; do
		size=$((size ? size * 2 : 1)) sizes=$((sizes / 2))
	done
	echo "$size"
}

# instances PCI: how many GPU instances MIG has divided it into.
instances() {
	while IFS=: read -r name minor; do
		[ "$name" = "Device Minor" ] || continue
		set -- "$root/proc/driver/nvidia/capabilities/gpu${minor##*[!0-9]}/mig"/gi[0-9]*
		[ ! -e "$1" ] || echo $#
	done 2>/dev/null <"$root/proc/driver/nvidia/gpus/$1/information"
}

# coherent PCI PRODUCT: whether the processor has its memory as it has its own, and no
# BAR is needed. The driver says so; and so it is with GH200, GB200 and GB300.
coherent() {
	case $2 in
	0x2342 | 0x2345 | 0x2348 | 0x2941 | 0x31c2) echo coherent ;;
	*) [ ! -e "$root/proc/driver/nvidia/gpus/$1/numa_status" ] || echo coherent ;;
	esac
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
		pci=
		cd -P "$place/device" 2>/dev/null && pci_of "$PWD"
		printf 'nic|%s|%s|%s\n' "$base" "$pci" "$software"
	done
}

# pci_of PATH: leaves in $pci the PCI device that the path leads to, or through.
pci_of() {
	rest=$1
	while [ -n "$rest" ]; do
		pci=${rest##*/}
		case $pci in
		*[0-9a-f]:[0-9a-f][0-9a-f]:[0-9a-f][0-9a-f].[0-7]) return ;;
		esac
		rest=${rest%/*}
	done
	pci=
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
