# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what the driver's tables and mappings may look like, and must not
. /lab/driver.sh
load_gpu
load_rdma
seed_driver

# claims KNOB VALUE EXPECTED TEXT: with new objects that claim to be that, by a module
# that knows no verdict of the driver yet.
claims() {
	local before
	before=$(cat "$NVIDIA/$1")
	echo "$2" >"$NVIDIA/$1"
	load_module "persistent_api_support=$support"
	check "$4: $3" register "$3"
	unload_module
	echo "$before" >"$NVIDIA/$1"
}

support=1
claims dma_mapping_version $((0x20002)) EOPNOTSUPP 'pinned, mapping 2.2'
claims dma_mapping_version $((0x20004)) ok 'pinned, mapping 2.4'
claims dma_mapping_version $((0x10000)) EOPNOTSUPP 'pinned, mapping 1.0'
claims dma_mapping_version $((0x30000)) EOPNOTSUPP 'pinned, mapping 3.0'
claims dma_entries_short 1 EIO 'pinned, a mapping of fewer pages'
for version in 0x10000 0x10001 0x10002 0x20000; do
	claims page_table_version $((version)) ok "pinned, table $version"
done
claims page_table_version $((0x30000)) EOPNOTSUPP 'pinned, table 3.0'
claims page_size 0 EIO 'pinned, pages of 4 KiB'

support=0
for version in 0x10000 0x10001 0x10002 0x20000; do
	claims page_table_version $((version)) ok "revocable, table $version"
done
claims page_table_version $((0x30000)) EOPNOTSUPP 'revocable, table 3.0'
# Sixteen pages that are said to be of another size are not what was asked for.
claims page_size 0 EIO 'revocable, pages of 4 KiB'
claims page_size 2 EIO 'revocable, pages of 128 KiB'
claims page_size 3 EOPNOTSUPP 'revocable, pages of no known size'
load_module persistent_api_support=0
check "and then it works" register ok
