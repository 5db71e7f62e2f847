/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The C half of the module, which Rust calls: macros and inline functions of the kernel and of
 * the neighbours' headers, and records that C prints for Rust.
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
 * The structure that is registered with the core: 152 bytes. Today's cores take the last 16 bytes
 * for the extension's size and flags, MLNX_OFED 4.1 to 5.0 for pointers to functions, and other
 * cores ignore these bytes. Zeros suit all cores.
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

/* Tells whether NVIDIA's own client, nvidia_peermem, is loaded. */
bool nvpm_peermem_loaded(void);
bool nvpm_try_module_get(void);
void nvpm_module_put(void);
/* Tells whether the rate limit of the module's warnings allows another warning. */
bool nvpm_ratelimit(void);

/* core.c: whether the core's header has struct peer_memory_client_ex, and which cores have it. */
extern const bool nvpm_core_has_ex;
extern const char *const nvpm_core_api;

/* process.c */
void nvpm_cond_resched(void);
/* Returns the seconds that jiffies have counted. */
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
/* Tells whether the calling thread is about to end. */
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
 * A thread waits for a registration to change its phase. nvpm_phase_wait() returns when
 * nvpm_phase_wake() was called after nvpm_phase_count() had returned @count.
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
/* Returns @dev as a PCI device, or NULL. */
struct pci_dev *nvpm_pci_dev(struct device *dev);
/* Tells whether the device's driver stops the device when the core invalidates a registration. */
bool nvpm_can_invalidate(struct device *dev);
u32 nvpm_max_segment(struct device *dev);
/* Stores the device's address on PCI: the domain, and the bus with devfn. */
void nvpm_pci_address(struct device *dev, u32 *domain, u16 *devfn);
/* Declared here as in linux/pci.h, because that header would give bindgen much to process. */
struct pci_dev *pci_dev_get(struct pci_dev *dev);
void pci_dev_put(struct pci_dev *dev);
/* Tells whether the device has not been removed. */
bool nvpm_is_registered(struct device *dev);

int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr);
void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len);

/* A range of I/O virtual addresses for extents that are not neighbours. */
struct nvpm_iova {
	u64 state[2];	/* a struct dma_iova_state */
};

/* Allocates a range of @len bytes, of which the first is for @phys. False if that is impossible. */
bool nvpm_iova_alloc(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 len);
/* Maps an extent after the @linked bytes that are mapped in the range already. */
int nvpm_iova_link(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 linked, u64 len);
int nvpm_iova_sync(struct device *dev, struct nvpm_iova *iova, u64 linked, u64 *addr);
/* Destroys a range of which the first @linked bytes are linked. */
void nvpm_iova_destroy(struct device *dev, struct nvpm_iova *iova, u64 linked);

/* Calls sg_alloc_table() with GFP_KERNEL. */
int nvpm_sg_alloc(struct sg_table *table, u32 entries);
/* Calls sg_next(), which is an inline function in some kernels. */
struct scatterlist *nvpm_sg_next(struct scatterlist *entry);

/* nvidia.c: pages that stay pinned until they are put. */
int nvpm_get_pages_persistent(u64 addr, u64 len, struct nvidia_p2p_page_table **table);
int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table);
/* These functions tell whether the driver's object has a version that this module knows. */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table);
bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping);
/* Returns the UUID of the GPU, 16 bytes; or NULL, also if the table's version is not known. */
const u8 *nvpm_page_table_uuid(const struct nvidia_p2p_page_table *table);
/*
 * Tells whether the CPU caches these pages, because they are behind a coherent link. Negative
 * if the kernel has not onlined such pages yet.
 */
int nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table);

/* regions.c: the state of a registration in /proc/driver/nv_peer_mem/regions. */
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

/* The data for a line of /proc/driver/nv_peer_mem/regions. */
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

/* In Rust: copies the first registration with a key of @key or above. Returns its key, or 0. */
u64 nvpm_region_from(u64 key, struct nvpm_region *region);

/* pairs.c. In Rust: calls nvpm_pair_line() for each pair whose map type is known. */
void nvpm_pairs_each(void *file);
void nvpm_pair_line(void *file, const u8 *uuid, struct device *dev, const char *map_type);

/* lists.c: both files of proc. Removing files waits for their readers, also in statistics.c. */
int nvpm_lists_create(void);
void nvpm_lists_remove(void);

/* The clients. A registration stores the number of its client. */
enum nvpm_client_kind {
	NVPM_PERSISTENT,
	NVPM_REVOCABLE,
	NVPM_CATCH_ALL,
	NVPM_CLIENTS
};

/* statistics.c: the counters, each with its own file. Rust counts, and C reads. */
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

/* The clients' names must outlive the files. A client that is not registered has the name NULL. */
int nvpm_statistics_create(const char *const names[NVPM_CLIENTS]);
void nvpm_statistics_remove(void);
/* Returns the name of a registered client. Must be called while the statistics' files exist. */
const char *nvpm_client_name(enum nvpm_client_kind kind);

#endif
