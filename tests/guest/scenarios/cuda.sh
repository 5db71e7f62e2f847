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
for part in what_may_be_registered neighbours revocation "two_processes 2"; do
	# shellcheck disable=SC2086 # two words
	cuda lifetime $part
done
# In a process that ends pins are left to the driver, which calls back when it frees the
# memory: after the registrations have ended, or before.
echo close >"$NVIDIA/free_from"
cuda lifetime two_processes 2
echo task >"$NVIDIA/free_from"
unload_module
load_module
for part in what_may_be_registered persistence "two_processes 0"; do
	# shellcheck disable=SC2086 # two words
	cuda lifetime $part
done
