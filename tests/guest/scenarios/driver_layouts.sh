# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Shows: what the driver's tables and mappings may look like, and must not
. /lab/driver.sh
load_neighbours

# claims SUPPORT KNOB VALUE EXPECTED TEXT: makes a registration with persistent_api_support=SUPPORT,
# while the file KNOB of the simulated driver has VALUE. Checks that the result is EXPECTED. TEXT
# names the check. The module is loaded again for each value, so that it knows no map type.
claims() {
	load_module "persistent_api_support=$1"
	with "$2" $(($3)) registers "$5, persistent_api_support=$1" "$4"
	unload_module
}

claims 1 dma_mapping_version 0x20002 EOPNOTSUPP 'mapping 2.2'
claims 1 dma_mapping_version 0x20004 ok 'mapping 2.4'
claims 1 dma_mapping_version 0x10000 EOPNOTSUPP 'mapping 1.0'
claims 1 dma_mapping_version 0x30000 EOPNOTSUPP 'mapping 3.0'
claims 1 dma_entries_short 1 EIO 'a mapping of fewer pages'
for support in 1 0; do
	for version in 0x10002 0x20000 0x20001; do
		claims $support page_table_version $version ok "table $version"
	done
	for version in 0x10001 0x30000; do
		claims $support page_table_version $version EOPNOTSUPP "table $version"
	done
	# The driver returns sixteen pages. If these pages have another size, they are not as long
	# as the range, so the module must refuse them.
	claims $support page_size 0 EIO 'pages of 4 KiB'
done
claims 0 page_size 2 EIO 'pages of 128 KiB'
claims 0 page_size 3 EOPNOTSUPP 'pages of no known size'
load_module persistent_api_support=0
registers "and then it works" ok
