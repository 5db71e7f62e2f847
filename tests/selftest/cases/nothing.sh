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
# No library, to the loader: another one may be where it looks next.
mv "$scratch/lib/libcuda.so.1" "$scratch/lib/away"
: >"$scratch/lib/libcuda.so.1"
looks 3 'no libcuda.so.1' 'libcuda1' --
mv "$scratch/lib/away" "$scratch/lib/libcuda.so.1"
# No Python that could run it.
mkdir -p "$scratch/none"
for tool in dirname sh; do ln -sfn "$(command -v "$tool")" "$scratch/none/$tool"; done
(PATH=$scratch/none "$scratch/service/selftest" >"$scratch/said" 2>&1) && rc=0 || rc=$?
if [ "$rc" = 3 ] || [ -e /usr/libexec/platform-python ]; then ok; else fail "without Python: exit code $rc"; fi
if grep -q 'Install the package python3' "$scratch/said" || [ -e /usr/libexec/platform-python ]; then ok; else fail "Python is not named"; fi
# A port that is down, and a kind that cannot: passed over, and said.
hca mlx5_0 Ethernet "1: DOWN"
looks 3 'mlx5_0: not tested: no active port \(port 1 is DOWN\)' 'no RDMA device with an active port' --
hca mlx5_1 Ethernet
HCAS="mlx5_0 mlx5_1 irdma0"
export HCAS
hca irdma0 Ethernet
put /sys/class/infiniband/irdma0/node_type "4: RNIC"
looks 0 'mlx5_0: not tested' 'irdma0: not tested: its kind \(4: RNIC\)' 'mlx5_1/1: to GPU' 'passed, 1 pair$' --
