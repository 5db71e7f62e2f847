/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The peer-memory API of the RDMA core, as a client sees it: how a driver that
 * owns memory without struct pages (a GPU's, say) lets user space register
 * that memory with an RDMA device.
 *
 * Written for the lab after the documented behaviour of MLNX_OFED 5.4-3.0.3
 * and later. Names, layout and constants are those of the real header.
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

/**
 * struct peer_memory_client - what a client brings
 * @name: its directory in sysfs; unique, and without a percent sign
 * @version: text for sysfs, ending in a NUL before the last byte. The last
 *	byte is a flag: not zero says that the object is really a
 *	struct peer_memory_client_ex.
 * @acquire: whether [addr, addr + size) belongs to the client. Returns more
 *	than zero for yes and then stores its context; anything else is no, and
 *	the next client is asked. @peer_mem_private_data and @peer_mem_name are
 *	always NULL since OFED 5.1.
 * @get_pages: pin the range. @sg_head is NULL since OFED 5.1. Keep
 *	@core_context: it names the region to the invalidate function.
 * @dma_map: fill the core's @sg_head with bus addresses for @dma_device and
 *	store the number of entries in @nmap.
 * @dma_unmap: undo @dma_map; must return zero.
 * @put_pages: undo @get_pages.
 * @get_page_size: size of the pages behind the entries.
 * @release: end of the context; once for every successful @acquire.
 *
 * The core keeps the pointer to this object until the client unregisters.
 *
 * A mutex of the region is held over @get_pages, @dma_map and @get_page_size,
 * and the invalidate function waits for it. None of the three may therefore
 * wait for anything held while the client calls that function.
 */
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
};

enum {
	/*
	 * The client takes mapping and pages down by itself when it has
	 * invalidated a region: the core then calls neither @dma_unmap nor
	 * @put_pages for it. They still come if the region was being
	 * deregistered at that moment.
	 */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/**
 * struct peer_memory_client_ex - a client with flags
 * @client: as above, with the flag byte of @client.version set
 * @ex_size: size of the whole object
 * @flags: PEER_MEM_INVALIDATE_UNMAPS or nothing
 */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

/*
 * Takes a region away from the RDMA device. May sleep; always returns zero.
 * A ticket that the core no longer knows is not an error.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/*
 * Returns a handle or NULL. A client that cannot lose its memory gives NULL
 * for @invalidate_callback, and is then offered every kind of object.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback);

/* Waits until the last region of the client is released. */
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
