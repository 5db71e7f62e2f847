# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: an error of the driver reaches the user as what it is
load_gpu
load_rdma
fail_next() { echo "$1 $2 1" >"$NVIDIA/fail"; }
load_module
# What the driver answers when it is asked for its verdict is not remembered.
fail_next dma_map_pages EIO
check "a driver that cannot map now is EIO" register EIO
default=$(cat "$NVIDIA/dma_mapping_version")
echo 196608 >"$NVIDIA/dma_mapping_version"
check "an unknown version of the driver's mapping is EOPNOTSUPP" register EOPNOTSUPP
echo "$default" >"$NVIDIA/dma_mapping_version"
echo 1 >"$NVIDIA/dma_entries_short"
check "a mapping of fewer pages than were pinned is EIO" register EIO
echo 0 >"$NVIDIA/dma_entries_short"
check "and then it works" register ok
fail_next get_pages_persistent ENOMEM
check "no room in BAR1 is ENOMEM" register ENOMEM
fail_next get_pages_persistent EBUSY
check "a busy GPU is EBUSY" register EBUSY
fail_next get_pages_persistent ENOTSUPP
check "where memory cannot be pinned for good it is pinned revocably" register ok
fail_next get_pages_persistent EIO
check "and so where the driver cannot hold the memory itself" register ok
equal "by the revocable client" 2 "$(peer nv_mem_revocable num_alloc_mrs)"
echo 2000000 >"$NVIDIA/bar1_bytes"
check "a BAR1 that is too small is ENOMEM" register ENOMEM
echo 1073741824 >"$NVIDIA/bar1_bytes"
check "and then it works" register ok
unload_module
load_module persistent_api_support=0
fail_next get_pages ENOMEM
check "revocable: no room in BAR1 is ENOMEM" register ENOMEM
fail_next get_pages ENOTSUPP
check "revocable: unsupported memory is EOPNOTSUPP" register EOPNOTSUPP
for step in umem id driver; do
	echo "$step 1" >"$CORE/fail"
	check "the core's own failure at '$step' leaves nothing" register ENOMEM
done
echo 'null_device 1' >"$CORE/switch"
check "a device that is not on PCI is EOPNOTSUPP" register EOPNOTSUPP
echo 'null_device 0' >"$CORE/switch"
echo 196608 >"$NVIDIA/page_table_version"
check "an unknown version of the driver's table is EOPNOTSUPP" register EOPNOTSUPP
expect_log "and the log says what to do" 'nv_peer_mem: .*version 0x30000.*install a version that fits the driver'
