/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of the NVIDIA driver's peer-to-peer interface that this module uses,
 * for machines without the driver's source, because the distribution built the
 * modules. Names, layout and values are those of release 580 and later. Earlier
 * releases (535 to 575) have fewer fields, but in the same places, and also have
 * the two persistent calls.
 *
 * A header of the installed driver is always preferred: see build/configure.
 */
#ifndef NVPM_ABI_NV_P2P_H
#define NVPM_ABI_NV_P2P_H

#include <linux/types.h>

struct pci_dev;

/* The driver has calls for pages that stay pinned until they are put. */
#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API

/*
 * The upper half of a version changes when a structure changes its layout, the
 * lower half when a structure only grows.
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

/* A page. Only an old generation of GPUs uses the registers. */
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

/* This flag of a page table says that the CPU caches the memory. */
#define NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE	0x1

/**
 * struct nvidia_p2p_page_table - pinned pages
 * @version: 2.0 since release 580, 1.2 before
 * @page_size: of enum nvidia_p2p_page_size_type
 * @pages: pointers to @entries pages
 * @entries: number of pages
 * @gpu_uuid: 16 bytes that name the GPU
 * @flags: since version 2.0
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
 * @page_size_type: size behind each address
 * @entries: number of addresses
 * @dma_addresses: bus addresses for @pci_dev
 * @private: the driver's
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
 * All functions return 0 or a negative error number. Addresses and lengths are
 * multiples of 64 KiB. After a failure, a returned pointer has no meaning.
 *
 * nvidia_p2p_get_pages() pins pages that the driver takes back when the memory
 * is freed. The driver then calls @free_callback, and frees the table and its
 * mappings after the callback has returned. Token and address space are 0.
 */
int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data);
int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table);

/* These functions pin pages until they are put, even if the memory is freed before. */
#define NVIDIA_P2P_FLAGS_DEFAULT		0
#define NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING	1

int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags);
/* The flags must be 0. */
int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags);

/* Returns addresses of pinned pages for the device @peer. */
int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping);

/* Older drivers' callbacks call these functions. Releases with open modules do nothing here. */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping);

#endif
