# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: CUDA over the simulated GPU, and what becomes of CUDA memory that is registered
. /lab/cuda.sh
load_gpu
cuda calls
load_rdma
cuda lifetime not_without_a_client
# With revocation, then with pins that outlive the memory.
load_module persistent_api_support=0
for part in what_may_be_registered neighbours revocation two_processes; do
	cuda lifetime "$part"
done
unload_module
load_module
for part in what_may_be_registered persistence two_processes; do
	cuda lifetime "$part"
done
