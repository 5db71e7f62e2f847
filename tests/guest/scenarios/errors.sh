# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an error of the driver reaches the user as what it is
load_all
# If the driver fails while the module asks for the map type, the module must not remember this
# error.
with fail 'dma_map_pages EIO 1' registers "a driver that cannot map now" EIO
with dma_mapping_version $((0x30000)) registers "an unknown version of the driver's mapping" EOPNOTSUPP
with dma_entries_short 1 registers "a mapping of fewer pages than were pinned" EIO
registers "and then it works" ok
with fail 'get_pages_persistent ENOMEM 1' registers "no room in BAR1" ENOMEM
with fail 'get_pages_persistent EBUSY 1' registers "a busy GPU" EBUSY
with fail 'get_pages_persistent ENOTSUPP 1' registers "where memory cannot be pinned for good it is pinned revocably" ok
with fail 'get_pages_persistent EIO 1' registers "and so where the driver cannot hold the memory itself" ok
equal "by the revocable client" 2 "$(peer nv_mem_revocable num_alloc_mrs)"
with bar1_bytes 2000000 registers "a BAR1 that is too small" ENOMEM
# in_one_mib TEXT COMMAND...: checks that COMMAND succeeds while 1 MiB of BAR1 is free. BAR1 then
# has 37 MiB, and the simulated driver keeps 36 MiB of them.
in_one_mib() { with bar1_bytes $((37 << 20)) check "$@" <<<""; }
in_one_mib "room for memory that is registered three times, once" gpuverbs register --length 1M --kept 2
in_one_mib "but none for more memory" gpuverbs register --length 1088K --expect ENOMEM
registers "and then it works" ok
unload_module
load_module persistent_api_support=0
with fail 'get_pages ENOMEM 1' registers "revocable: no room in BAR1" ENOMEM
# The first registration makes the module ask for the map type. To ask the driver, the module pins a
# page persistently.
registers "revocable: with room" ok
in_one_mib "revocable: room for memory that is registered three times, once" gpuverbs register --length 1M --kept 2
in_one_mib "revocable: but none for more memory" gpuverbs register --length 1088K --expect ENOMEM
with fail 'get_pages ENOTSUPP 1' registers "revocable: unsupported memory" EOPNOTSUPP
for step in umem id driver; do
	echo "$step 1" >"$CORE/fail"
	registers "the core's own failure at '$step'" ENOMEM
	nothing_left "the core's own failure at '$step'"
done
with_core null_device registers "a device that is not on PCI" EOPNOTSUPP
mark_log
with page_table_version $((0x30000)) registers "an unknown version of the driver's table" EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: .*page table has version 0x30000.*install a version of nv_peer_mem that fits the driver'
