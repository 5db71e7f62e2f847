/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of the NVIDIA driver's peer-to-peer interface that this module uses. The module is
 * compiled with this file if the machine lacks the driver's source, for example because the
 * distribution has built the driver's modules. Names, layout and values are those of release 580
 * and later. Earlier releases (535 to 575) have fewer fields, but at the same places, and also have
 * the two persistent calls.
 *
 * If the installed driver has a header, build/configure chooses that header instead.
 */
#ifndef NVPM_ABI_NV_P2P_H
#define NVPM_ABI_NV_P2P_H

#include <linux/types.h>

struct pci_dev;

/* Says that the driver has the persistent calls. */
#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API

/*
 * The upper half of a version number changes if the layout of the structure changes. The lower half
 * changes if fields are only appended.
 */
#define NVIDIA_P2P_MAJOR_VERSION(version)	((version) >> 16)
#define NVIDIA_P2P_MINOR_VERSION(version)	((version) & 0xffff)

#define NVIDIA_P2P_MAJOR_VERSION_MATCHES(object, wanted) \
	(NVIDIA_P2P_MAJOR_VERSION((object)->version) == \
	 NVIDIA_P2P_MAJOR_VERSION(wanted))

#define NVIDIA_P2P_VERSION_COMPATIBLE(object, wanted) \
	(NVIDIA_P2P_MAJOR_VERSION_MATCHES(object, wanted) && \
	 NVIDIA_P2P_MINOR_VERSION((object)->version) >= \
	 NVIDIA_P2P_MINOR_VERSION(wanted))

/* The driver's numbers for sizes of GPU pages. */
enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB = 0,
	NVIDIA_P2P_PAGE_SIZE_64KB = 1,
	NVIDIA_P2P_PAGE_SIZE_128KB = 2,
	NVIDIA_P2P_PAGE_SIZE_COUNT
};

/* A page of GPU memory. The registers have a meaning only for an old generation of GPUs. */
struct nvidia_p2p_page {
	u64 physical_address;
	union nvidia_p2p_request_registers {
		struct {
			u32 wreqmb_h;
			u32 rreqmb_h;
			u32 rreqmb_0;
			u32 reserved[3];
		} fermi;
	} registers;
};

#define NVIDIA_P2P_PAGE_TABLE_VERSION	0x00020000

#define NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table) \
	NVIDIA_P2P_VERSION_COMPATIBLE(table, NVIDIA_P2P_PAGE_TABLE_VERSION)

/* A flag of a page table. It says that the CPU caches the memory. */
#define NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE	0x1

/**
 * struct nvidia_p2p_page_table - pinned pages
 * @version: 2.0 since release 580, and 1.2 in earlier releases
 * @page_size: an enum nvidia_p2p_page_size_type
 * @pages: pointers to @entries pages
 * @entries: number of pages
 * @gpu_uuid: the 16 bytes of the GPU's UUID
 * @flags: exists since version 2.0
 */
struct nvidia_p2p_page_table {
	u32 version;
	u32 page_size;
	struct nvidia_p2p_page **pages;
	u32 entries;
	u8 *gpu_uuid;
	u32 flags;
};

#define NVIDIA_P2P_DMA_MAPPING_VERSION	0x00020003

#define NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(mapping) \
	NVIDIA_P2P_VERSION_COMPATIBLE(mapping, NVIDIA_P2P_DMA_MAPPING_VERSION)

/**
 * struct nvidia_p2p_dma_mapping - pinned pages as another device sees them
 * @version: 2.3
 * @page_size_type: the number of bytes that each address stands for
 * @entries: number of addresses
 * @dma_addresses: bus addresses for @pci_dev
 * @private: belongs to the driver
 * @pci_dev: the device that may use the addresses
 */
struct nvidia_p2p_dma_mapping {
	u32 version;
	enum nvidia_p2p_page_size_type page_size_type;
	u32 entries;
	u64 *dma_addresses;
	void *private;
	struct pci_dev *pci_dev;
};

/*
 * All functions return 0 or a negative error number. Addresses and lengths must be multiples of 64
 * KiB. After a failure, a pointer that the function has stored has no meaning.
 *
 * nvidia_p2p_get_pages() pins pages that the driver takes back when the memory is freed. The driver
 * then calls @free_callback, and frees the table and its mappings after the callback has returned.
 * @p2p_token and @va_space must be 0.
 */
int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data);
int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table);

/* The persistent calls pin pages until the caller puts them, even if the memory is freed before. */
#define NVIDIA_P2P_FLAGS_DEFAULT		0
#define NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING	1

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags);
/* The flags must be 0. */
int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags);

/* Maps pinned pages for the device @peer, and stores the bus addresses in @dma_mapping. */
int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping);

/*
 * Callbacks had to call these functions in old releases. In releases with open modules they do
 * nothing.
 */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping);

#endif
