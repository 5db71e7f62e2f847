// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where every generation of nv-p2p.h has the fields that clients read. No code:
 * it compiles, or the header at hand is not what the rest takes it for.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>

#include <nv-p2p.h>

#define AT(type, field, offset) \
	static_assert(offsetof(struct nvidia_p2p_##type, field) == (offset))
#define SIZE(type, size) \
	static_assert(sizeof(struct nvidia_p2p_##type) == (size))

SIZE(page, 32);
AT(page, physical_address, 0);
AT(page, registers, 8);

AT(page_table, version, 0);
AT(page_table, page_size, 4);
AT(page_table, pages, 8);
AT(page_table, entries, 16);
AT(page_table, gpu_uuid, 24);
#if NVIDIA_P2P_PAGE_TABLE_VERSION >= 0x00020000
SIZE(page_table, 40);
AT(page_table, flags, 32);
static_assert(NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE == 1);
#else
SIZE(page_table, 32);
#endif

SIZE(dma_mapping, 40);
AT(dma_mapping, version, 0);
AT(dma_mapping, page_size_type, 4);
AT(dma_mapping, entries, 8);
AT(dma_mapping, dma_addresses, 16);
AT(dma_mapping, private, 24);
AT(dma_mapping, pci_dev, 32);

static_assert(NVIDIA_P2P_DMA_MAPPING_VERSION == 0x00020003);
static_assert(NVIDIA_P2P_PAGE_SIZE_4KB == 0);
static_assert(NVIDIA_P2P_PAGE_SIZE_64KB == 1);
static_assert(NVIDIA_P2P_PAGE_SIZE_128KB == 2);
static_assert(NVIDIA_P2P_PAGE_SIZE_COUNT == 3);
