/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The C half of the module, as Rust calls it: macros and inline functions of the
 * kernel and of the neighbours' headers, and the records that C prints for Rust.
 */
#ifndef NVPM_H
#define NVPM_H

#include <linux/scatterlist.h>
#include <linux/types.h>

#include "../callback/callback.h"

/* Included by path, because the kernel may have a peer_mem.h besides OFED's. */
#include NVPM_PEER_MEM

struct device;
struct pci_dev;
struct nvidia_p2p_dma_mapping;
struct nvidia_p2p_page_table;

/*
 * What is registered with the core: 152 bytes. The last 16 are the extension's
 * size and flags in today's cores, pointers to functions in MLNX_OFED 4.1 to 5.0,
 * and other cores ignore them. Zeros suit all of them.
 */
struct nvpm_client {
	struct peer_memory_client client;
#ifndef NVPM_CORE_PRIVATE_DATA
	size_t ex_size;
	u32 flags;
	u32 padding; /* has a name, so that initializers set it to zero */
#endif
};

/* module.c: parameters under /sys/module/nv_peer_mem/parameters. */
extern uint nvpm_peerdirect_support;
extern uint nvpm_persistent_api_support;

/* Whether NVIDIA's own client, nvidia_peermem, is loaded. */
bool nvpm_peermem_loaded(void);
bool nvpm_try_module_get(void);
void nvpm_module_put(void);
/* Whether the rate limit of the module's warnings lets one more through. */
bool nvpm_ratelimit(void);

/* core.c: whether the core's header has struct peer_memory_client_ex, and which cores have it. */
extern const bool nvpm_core_has_ex;
extern const char *const nvpm_core_api;

/* process.c */
void nvpm_cond_resched(void);
/* Seconds, as jiffies count them. */
u32 nvpm_seconds(void);

/* Identifies a process: born tells it from a later process with the same tgid. */
struct nvpm_process {
	u64 born;	/* nanoseconds since boot */
	s32 tgid;	/* in the initial PID namespace */
	u32 uid;
};

void nvpm_current_process(struct nvpm_process *process);
/* Copies the process's name, 15 bytes padded with zeros. */
void nvpm_current_comm(u8 *comm);
s32 nvpm_current_tid(void);
/* Whether the thread is about to end. */
bool nvpm_current_exiting(void);

/* locks.c: the spin locks of Rust's tables. */
enum nvpm_lock_name {
	NVPM_LOCK_REGISTRY,
	NVPM_LOCK_PAIRS,
	NVPM_LOCKS
};

void nvpm_lock(enum nvpm_lock_name name);
void nvpm_unlock(enum nvpm_lock_name name);

/* The read-write semaphore between pinning (shared) and unpinning (exclusive). */
void nvpm_unpin_lock(bool exclusive);
void nvpm_unpin_unlock(bool exclusive);

/*
 * Waiting for a registration to change its phase. nvpm_phase_wait() returns when
 * nvpm_phase_wake() was called after @count was read.
 */
u32 nvpm_phase_count(void);
void nvpm_phase_wait(u32 count);
void nvpm_phase_wake(void);

/*
 * callbacks.c: from begin to end, nv_peer_mem_callback passes the driver's callbacks on to
 * nvpm_revoke() in Rust. No callback is running when nvpm_callbacks_end() returns.
 */
int nvpm_callbacks_begin(void);
void nvpm_callbacks_end(void);
void nvpm_revoke(u64 number);

/* dma.c: bytes of a page. */
extern const u64 nvpm_page_size;
/* The PCI device that @dev is, or NULL. */
struct pci_dev *nvpm_pci_dev(struct device *dev);
/* Whether the device's driver stops the device when the core invalidates a registration. */
bool nvpm_can_invalidate(struct device *dev);
u32 nvpm_max_segment(struct device *dev);
/* The device's address on PCI: domain, and bus and devfn. */
void nvpm_pci_address(struct device *dev, u32 *domain, u16 *devfn);
/* Declared as in linux/pci.h, which would give bindgen much to do. */
struct pci_dev *pci_dev_get(struct pci_dev *dev);
void pci_dev_put(struct pci_dev *dev);
/* Whether the device has not been removed. */
bool nvpm_is_registered(struct device *dev);

int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr);
void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len);

/* A range of I/O virtual addresses for extents that are no neighbours. */
struct nvpm_iova {
	u64 state[2];	/* a struct dma_iova_state */
};

