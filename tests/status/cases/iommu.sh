# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# An IOMMU that translates what the RDMA device reads.
for type in DMA DMA-FQ; do
	iommu 0000:04:00.0 $type
	look 0
	only_these IOMMU
	says "RDMA device mlx5_0" IOMMU warn "$type: addresses are translated" iommu=pt
done
iommu 0000:04:00.0 identity
look 0
only_these ''
says "RDMA device mlx5_0" IOMMU good identity
