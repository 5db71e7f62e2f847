# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# What the RDMA device asks for, by its PCI Express control.
section="RDMA device mlx5_0"
settings 0000:04:00.0 '\040\000'
look 0
only_these MaxReadReq
says "$section" MaxReadReq warn 128 "setpci -s 0000:04:00.0 CAP_EXP+8.w=5000:7000"
says "$section" "relaxed ordering" none "off: writes wait"
settings 0000:04:00.0 '\020\120'
look 0
only_these ''
says "$section" MaxReadReq none 4096
says "$section" "relaxed ordering" none on
head -c 64 /dev/zero >"$root/sys/bus/pci/devices/0000:04:00.0/config"
look 0
only_these ''
says report "not read" none "PCI settings of RDMA devices" "Only root"
