# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# GPUs that the driver does not have, RDMA devices without hardware, or none.
gone /sys/bus/pci/devices/0000:03:00.0/driver
look 0
only_these driver
says "GPU 0000:03:00.0" driver bad none "modprobe nvidia"
mkdir -p "$root/sys/bus/pci/drivers/nouveau"
ln -s "$root/sys/bus/pci/drivers/nouveau" "$root/sys/bus/pci/devices/0000:03:00.0/driver"
look 0
says "GPU 0000:03:00.0" driver bad nouveau blacklist

new_machine
gone /sys/class/infiniband/mlx5_0
put /sys/class/infiniband/roce0/parent eth0
mkdir -p "$root/sys/class/net/eth0"
ln -s ../../../bus/pci/devices/0000:04:00.0 "$root/sys/class/net/eth0/device"
look 0
only_these ''
says "RDMA device roce0" place none "0000:04:00.0, software over eth0"
says distance "0000:03:00.0 roce0" none PIX
gone /sys/class/net/eth0
look 0
only_these place
says "RDMA device roce0" place bad "not a PCI device"

gone /sys/class/infiniband /sys/bus/pci/devices
look 0
only_these libfabric,number,number
says "RDMA devices" number bad 0 openibd
says GPUs number bad 0 "lspci -d 10de:"
