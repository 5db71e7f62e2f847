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
says "GPU 0000:03:00.0" mlx5_0 good "same switch (PIX)"
says "GPU 0000:03:00.0" "mlx5_0 ACS" good off
says "RDMA devices" "mlx5_0 IOMMU" good none
