/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The NVIDIA driver's peer-to-peer interface as each generation of its open
 * modules declares it, for compiling only: what a client sees, without the
 * driver's explanations. A directory beside this file sets NV_GENERATION, the
 * branch that the generation began with:
 *
 *   515  515.43 to 525.89, 530: persistent pages by get_pages without callback
 *   535  525.47.22, 525.105 to 565: two functions of their own for that
 *   570  flags for them
 *   575  no more rsync registers; the header says the same
 *   580  page table 2.0, which has flags
 *   590  to 595; the header says the same
 */
#ifndef LAB_NV_P2P_H
#define LAB_NV_P2P_H

#include <linux/types.h>

struct pci_dev;

#define NVIDIA_P2P_MAJOR_VERSION(v)	(((v) & 0xffff0000) >> 16)
#define NVIDIA_P2P_MINOR_VERSION(v)	((v) & 0x0000ffff)
#define NVIDIA_P2P_MAJOR_VERSION_MATCHES(p, v) \
	(NVIDIA_P2P_MAJOR_VERSION((p)->version) == NVIDIA_P2P_MAJOR_VERSION(v))
#define NVIDIA_P2P_VERSION_COMPATIBLE(p, v) \
	(NVIDIA_P2P_MAJOR_VERSION_MATCHES(p, v) && \
	 NVIDIA_P2P_MINOR_VERSION((p)->version) >= NVIDIA_P2P_MINOR_VERSION(v))

#define NVIDIA_P2P_GPU_UUID_LEN			16
#define NVIDIA_P2P_PARAMS_VERSION		0x00010001
#define NVIDIA_P2P_DMA_MAPPING_VERSION		0x00020003
#define NVIDIA_P2P_RSYNC_DRIVER_VERSION		0x00010001
#define NVIDIA_P2P_RSYNC_REG_INFO_VERSION	0x00020001
#if NV_GENERATION >= 580
#define NVIDIA_P2P_PAGE_TABLE_VERSION		0x00020000
#define NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE	0x1
#else
#define NVIDIA_P2P_PAGE_TABLE_VERSION		0x00010002
#endif

#define NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(p) \
	NVIDIA_P2P_VERSION_COMPATIBLE(p, NVIDIA_P2P_PAGE_TABLE_VERSION)
#define NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(p) \
	NVIDIA_P2P_VERSION_COMPATIBLE(p, NVIDIA_P2P_DMA_MAPPING_VERSION)
#define NVIDIA_P2P_RSYNC_DRIVER_VERSION_COMPATIBLE(p) \
	NVIDIA_P2P_VERSION_COMPATIBLE(p, NVIDIA_P2P_RSYNC_DRIVER_VERSION)

enum nvidia_p2p_page_size_type {
	NVIDIA_P2P_PAGE_SIZE_4KB,
	NVIDIA_P2P_PAGE_SIZE_64KB,
	NVIDIA_P2P_PAGE_SIZE_128KB,
	NVIDIA_P2P_PAGE_SIZE_COUNT
};

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

struct nvidia_p2p_page_table {
	u32 version;
	u32 page_size;
	struct nvidia_p2p_page **pages;
	u32 entries;
	u8 *gpu_uuid;
#if NV_GENERATION >= 580
	u32 flags;
#endif
};

struct nvidia_p2p_dma_mapping {
	u32 version;
	enum nvidia_p2p_page_size_type page_size_type;
	u32 entries;
	u64 *dma_addresses;
	void *private;
	struct pci_dev *pci_dev;
};

int nvidia_p2p_get_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data);
int nvidia_p2p_put_pages(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table);

#if NV_GENERATION < 535
#define NVIDIA_P2P_CAP_PERSISTENT_PAGES
extern int nvidia_p2p_cap_persistent_pages;
#else
#define NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
int nvidia_p2p_get_pages_persistent(u64 virtual_address, u64 length,
				    struct nvidia_p2p_page_table **page_table,
				    u32 flags);
int nvidia_p2p_put_pages_persistent(u64 virtual_address,
				    struct nvidia_p2p_page_table *page_table,
				    u32 flags);
#endif
#if NV_GENERATION >= 570
#define NVIDIA_P2P_FLAGS_DEFAULT		0
#define NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING	1
#endif

int nvidia_p2p_dma_map_pages(struct pci_dev *peer,
			     struct nvidia_p2p_page_table *page_table,
			     struct nvidia_p2p_dma_mapping **dma_mapping);
int nvidia_p2p_dma_unmap_pages(struct pci_dev *peer,
			       struct nvidia_p2p_page_table *page_table,
			       struct nvidia_p2p_dma_mapping *dma_mapping);
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table);
int nvidia_p2p_free_dma_mapping(struct nvidia_p2p_dma_mapping *dma_mapping);

struct nvidia_p2p_params;
struct nvidia_p2p_rsync_reg_info;

struct nvidia_p2p_rsync_driver {
	u32 version;
	int (*get_relaxed_ordering_mode)(int *mode, void *data);
	void (*put_relaxed_ordering_mode)(int mode, void *data);
	void (*wait_for_rsync)(struct pci_dev *gpu, void *data);
};

int nvidia_p2p_init_mapping(u64 p2p_token, struct nvidia_p2p_params *params,
			    void (*destroy_callback)(void *data), void *data);
int nvidia_p2p_destroy_mapping(u64 p2p_token);
int nvidia_p2p_register_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
				     void *data);
void nvidia_p2p_unregister_rsync_driver(struct nvidia_p2p_rsync_driver *driver,
					void *data);
int nvidia_p2p_get_rsync_registers(struct nvidia_p2p_rsync_reg_info **reg_info);
void nvidia_p2p_put_rsync_registers(struct nvidia_p2p_rsync_reg_info *reg_info);

#endif
