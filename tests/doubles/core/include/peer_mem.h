/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The peer-memory API of the RDMA core for clients. This header was written for the lab after the
 * documented behaviour of MLNX_OFED, with the names, layout and constants of the real headers. The
 * build keeps the parts between #ifdef and #endif for one generation: LAB_G2 is MLNX_OFED 4.1 to
 * 5.0, LAB_G3B is 5.4-3 and later; 4.0, and 5.1 to 5.4-2, have neither.
 */
#ifndef RDMA_PEER_MEM_H
#define RDMA_PEER_MEM_H

#include <linux/types.h>

struct device;
struct sg_table;

#define IB_PEER_MEMORY_NAME_MAX 64
#define IB_PEER_MEMORY_VER_MAX 16

/* The core's ticket for a region is a number; before OFED 4.0 it was a pointer. */
#define PEER_MEM_U64_CORE_CONTEXT

struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size,
		       void *peer_mem_private_data, char *peer_mem_name,
		       void **client_context);
	int (*get_pages)(unsigned long addr, size_t size, int write, int force,
			 struct sg_table *sg_head, void *client_context,
			 u64 core_context);
	int (*dma_map)(struct sg_table *sg_head, void *client_context,
		       struct device *dma_device, int dmasync, int *nmap);
	int (*dma_unmap)(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device);
	void (*put_pages)(struct sg_table *sg_head, void *client_context);
	unsigned long (*get_page_size)(void *client_context);
	void (*release)(void *client_context);
#ifdef LAB_G2
	/*
	 * Optional. A client with @get_context_private_data gets no memory
	 * of processes that have not asked for peer @peer_id.
	 */
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
#endif
};

#ifdef LAB_G3B
enum {
	/*
	 * The client undoes mapping and pages itself when it has invalidated
	 * a region: the core then calls neither dma_unmap nor put_pages for
	 * the region, unless the region was being deregistered at that moment.
	 */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/* A client with this structure has a version whose last byte is not zero. */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

#endif
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
