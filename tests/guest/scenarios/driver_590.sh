# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: with drivers from 580 on as well, whose page table has version 2.0 and flags
. /lab/driver.sh
load_driver 590
load_rdma
seed_driver
equal "the driver's generation" 590 "$(cat /sys/module/nvidia/version)"

load_module_for 590 persistent_api_support=1
check "pinned: write" transfer_seen 0 8M 300001 31 --shift 4096
check "pinned: memory stays" gpuverbs revoke --from 0 --to 8M --length 300001 --expect pinned
unload_module
load_module_for 590 persistent_api_support=0
check "revocable: write" transfer_seen 0 8M 300001 32 --shift 4096
check "revocable: revoked when freed" gpuverbs revoke --from 0 --to 8M --length 300001

# What the CPU caches lies behind a coherent link: not for a device to map.
coherent 1
check "revocable: coherent memory is EOPNOTSUPP" register EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: GPU memory behind a coherent link .*persistent_api_support=1'
unload_module
load_module_for 590 persistent_api_support=1
remember
for contiguous in 0 1; do
	echo "$contiguous" >"$NVIDIA/dma_contiguous"
	for layout in contiguous descending fragmented; do
		echo "$layout" >"$NVIDIA/layout"
		check "pinned: coherent memory, mapped by the driver, $layout, dma_contiguous=$contiguous: write" \
			gpuverbs transfer --from 0 --to 16M --length 3000001 --seed 41 --shift 4096
	done
done
echo contiguous >"$NVIDIA/layout"
# Twelve registrations, and the one that it was asked with.
equal "mappings of the driver" 13 "$(grown calls_nvidia_p2p_dma_map_pages)"
echo 'dma_map_pages EIO 1' >"$NVIDIA/fail"
check "pinned: what the driver cannot map is EIO" register EIO
mark_log
echo 'dma_unmap_pages EIO 1' >"$NVIDIA/fail"
check "pinned: what the driver does not unmap is no error" register ok
expect_log "but is in the log" 'nv_peer_mem: the NVIDIA driver did not unmap GPU memory'
unload_module

# A module that was built for an older header reads the same fields, where the kernel lets
# it in: some take what a function's structures look like for a part of its version.
mark_log
if load_module persistent_api_support=0; then
	check "built for 550: coherent memory is EOPNOTSUPP" register EOPNOTSUPP
	unload_module
	coherent 0
	load_module persistent_api_support=0
	check "built for 550: write" transfer_seen 0 8M 300001 33 --shift 4096
	check "built for 550: revoked when freed" gpuverbs revoke --from 0 --to 8M --length 300001
else
	expect_log "built for 550: the kernel says that it is" 'disagrees about version of symbol nvidia_p2p_get_pages'
fi
