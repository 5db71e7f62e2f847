# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# How GPUs and RDMA devices lie to each other.
switch=pci0000:00/0000:00:01.0/0000:01:00.0
card=mlx5_0

# move PATH NODE: the RDMA device lies there instead.
move() {
	new_machine
	gone /sys/class/infiniband
	nic $card "$1" "$2"
}

move $switch/0000:02:01.0/0000:08:00.0/0000:09:00.0/0000:0a:00.0 0
bridges 0 $switch/0000:02:01.0/0000:08:00.0 $switch/0000:02:01.0/0000:08:00.0/0000:09:00.0
look 0
only_these ''
says distance "0000:03:00.0 $card" none PXB
acs 0000:09:00.0 4
look 0
says PCI ACS warn "redirect is on at 0000:09:00.0"

move pci0000:00/0000:00:01.0/0000:05:00.0 0
look 0
says distance "0000:03:00.0 $card" none PXB

move pci0000:00/0000:00:03.0/0000:05:00.0 0
bridges 0 pci0000:00/0000:00:03.0
look 0
only_these ''
says distance "0000:03:00.0 $card" none PHB
says distance "0000:03:00.0 nearest" good $card NCCL_NET_GDR_LEVEL=PHB

move pci0000:40/0000:40:01.0/0000:41:00.0 0
bridges 0 pci0000:40/0000:40:01.0
look 0
only_these "0000:03:00.0 nearest"
says distance "0000:03:00.0 $card" none NODE
says distance "0000:03:00.0 nearest" warn $card NCCL_NET_GDR_LEVEL=SYS

move pci0000:80/0000:80:01.0/0000:81:00.0 1
bridges 1 pci0000:80/0000:80:01.0
look 0
only_these "0000:03:00.0 nearest"
says distance "0000:03:00.0 $card" none SYS
says distance "0000:03:00.0 nearest" warn $card "root complex"

move pci0000:80/0000:80:01.0/0000:81:00.0 -1
bridges -1 pci0000:80/0000:80:01.0
put /sys/devices/system/node/online 0-1
look 0
only_these "0000:03:00.0 nearest,NUMA node"
says distance "0000:03:00.0 $card" none SYS
says "RDMA device $card" "NUMA node" warn unknown "newer firmware"
# With one node it is no matter that nobody says which.
put /sys/devices/system/node/online 0
put /sys/bus/pci/devices/0000:03:00.0/numa_node -1
look 0
only_these "0000:03:00.0 nearest"
says distance "0000:03:00.0 $card" none NODE

# With one near by, others may be far away.
new_machine
bridges 1 pci0000:80/0000:80:01.0
nic mlx5_1 pci0000:80/0000:80:01.0/0000:81:00.0 1
look 0
only_these ''
says distance "0000:03:00.0 mlx5_0" none PIX
says distance "0000:03:00.0 mlx5_1" none SYS
says distance "0000:03:00.0 nearest" good mlx5_0
