# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# GPUs of which the processor has the memory: all data goes through it anyway, and not
# through BAR1.
section="GPU 0009:01:00.0"
for product in 0x2342 0x2345 0x2348 0x2941 0x31c2; do
	new_machine
	grace $product
	look 0
	only_these ''
	says "$section" memory good "coherent"
	says distance "0009:01:00.0 mlx5_0" none NODE
	says distance "0009:01:00.0 nearest" good mlx5_0 NCCL_NET_GDR_C2C=1
	if grep -F "$section|BAR1|" "$scratch/facts"; then fail "no memory is behind it"; else ok; fi
done

# One that only the driver knows.
new_machine
grace 0x2330
look 0
only_these "0009:01:00.0 nearest"
put /proc/driver/nvidia/gpus/0009:01:00.0/numa_status "Node: 1"
look 0
only_these ''
says "$section" memory good "coherent"

# What is RAM the driver maps, and it cannot take that back.
put /sys/module/nv_peer_mem/parameters/persistent_api_support 0
look 0
only_these memory
says "$section" memory bad "nothing that can be revoked (persistent_api_support=0)" "persistent_api_support=1"

# The SMMU, which has a word of its own.
new_machine
grace 0x2342
iommu 0000:01:00.0 DMA-FQ
look 0
only_these IOMMU
says "RDMA device mlx5_0" IOMMU warn "DMA-FQ: addresses are translated, which takes time" iommu.passthrough=1

# Two of these processors, and one RDMA device.
new_machine
grace 0x2342
gpu pci0019:00/0019:00:00.0/0019:01:00.0 1
bridges 1 pci0019:00/0019:00:00.0
put /sys/devices/pci0019:00/0019:00:00.0/0019:01:00.0/device 0x2342
look 0
only_these "0019:01:00.0 nearest"
says distance "0019:01:00.0 nearest" warn mlx5_0 "a slot of this GPU's processor"

# The proprietary driver does not serve them.
new_machine
grace 0x2342
gone /sys/devices/pci0009:00/0009:00:00.0/0009:01:00.0/driver
put /sys/module/nvidia/taint POE
put /sys/module/nv_peer_mem/statistics/ground free
look 0
only_these driver
says "$section" driver bad "Grace Hopper is served by the open driver only" "open kernel modules"
