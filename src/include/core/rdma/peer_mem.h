/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RDMA core's interface for peer memory. The module is compiled with this file if the machine
 * has no such header. The header is missing if only OFED's modules are installed, or if the kernel
 * supports peer memory but its headers package lacks the header. Names, layout and values are those
 * of MLNX_OFED 5.4-3.0.3 and later, of DOCA-OFED, and of distributions' kernels with the same
 * interface. The module also works with an older core that lacks some of the fields (see nvpm.h).
 * Fields that only older cores have are inside #ifdef.
 *
 * If the installed RDMA core has a header, build/find/core.sh chooses that header instead.
 */
#ifndef NVPM_ABI_PEER_MEM_H
#define NVPM_ABI_PEER_MEM_H

#include <linux/types.h>

struct device;
struct sg_table;

/* The core identifies a registration by a number. Before OFED 4.0 it used a pointer. */
#define PEER_MEM_U64_CORE_CONTEXT

/* The sizes of the two texts in a client, with their terminators. */
#define IB_PEER_MEMORY_NAME_MAX	64
#define IB_PEER_MEMORY_VER_MAX	16

/*
 * The type of a function of the core, which a client can request when it registers. The function
 * revokes the registration that @core_context identifies, and returns when the RDMA device no
 * longer uses the memory. May sleep. Always returns 0.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/**
 * struct peer_memory_client - a module that pins memory that the kernel cannot pin
 * @name: unique among clients; must not contain "%", because some cores use the
 *	name as a printf format
 * @version: a text of at most 14 bytes. If byte 15 is not 0, the structure is
 *	the first part of a &struct peer_memory_client_ex.
 * @acquire: returns more than 0 if the client claims the memory; the client
 *	then stores its context. After any other result the core asks the next
 *	client. The private data and the name are NULL, except for some users
 *	of OFED 5.0 and earlier.
 * @get_pages: takes the pages for the registration that @core_context
 *	identifies. @core_context may be 0. Since OFED 5.1 the table is NULL.
 * @dma_map: fills the table with addresses for the device, and stores their
 *	number
 * @dma_unmap: undoes @dma_map; the core ignores the result
 * @put_pages: undoes @get_pages
 * @get_page_size: returns the unit of the table's entries, in bytes
 * @release: ends a registration. This is the last call for a context, and the
 *	core makes it once for each successful @acquire.
 */
struct peer_memory_client {
	char name[IB_PEER_MEMORY_NAME_MAX];
	char version[IB_PEER_MEMORY_VER_MAX];
	int (*acquire)(unsigned long addr, size_t size, void *private_data,
		       char *private_name, void **client_context);
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
#ifdef NVPM_CORE_PRIVATE_DATA
	/* MLNX_OFED 4.1 to 5.0 has these two fields, and does not have the extension below. */
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
#endif
};

/**
 * struct peer_memory_client_ex - a client with flags
 * @client: must have a version whose byte 15 is not 0
 * @ex_size: the size of this structure when the client was compiled
 * @flags: values of the enum below
 *
 * OFED 4.1 to 5.0 read a pointer to a function at the place of @ex_size, so @ex_size must be 0 for
 * these cores. Every core keeps a pointer to the structure, so the structure must exist until the
 * client is unregistered.
 */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

enum {
	/* After an invalidation the core calls only @release for the registration. */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/*
 * Registers a client. Returns a handle, or NULL after a failure. Stores the core's function for
 * invalidation in @invalidate_callback. A client that never revokes memory passes NULL as
 * @invalidate_callback.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate_callback);

/* Unregisters a client. Returns when the core has released every context of the client. */
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
