# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: NIXL, peercache and pyverbs, unchanged, between the GPU memory of two processes; and Mooncake, of which one process is killed
. /lab/cuda.sh
. /lab/wheels.sh
load_gpu
load_rdma
use_seed
ip link set lo up

# With this UCX_TLS, UCX cannot copy through host memory. NVIDIA's libcudart, with which UCX looks
# for allocations, does not run here, so UCX asks for the kind of each address.
export UCX_TLS=rc,cuda UCX_MEMTYPE_CACHE=n

detected "without the module" "not detected"
refused peercache "RuntimeError: peercache: ibv_reg_mr failed" python3.11
without "pyverbs' wheel" "Failed to register a MR.* Errno: 14, Bad address" \
	python3.11 -c 'import sys; sys.path.insert(0, "/lab/cuda"); from verbs_on_cuda import *; context(); Queue().register(alloc(MIB), MIB)'
load_module
detected "with the module" "detected by checking $PEERS/nv_mem/version"
# Some RDMA cores, and some containers, have no directory $PEERS.
mount -t tmpfs none "$PEERS"
detected "without the core's files" "detected by checking /sys/module/nv_peer_mem/version"
umount "$PEERS"
# On a device that takes dma-bufs, UCX registers pointers only if a setting tells UCX to do so.
UCX_CUDA_COPY_DMABUF=n served nixl python3
served peercache python3.11

python3.11 /lab/cuda/programs.py kiro >/tmp/held 2>/tmp/errors || fail "pyverbs' wheel: KIRO fails"
checks "pyverbs' wheel"

counting wheels killed mooncake
