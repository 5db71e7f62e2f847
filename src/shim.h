/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What only C can say: macros and inline functions of the kernel and of the
 * neighbours' headers, as functions that Rust can call.
 */
#ifndef NVPM_SHIM_H
#define NVPM_SHIM_H

#include <linux/scatterlist.h>
#include <linux/types.h>

/* By its path: the kernel may have one of its own beside that of OFED. */
#include NVPM_PEER_MEM

struct device;
struct nvpm_gpu;
struct nvpm_left;
struct pci_dev;
struct nvidia_p2p_dma_mapping;
struct nvidia_p2p_page_table;

/* Parameters under /sys/module/nv_peer_mem/parameters. */
extern uint nvpm_peerdirect_support;
extern uint nvpm_persistent_api_support;

/*
 * What is registered with the core: 152 bytes, of which the last 16 are the
 * extension's size and flags in today's cores, pointers to functions in
 * MLNX_OFED 4.1 to 5.0, and not looked at in others. Zeros suit them all.
 */
struct nvpm_client {
	struct peer_memory_client client;
#ifndef NVPM_CORE_PRIVATE_DATA
	size_t ex_size;
	u32 flags;
	u32 padding; /* by name, so that it is zero */
#endif
};

/* Fills in the extension, if the core's header has one. */
void nvpm_client_extend(struct nvpm_client *client);

/* What is counted, under /sys/module/nv_peer_mem/statistics. */
enum nvpm_figure {
	NVPM_REGIONS,
	NVPM_BYTES,
	NVPM_REGISTRATIONS,
	NVPM_REVOCATIONS,
	NVPM_FAILED_NO_MEMORY,
	NVPM_FAILED_NOT_SUPPORTED,
	NVPM_FAILED_FREED,
	NVPM_FAILED_DRIVER,
	NVPM_FAILED_LEFT_BEHIND,
	NVPM_LEFT_BEHIND,
};

/* Adds modulo 2^64, from any context. */
void nvpm_count(enum nvpm_figure figure, u64 by);
/* The directory in sysfs; @clients, what it says of them, stays the caller's. */
int nvpm_sysfs_add(const char *clients);
void nvpm_sysfs_remove(void);

extern const u64 nvpm_page_size;
/* Whether nvidia_peermem is loaded. */
bool nvpm_peermem_loaded(void);
void nvpm_pause(void);
void nvpm_give_way(void);
bool nvpm_may_complain(void);
bool nvpm_module_get(void);
void nvpm_module_put(void);

/* ids.c: a table of objects under numbers that are never used twice; 0 is none. */
u64 nvpm_ids_add(const void *object);
void *nvpm_ids_take(u64 number);
bool nvpm_ids_has(u64 number);

/* A lock for any number of sharers, or one alone. */
void nvpm_gate_enter(bool exclusive);
void nvpm_gate_leave(bool exclusive);

/* dma.c: the PCI device that @dev is, or NULL. */
struct pci_dev *nvpm_pci_dev(struct device *dev);
/* Whether the device's driver reports to the core when a registration is complete. */
bool nvpm_revocable(struct device *dev);
u32 nvpm_max_segment(struct device *dev);

/* One range of addresses behind an IOMMU, for pieces that are not neighbours. */
struct nvpm_range {
	u64 state[2];	/* a struct dma_iova_state */
	u64 linked;	/* bytes that have a place in it */
};

/* Takes a range for @len bytes, the first of them at @phys; false where there is no such thing. */
bool nvpm_range_begin(struct device *dev, struct nvpm_range *range, u64 phys,
		      u64 len);
/* Gives the next piece its place. */
int nvpm_range_add(struct device *dev, struct nvpm_range *range, u64 phys,
		   u64 len);
/* When all pieces have theirs: where it begins. */
int nvpm_range_end(struct device *dev, struct nvpm_range *range, u64 *addr);
/* Also of a range that is not complete. */
void nvpm_range_undo(struct device *dev, struct nvpm_range *range);

/* pairs.c: the driver's verdict on a GPU and a device; 0 is none. */
enum nvpm_verdict {
	NVPM_OURS = 1,	/* what we map is what the driver would map */
	NVPM_DRIVERS,	/* only the driver can map it */
	NVPM_UNASKED,	/* the driver cannot be asked */
	NVPM_REFUSED,	/* the one must not reach the other */
};

/* The GPU of that UUID, 16 bytes or NULL; NULL if there is no memory to remember it. */
struct nvpm_gpu *nvpm_gpu(const u8 *uuid);
s32 nvpm_pair_verdict(const struct nvpm_gpu *gpu, struct device *dev);
/* False if there is no memory to remember it. */
bool nvpm_pair_add(struct nvpm_gpu *gpu, struct device *dev, s32 verdict);
/* All of them, when no region is left. */
void nvpm_pairs_forget(void);
/* A line for each pair; returns the number of bytes. */
size_t nvpm_pairs_text(char *buf, size_t size);

