# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Layers: generations
# Shows: with drivers from 580 on as well, whose page table has version 2.0 and flags
# All: drivers and RDMA cores of other generations are built for it
. /lab/driver.sh
load_driver 590
load_rdma
equal "the driver's generation" 590 "$(cat /sys/module/nvidia/version)"

load_module_for 590 persistent_api_support=1
check "pinned: write" transfer_seen 0 8M 300001 31 --shift 4096
check "pinned: memory stays" gpuverbs revoke --from 0 --to 8M --length 300001 --expect pinned
unload_module
load_module_for 590 persistent_api_support=0
check "revocable: write" transfer_seen 0 8M 300001 32 --shift 4096
check "revocable: revoked when freed" gpuverbs revoke --from 0 --to 8M --length 300001

# What the CPU caches lies behind a coherent link: not for a device to map.
echo 1 >"$NVIDIA/page_table_flags"
check "revocable: coherent memory is EOPNOTSUPP" register EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: GPU memory behind a coherent link .*persistent_api_support=1'
unload_module
load_module_for 590 persistent_api_support=1
check "pinned: coherent memory is the driver's to map" register ok
echo 0 >"$NVIDIA/page_table_flags"
unload_module

# A module that was built for an older header reads the same fields, where the kernel lets
# it in: some take what a function's structures look like for a part of its version.
mark_log
if load_module persistent_api_support=0; then
	check "built for 550: write" transfer_seen 0 8M 300001 33 --shift 4096
	check "built for 550: revoked when freed" gpuverbs revoke --from 0 --to 8M --length 300001
else
	expect_log "built for 550: the kernel says that it is" 'disagrees about version of symbol nvidia_p2p_get_pages'
fi
