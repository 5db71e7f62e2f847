# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: GPU memory behind a coherent link, which is RAM: mapped by the driver, or declined
. /lab/driver.sh
load_neighbours
seed_driver
coherent 1

# The page table of this driver does not say that the memory is behind a coherent link. The module
# must recognize the memory by its addresses, because the kernel has RAM at these addresses.
load_module persistent_api_support=1
remember
seed=50
for layout in contiguous descending holes64k fragmented; do
	for range in "64K 0" "300001 7" "3M+17 65000"; do
		read -r length shift <<<"$range"
		with layout "$layout" check "pinned, $layout, $length bytes $shift into the page: write" \
			gpuverbs transfer --from 0 --to 16M --length "$length" --shift "$shift" --seed $((seed += 1))
	done
done
check "pinned: read" gpuverbs transfer --from 0 --to 16M --length 300001 --seed 71 --op read
# The driver has made one mapping to find the map type, and two for each of thirteen transfers.
equal "the driver has mapped each registration" 27 "$(grown calls_nvidia_p2p_dma_map_pages)"
equal "and this is known of the pair" driver "$(map_types)"
check "pinned: memory stays when freed" revoke --expect pinned
with topology_denied 1 registers "pinned: no PCI topology is in the way" ok
with fail 'dma_map_pages EIO 1' registers "pinned: what the driver cannot map" EIO

# The module must handle memory in the BAR of the same GPU as it handles memory behind the link.
coherent 0
check "pinned: memory in the BAR" transfer_seen 0 16M 300001 72
unload_module

# Neither the module nor the driver can map pages that the kernel has not onlined yet.
coherent 2
load_module persistent_api_support=1
remember
mark_log
registers "memory that is not online" EOPNOTSUPP
expect_log "and the log says what it is" 'nv_peer_mem: .*coherent link.* not online'
equal "and the driver was not asked to map it" 0 "$(grown calls_nvidia_p2p_dma_map_pages)"
unload_module

coherent 1
load_module persistent_api_support=0
mark_log
registers "revocable" EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: .*persistent_api_support=1'
