/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The RDMA core's interface for peer memory, for machines without a header of
 * their own: only OFED's modules are installed, or a kernel has peer memory but
 * its headers package lacks this file. Names, layout and values are those of
 * MLNX_OFED 5.4-3.0.3 and later, of DOCA-OFED, and of distributions' kernels
 * with the same interface. The module does not use fields that an older core
 * lacks (nvpm.h). Fields that only older cores have are inside #ifdef.
 *
 * A header of the installed RDMA core is always preferred: see
 * build/find/core.sh.
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
 * The core gives this function to a client that asks for it on registration. It
 * takes the registration @core_context away from its RDMA device, and returns
 * when the device no longer uses the memory. Sleeps. Always returns 0.
 */
typedef int (*invalidate_peer_memory)(void *reg_handle, u64 core_context);

/**
 * struct peer_memory_client - an owner of memory that the kernel cannot pin
 * @name: unique among clients; a printf format on some cores, so without "%"
 * @version: a text of 14 bytes at most. Byte 15 is not text but tells the core
 *	that this is the head of a &struct peer_memory_client_ex.
 * @acquire: more than 0 if the memory is the client's, which then stores its
 *	context; otherwise the core asks the next client. The private data and
 *	the name are NULL but for some users of OFED 5.0 and earlier.
 * @get_pages: takes the pages, for the registration @core_context, which may
 *	be 0. Since OFED 5.1 the table is NULL.
 * @dma_map: fills the table with addresses for the device, and counts them.
 * @dma_unmap: undoes @dma_map. The core ignores the result.
 * @put_pages: undoes @get_pages.
 * @get_page_size: the unit of the table's entries, in bytes.
 * @release: the last call for a context, one for each successful @acquire.
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
	/* MLNX_OFED 4.1 to 5.0 has these two fields instead of the extension below. */
	void *(*get_context_private_data)(u64 peer_id);
	void (*put_context_private_data)(void *context);
#endif
};

/**
 * struct peer_memory_client_ex - a client that says more about itself
 * @client: with byte 15 of its version other than 0
 * @ex_size: size of this structure as the client knows it
 * @flags: of the values below
 *
 * OFED 4.1 to 5.0 take the word at @ex_size for a pointer to a function, so it
 * must be 0 for these cores. The core keeps a pointer to the structure, so the
 * structure must live until the client is unregistered.
 */
struct peer_memory_client_ex {
	struct peer_memory_client client;
	size_t ex_size;
	u32 flags;
};

enum {
	/* After an invalidation the core only calls @release. */
	PEER_MEM_INVALIDATE_UNMAPS = 1 << 0,
};

/*
 * Registers a client, and returns a handle or NULL. A client whose memory
 * never goes away while it is registered passes NULL as @invalidate_callback.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate_callback);

/* Returns when the core has released the last context of the client. */
void ib_unregister_peer_memory_client(void *reg_handle);

#endif