/*
 * processes.c: a process, by what stays its own: another one that gets its number has
 * begun later. As the kernel numbers them outside of all containers.
 */
struct nvpm_process {
	u64 born;	/* in nanoseconds since boot */
	s32 number;
	u32 user;
};

/* The calling process, and thread. */
void nvpm_process(struct nvpm_process *process);
s32 nvpm_thread(void);
/* Whether the calling thread is about to end. */
bool nvpm_exiting(void);
/* A registration of so many GPU pages is left behind; sleeps. */
struct nvpm_left *nvpm_process_leaves(const struct nvpm_process *process, u64 pages);
/* Its memory is freed. */
void nvpm_left_freed(struct nvpm_left *left);
/* Whether the process, or its user, has left so many registrations behind, or GPU pages. */
bool nvpm_process_full(const struct nvpm_process *process, u32 registrations, u64 pages);
bool nvpm_user_full(const struct nvpm_process *process, u32 registrations, u64 pages);

/* regions.c: which client serves a registration. */
enum nvpm_client_kind {
	NVPM_PERSISTENT,
	NVPM_REVOCABLE,
	NVPM_LAST,
	NVPM_CLIENTS,
};

/* What is told of it. */
enum nvpm_region_state {
	NVPM_REGION_PINNING,	/* the driver has been asked */
	NVPM_REGION_REFUSED,
	NVPM_REGION_PINNED,
	NVPM_REGION_MAPPED,
	NVPM_REGION_UNMAPPED,
	NVPM_REGION_REVOKED,
	NVPM_REGION_LEFT,	/* deregistered, and pinned until it is freed */
};

/* The part of a registration that is told. It stays where it is while it is in the list. */
struct nvpm_region {
	u64 link[2];	/* a struct list_head */
	u64 address;
	u64 len;
	struct nvpm_process process;
	u32 since;	/* in seconds, as jiffies count */
	u32 domain;	/* the device's address on PCI */
	u16 place;
	u8 client;
	u8 state;
	u8 comm[16];	/* the process's name for itself, and a zero */
	u32 padding;
};

/* Puts one of the calling process into the list: its address and length, the rest is zero. */
void nvpm_region_begin(struct nvpm_region *region, enum nvpm_client_kind client);
void nvpm_region_is(struct nvpm_region *region, enum nvpm_region_state state);
/* A PCI device has its addresses. */
void nvpm_region_mapped(struct nvpm_region *region, struct device *dev);
/* Takes it out, if it is in. */
void nvpm_region_end(struct nvpm_region *region);
/* The file, with the names of the clients, which stay the caller's. */
int nvpm_regions_add(const char *persistent, const char *revocable, const char *last);
void nvpm_regions_remove(void);

/* sglist.c: a scatterlist that grows. Zeros are an empty one. */
struct nvpm_sg_list {
	struct sg_table table;	/* the list so far, and its entries */
	struct scatterlist *next;	/* free entry, with @room of them */
	u32 room;
	u32 first;	/* entries of the first array */
	u32 size;	/* ... of the last one */
};

/* Makes room at @next. Whether @more than one entry will come is a hint. */
int nvpm_sg_grow(struct nvpm_sg_list *list, bool more);
/* Marks the end, after one entry at least. */
void nvpm_sg_finish(struct nvpm_sg_list *list);
/* Memory that is not RAM, for the device to reach. */
int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr);
void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len);
/* Maps each of the entries of a finished list, and makes their physical addresses bus addresses. */
int nvpm_sg_map(struct device *dev, struct scatterlist *sgl, u32 entries);
void nvpm_sg_unmap(struct device *dev, struct scatterlist *sgl, u32 entries);
/* Also a list that is not finished, or empty; @first entries are in its first array. */
void nvpm_sg_free(struct scatterlist *sgl, u32 first);

/* driver.c: whether the driver's header has pages that are pinned until they are put. */
bool nvpm_has_persistent(void);
int nvpm_get_pages_persistent(u64 addr, u64 len,
			      struct nvidia_p2p_page_table **table);
int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table);
/* Whether the driver's object has a version that this module knows. */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table);
bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping);
/* The UUID of the GPU whose memory it is, 16 bytes, or NULL. */
const u8 *nvpm_page_table_gpu(const struct nvidia_p2p_page_table *table);
/*
 * Whether the CPU caches these pages: memory behind a coherent link. Negative if it is
 * such memory, and the kernel cannot use it yet.
 */
int nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table);

#endif
