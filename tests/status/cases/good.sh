# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Everything is as it should be.
look 0
only_these ''
says module state good "loaded, version 2.0.0"
says module "on boot" good
says module ground none "kernel: the kernel's own Rust crates"
says module persistent_api_support none 1
says use regions none 0
says "RDMA core" "peer memory" good "in ib_core"
says "RDMA core" "client nv_mem" good persistent
says "RDMA core" "client nv_mem_revocable" good revocable
says "RDMA core" "client nv_mem_fixed" good persistent
says driver flavour good open
says driver nvidia_peermem good "a name only"
for program in "NCCL, up to 2.22" "NCCL, newer" "NCCL GIN, GDAKI" UCX UCC NVSHMEM libfabric gpu-operator; do
	says detection "$program" good yes
done
says security "Secure Boot" none off
says distance "0000:03:00.0 mlx5_0" none PIX
says distance "0000:03:00.0 nearest" good mlx5_0
says PCI ACS good off
says PCI "links of bridges" good "both ends can: 1"
says "GPU 0000:03:00.0" link good "32.0 GT/s x16"
says "GPU 0000:03:00.0" BAR1 good "128 GiB"
says "GPU 0000:03:00.0" "NUMA node" none 0
says "RDMA device mlx5_0" link good "32.0 GT/s x16"
says "RDMA device mlx5_0" MaxReadReq none 512
says "RDMA device mlx5_0" "relaxed ordering" none on
says "RDMA device mlx5_0" "port 1" good "ACTIVE, LinkUp, 400 Gb/sec (4X NDR), InfiniBand"
says "RDMA device mlx5_0" firmware none "28.39.1002, board MT_0000000838"
says access /dev/infiniband good "all users"
says "RDMA device mlx5_0" IOMMU good none
