# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: with drivers from 580 on as well, whose page table has version 2.0 and flags
. /lab/driver.sh
load_driver 590
load_rdma
seed_driver

load_built driver-590 persistent_api_support=1
check "pinned: write" transfer_seen 0 8M 300001 31 --shift 4096
check "pinned: memory stays" revoke --expect pinned
unload_module
load_built driver-590 persistent_api_support=0
check "revocable: write" transfer_seen 0 8M 300001 32 --shift 4096
check "revocable: revoked when freed" revoke

# The CPU caches memory behind a coherent link. The module must not map such memory as device
# memory.
coherent 1
registers "revocable: coherent memory" EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: GPU memory behind a coherent link .*persistent_api_support=1'
unload_module
load_built driver-590 persistent_api_support=1
remember
for contiguous in 0 1; do
	echo "$contiguous" >"$NVIDIA/dma_contiguous"
	for layout in contiguous descending fragmented; do
		with layout "$layout" check "pinned: coherent memory, mapped by the driver, $layout, dma_contiguous=$contiguous: write" \
			gpuverbs transfer --from 0 --to 16M --length 3000001 --seed 41 --shift 4096
	done
done
# The driver has made one mapping for each of twelve registrations, and one for the map type.
equal "mappings of the driver" 13 "$(grown calls_nvidia_p2p_dma_map_pages)"
with fail 'dma_map_pages EIO 1' registers "pinned: what the driver cannot map" EIO
mark_log
with fail 'dma_unmap_pages EIO 1' registers "pinned: what the driver does not unmap is no error" ok
expect_log "but is in the log" 'nv_peer_mem: the NVIDIA driver did not unmap GPU memory'
unload_module

# A module that was built with an older header must work also, because it reads the same fields with
# each header. Some kernels refuse to load such a module, because the version of a function contains
# the layout of the structures.
mark_log
if load_module persistent_api_support=0; then
	registers "built for 550: coherent memory" EOPNOTSUPP
	unload_module
	coherent 0
	load_module persistent_api_support=0
	check "built for 550: write" transfer_seen 0 8M 300001 33 --shift 4096
	check "built for 550: revoked when freed" revoke
else
	expect_log "built for 550: the kernel says that it is" 'disagrees about version of symbol nvidia_p2p_get_pages'
fi
