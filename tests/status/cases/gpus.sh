# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# GPUs that are somebody else's, of the wrong generation, divided, or with a small window.
device=/sys/bus/pci/devices/0000:03:00.0
section="GPU 0000:03:00.0"
drive() {
	gone $device/driver
	mkdir -p "$root/sys/bus/pci/drivers/$1"
	ln -s "$root/sys/bus/pci/drivers/$1" "$root$device/driver"
}
drive vfio-pci
look 0
only_these driver
says "$section" driver warn "vfio-pci: it is given to a virtual machine" driverctl
if grep '^distance|' "$scratch/facts"; then fail "it is not here"; else ok; fi
gpu pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:05:00.0 0
bridges 0 pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0
look 0
only_these ''
says "$section" driver none vfio-pci
says "GPU 0000:05:00.0" driver good nvidia

new_machine
drive nouveau
look 0
says "$section" driver bad nouveau "initramfs"

new_machine
gone $device/driver
put $device/device 0x1db6
look 0
says "$section" driver bad "Volta and older are not served by the open driver" "580 or older"
put $device/device 0x1e04
look 0
says "$section" driver bad none "modprobe nvidia"
put $device/device 0x2901
put /sys/module/nvidia/taint POE
put /sys/module/nv_peer_mem/statistics/ground free
look 0
says "$section" driver bad "Blackwell and newer are served by the open driver only" "open kernel modules"

new_machine
put /proc/driver/nvidia/gpus/0000:03:00.0/information "Model: 		 NVIDIA H100
Device Minor: 	 4"
look 0
if grep -F "$section|MIG|" "$scratch/facts"; then fail "it is in one piece"; else ok; fi
for instance in gi1 gi2 gi13; do put /proc/driver/nvidia/capabilities/gpu4/mig/$instance/access ''; done
put /proc/driver/nvidia/capabilities/gpu1/mig/gi1/access ''
look 0
only_these ''
says "$section" MIG none "GPU instances: 3"

bar1 0000:03:00.0 256 32768
look 0
only_these BAR1
says "$section" BAR1 warn "256 MiB of 32 GiB" "resizable BAR"
bar1 0000:03:00.0 256
look 0
only_these ''
says "$section" BAR1 none "256 MiB, not resizable"
