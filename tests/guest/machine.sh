# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# That the machine is what it is called. Asked before and after a scenario: a
# checker that turned itself off saw nothing, and its silence proves nothing.

# check_machine: counts one check for each thing that $MACHINE stands for.
check_machine() {
	case $MACHINE in
	iommu)
		equal "an IOMMU is at work" dmar0 "$(ls /sys/class/iommu)"
		check "it translates for the network card" grep -qxE 'DMA|DMA-FQ' "$(network_card)/iommu_group/type"
		;;
	smmu)
		check "an SMMU is at work" grep -q '^smmu3\.' <(ls /sys/class/iommu)
		check "it translates for the network card" grep -qxE 'DMA|DMA-FQ' "$(network_card)/iommu_group/type"
		;;
	debug)
		equal "lockdep is on" 1 "$(awk '$1 == "debug_locks:" { print $2 }' /proc/lockdep_stats)"
		equal "DMA-API debug is on" N "$(cat /sys/kernel/debug/dma-api/disabled)"
		check "KASAN is on" grep -q ' kasan_report$' /proc/kallsyms
		# It refuses every word once it has turned itself off.
		check "kmemleak is on" eval 'echo scan=off >/sys/kernel/debug/kmemleak'
		;;
	esac
}

# network_card: the directory in sysfs of the first Ethernet device on PCI.
network_card() {
	local device
	for device in /sys/bus/pci/devices/*; do
		[ "$(cat "$device/class")" != 0x020000 ] || break
	done
	printf '%s\n' "$device"
}
