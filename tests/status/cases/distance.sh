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
says "GPU 0000:03:00.0" $card good "tree of switches (PXB)"
acs 0000:09:00.0 4
look 0
says "GPU 0000:03:00.0" "$card ACS" warn "redirect is on at 0000:09:00.0"

move pci0000:00/0000:00:01.0/0000:05:00.0 0
look 0
says "GPU 0000:03:00.0" $card good "same root port"

move pci0000:00/0000:00:03.0/0000:05:00.0 0
bridges 0 pci0000:00/0000:00:03.0
look 0
only_these ''
says "GPU 0000:03:00.0" $card good "same root complex" NCCL_NET_GDR_LEVEL=PHB

move pci0000:40/0000:40:01.0/0000:41:00.0 0
bridges 0 pci0000:40/0000:40:01.0
look 0
only_these $card
says "GPU 0000:03:00.0" $card warn "same NUMA node" NCCL_NET_GDR_LEVEL=SYS

move pci0000:80/0000:80:01.0/0000:81:00.0 1
bridges 1 pci0000:80/0000:80:01.0
look 0
only_these $card
says "GPU 0000:03:00.0" $card warn "across sockets, NUMA nodes 0 and 1 (SYS)" "root complex"

move pci0000:80/0000:80:01.0/0000:81:00.0 -1
bridges -1 pci0000:80/0000:80:01.0
look 0
says "GPU 0000:03:00.0" $card warn "does not say which sockets"

# With one near by, others may be far away.
new_machine
bridges 1 pci0000:80/0000:80:01.0
nic mlx5_1 pci0000:80/0000:80:01.0/0000:81:00.0 1
look 0
only_these ''
says "GPU 0000:03:00.0" mlx5_0 good "same switch"
says "GPU 0000:03:00.0" mlx5_1 none "across sockets"