/* Allocates a range of @len bytes, the first of them for @phys; false where that cannot be. */
bool nvpm_iova_alloc(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 len);
/* Maps an extent after the @linked bytes that are mapped in the range already. */
int nvpm_iova_link(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 linked, u64 len);
int nvpm_iova_sync(struct device *dev, struct nvpm_iova *iova, u64 linked, u64 *addr);
/* Also of a range that is linked in part. */
void nvpm_iova_destroy(struct device *dev, struct nvpm_iova *iova, u64 linked);

/* sg_alloc_table() with GFP_KERNEL. */
int nvpm_sg_alloc(struct sg_table *table, u32 entries);
/* sg_next(), which is an inline function in some kernels. */
struct scatterlist *nvpm_sg_next(struct scatterlist *entry);

/* nvidia.c: pages that stay pinned until they are put. */
int nvpm_get_pages_persistent(u64 addr, u64 len, struct nvidia_p2p_page_table **table);
int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table);
/* Whether the driver's object has a version that this module knows. */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table);
bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping);
/* The UUID of the GPU whose memory it is, 16 bytes; or NULL, also if the version is not known. */
const u8 *nvpm_page_table_uuid(const struct nvidia_p2p_page_table *table);
/*
 * Whether the CPU caches these pages: memory behind a coherent link. Negative if it is
 * such memory and the kernel has not onlined it.
 */
int nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table);

/* regions.c: the state of a registration, as /proc/driver/nv_peer_mem/regions tells it. */
enum nvpm_region_state {
	NVPM_REGION_PINNING,	/* the driver has been asked */
	NVPM_REGION_PINNED,
	NVPM_REGION_MAPPED,
	NVPM_REGION_UNMAPPED,
	NVPM_REGION_REVOKED,
	NVPM_REGION_ORPHANED,	/* deregistered, and pinned until the memory is freed */
};

/* No device has this domain on PCI. */
#define NVPM_NO_DEVICE 0xffffffffu

/* A line of that file. */
struct nvpm_region {
	u64 address;
	u64 len;
	struct nvpm_process process;
	u32 since;	/* nvpm_seconds() when it was registered */
	u32 domain;	/* of the device on PCI, or NVPM_NO_DEVICE */
	u16 devfn;	/* ... bus and devfn */
	u8 client;	/* an enum nvpm_client_kind */
	u8 state;
	u8 comm[16];
};

/* Rust's: the first registration with a key of @key or above, and its key; 0 for none. */
u64 nvpm_region_from(u64 key, struct nvpm_region *region);

/* pairs.c. Rust's: calls nvpm_pair_line() for each pair whose map type is known. */
void nvpm_pairs_each(void *file);
void nvpm_pair_line(void *file, const u8 *uuid, struct device *dev, const char *map_type);

/* lists.c: both files. Removing waits for their readers, here and below. */
int nvpm_lists_create(void);
void nvpm_lists_remove(void);

/* The clients, by which a registration names its own. */
enum nvpm_client_kind {
	NVPM_PERSISTENT,
	NVPM_REVOCABLE,
	NVPM_CATCH_ALL,
	NVPM_CLIENTS
};

/* statistics.c: what is counted, each in a file of its own. Rust counts, and C reads. */
enum nvpm_counter {
	NVPM_COUNT_REACHABLE_REGIONS,	/* by a device, now */
	NVPM_COUNT_BYTES,	/* pinned, of these */
	NVPM_COUNT_REGISTRATIONS,
	NVPM_COUNT_REVOCATIONS,
	NVPM_COUNT_FAILED_NO_MEMORY,
	NVPM_COUNT_FAILED_NOT_SUPPORTED,
	NVPM_COUNT_FAILED_FREED,
	NVPM_COUNT_FAILED_DRIVER,
	NVPM_COUNT_FAILED_ORPHANS,
	NVPM_COUNT_ORPHANS,	/* now */
	NVPM_COUNTERS
};

extern u64 nvpm_counters[NVPM_COUNTERS];

/* The clients' names, NULL where one is not registered, must outlive the files. */
int nvpm_statistics_create(const char *const names[NVPM_CLIENTS]);
void nvpm_statistics_remove(void);
/* Returns the name of a registered client. Called while those files exist. */
const char *nvpm_client_name(enum nvpm_client_kind kind);

#endif
