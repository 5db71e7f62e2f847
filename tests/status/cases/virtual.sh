# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Machines that are made of software: nothing is judged of how devices lie.
far() {
	gone /sys/class/infiniband
	bridges 1 pci0000:80/0000:80:01.0
	nic mlx5_0 pci0000:80/0000:80:01.0/0000:81:00.0 1
}
# is WORDS: virtual, and the far device is no reason to warn.
is() {
	far
	look 0
	only_these ''
	says machine virtual none "$1" "${2-}"
	says distance "0000:03:00.0 mlx5_0" none SYS
	says distance "0000:03:00.0 nearest" none mlx5_0
	new_machine
}
put /proc/cpuinfo "flags		: fpu vme hypervisor lahf_lm"
put /sys/class/dmi/id/sys_vendor QEMU
is "a virtual machine (QEMU)"
put /sys/class/dmi/id/product_name "Virtual Machine"
is "a virtual machine"
put /run/systemd/container lxc
is "a container (lxc)"
put /.dockerenv ''
is "a container (docker)"
put /run/.containerenv ''
is "a container (podman)"
put /proc/cpuinfo "flags		: fpu vme lahf_lm"
put /sys/class/dmi/id/product_name "PowerEdge XE9680"
far
look 0
only_these "0000:03:00.0 nearest"
if grep '^machine|virtual|' "$scratch/facts"; then fail "a real machine"; else ok; fi
