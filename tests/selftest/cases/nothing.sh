# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# There is nothing to test: which, and what to do; all of it at once.
GPUS=0
export GPUS
looks 3 'nothing was tested: no GPU$' '  -> .*nvidia-smi' --
GPUS=1 HCAS=
export HCAS
looks 3 'nothing was tested: no RDMA device$' '  -> .*ib_uverbs' --
GPUS=0
looks 3 'no GPU$' 'no RDMA device$' --
unset HCAS
GPUS=1
looks 3 'no GPU 1$' '0 \(0000:1a:00.0\)' -- --gpu 1
looks 3 'no RDMA device rxe7$' 'mlx5_0' -- --device rxe7
export DOUBLE=cuInit
looks 3 'no GPU that CUDA can use: cuInit: CUDA_ERROR_UNKNOWN' 'reboot' --
DOUBLE=
mv "$scratch/lib/libcuda.so.1" "$scratch/lib/away"
looks 3 'no libcuda.so.1' 'libcuda1' --
mv "$scratch/lib/away" "$scratch/lib/libcuda.so.1"
# A port that is down, and a kind that cannot: passed over, and said.
hca mlx5_0 Ethernet "1: DOWN"
looks 3 'mlx5_0: not tested: no active port \(port 1 is DOWN\)' 'no RDMA device with an active port' --
hca mlx5_1 Ethernet
HCAS="mlx5_0 mlx5_1 irdma0"
export HCAS
hca irdma0 Ethernet
put /sys/class/infiniband/irdma0/node_type "4: RNIC"
looks 0 'mlx5_0: not tested' 'irdma0: not tested: its kind \(4: RNIC\)' 'mlx5_1/1: to GPU' 'passed, 1 pair$' --
