# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whether this is a virtual machine or a container: what its files show of PCI is
# then not how the devices are connected.

# virtual_facts: leaves in $virtual what it is, if it is one.
virtual_facts() {
	virtual=
	if in_container; then
		virtual="a container ($container)"
	elif grep -qsm 1 '^flags.* hypervisor' "$root/proc/cpuinfo" || virtual_product; then
		text_of /sys/class/dmi/id/sys_vendor
		virtual="a virtual machine${text:+ ($text)}"
		fact machine virtual none "$virtual: it shows not how the devices are really connected, so distances are not judged"
		return
	fi
	[ -z "$virtual" ] ||
		fact machine virtual none "$virtual: the devices are not all its own, so distances are not judged; module and service belong to the machine around it"
}

# virtual_product: where processors have no such flag, the firmware may say it.
virtual_product() {
	text_of /sys/class/dmi/id/product_name || return 1
	case $text in
	*KVM* | *"Virtual Machine"* | *VMware* | *VirtualBox* | *QEMU* | *"Compute Engine"*) return 0 ;;
	esac
	return 1
}
