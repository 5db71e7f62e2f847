# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Each way to fail has words of its own.
while read -r word text; do
	export DOUBLE=$word
	looks 1 "$text" --
done <<END
no_module ibv_reg_mr: EFAULT \(Bad address\) of GPU memory
rights ibv_open_device: EACCES \(Permission denied\): no right to open the device: /dev/infiniband/uverbs
full cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY: the GPU has not 4 MiB left; --size takes less
no_descriptor ibv_post_send: ENOMEM
silent after cuMemFree: nobody answered, and nobody refused: IBV_WC_RETRY_EXC_ERR
dereg ibv_dereg_mr: EBUSY
pinned after cuMemFree: the device still reaches the memory, which persistent_api_support=0 rules out
END
DOUBLE=memlock
looks 1 'ibv_reg_mr: ENOMEM .* of host memory' --
locked=$(ulimit -Sl)
ulimit -Sl 64
looks 1 'this user may lock 64 KiB \(ulimit -l\): raise that limit' --
ulimit -Sl "$locked"
# A completion that never comes.
DOUBLE=lost
looks 1 'host to GPU: no completion within 1 s' -- --timeout 1
# Somebody else served it.
DOUBLE=
rm -r "$NVPM_SYSROOT/sys/module"
looks 1 'not by nv_peer_mem, which is not loaded' --
