/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interface between the C files and the Rust files of the module. Rust calls C for macros and
 * inline functions of the kernel and of the neighbours' headers, and C prints records of Rust.
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
 * The structure that the module registers with the core has 152 bytes. Current cores read the
 * extension's size and flags from the last 16 bytes. MLNX_OFED 4.1 to 5.0 reads two pointers to
 * functions from the same bytes, and other cores ignore the bytes. All cores accept zeros.
 */
struct nvpm_client {
	struct peer_memory_client client;
#ifndef NVPM_CORE_PRIVATE_DATA
	size_t ex_size;
	u32 flags;
	u32 padding;	/* has a name, so that initializers set it to zero */
#endif
};

/* module.c: the values of the files in /sys/module/nv_peer_mem/parameters. */
extern uint nvpm_peerdirect_support;
extern uint nvpm_persistent_api_support;

/*
 * Tells whether another module serves GPU memory: NVIDIA's nvidia_peermem, or this module under its
 * other name. Prints an error with the name of such a module.
 */
bool nvpm_other_serves(void);
bool nvpm_try_module_get(void);
void nvpm_module_put(void);
/* Tells whether the rate limit of the module's warnings allows another warning. */
bool nvpm_ratelimit(void);

/*
 * core.c: the flags that a client has in the extension, or 0 if the core's header has no struct
 * peer_memory_client_ex; and which cores have the same header.
 */
extern const u32 nvpm_core_flags;
extern const char *const nvpm_core_api;

/* process.c */
void nvpm_cond_resched(void);
/* Returns a time in seconds. Only the difference of two results has a meaning. */
u32 nvpm_seconds(void);

/* Identifies a process. A later process may have the same tgid, but then its born is different. */
struct nvpm_process {
	u64 born;	/* nanoseconds since boot */
	s32 tgid;	/* in the initial PID namespace */
	u32 uid;
};

void nvpm_current_process(struct nvpm_process *process);
bool nvpm_is_current(const struct nvpm_process *process);
/* Copies the process's name, 15 bytes padded with zeros. */
void nvpm_current_comm(u8 *comm);
s32 nvpm_current_tid(void);
/* Tells whether the calling thread is about to end. */
bool nvpm_current_exiting(void);

/* locks.c: the spin locks that protect Rust's tables. */
enum nvpm_lock_name {
	NVPM_LOCK_REGISTRY,
	NVPM_LOCK_PAIRS,
	NVPM_LOCKS
};

void nvpm_lock(enum nvpm_lock_name name);
void nvpm_unlock(enum nvpm_lock_name name);

/*
 * These functions take and release the read-write semaphore. Pinning takes the semaphore shared,
 * and unpinning takes it exclusively.
 */
void nvpm_pin_lock(void);
void nvpm_pin_unlock(void);
void nvpm_unpin_lock(void);
void nvpm_unpin_unlock(void);

/*
 * These functions let a thread wait until a registration's phase changes. nvpm_phase_wait() returns
 * when nvpm_phase_wake() has been called since nvpm_phase_count() returned @count.
 */
u32 nvpm_phase_count(void);
void nvpm_phase_wait(u32 count);
void nvpm_phase_wake(void);

/*
 * callbacks.c: between nvpm_callbacks_begin() and nvpm_callbacks_end(), nv_peer_mem_callback passes
 * the driver's callbacks on to nvpm_revoke(), which is in Rust. When nvpm_callbacks_end() returns,
 * nvpm_revoke() is not running any more. nvpm_callbacks_begin() returns 0 or a negative error
 * number.
 */
int nvpm_callbacks_begin(void);
void nvpm_callbacks_end(void);
void nvpm_revoke(u64 number);

/* dma.c: the number of bytes in a page of the kernel. */
extern const u64 nvpm_page_size;
/* Returns the PCI device whose struct device is @dev, or NULL if @dev is NULL or no PCI device. */
struct pci_dev *nvpm_pci_dev(struct device *dev);
/* Tells whether the device's driver stops the device when the core invalidates a registration. */
bool nvpm_can_invalidate(struct device *dev);
u32 nvpm_max_segment(struct device *dev);
/*
 * Stores the domain of the device's address on PCI in @domain, and the bus and the devfn in @devfn.
 */
void nvpm_pci_address(struct device *dev, u32 *domain, u16 *devfn);
/* Declared as in linux/pci.h, which is not included because bindgen would have to process it. */
struct pci_dev *pci_dev_get(struct pci_dev *dev);
void pci_dev_put(struct pci_dev *dev);
/* Returns true until the device is removed. */
bool nvpm_is_registered(struct device *dev);

int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr);
void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len);

/* A range of I/O virtual addresses, into which several extents can be mapped. */
struct nvpm_iova {
	u64 state[2];	/* a struct dma_iova_state */
};

/*
 * Allocates a range of @len bytes for memory whose first byte is at @phys. Returns false if the
 * kernel or the device does not support such a range.
 */
bool nvpm_iova_alloc(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 len);
/* Maps an extent behind the @linked bytes that are already mapped in the range. */
int nvpm_iova_link(struct device *dev, struct nvpm_iova *iova, u64 phys, u64 linked, u64 len);
int nvpm_iova_sync(struct device *dev, struct nvpm_iova *iova, u64 linked, u64 *addr);
/*
 * Unmaps the first @linked bytes of a range, and frees the range. @linked must be the number of all
 * mapped bytes.
 */
void nvpm_iova_destroy(struct device *dev, struct nvpm_iova *iova, u64 linked);

/* Calls sg_alloc_table() with GFP_KERNEL. */
int nvpm_sg_alloc(struct sg_table *table, u32 entries);
/* Calls sg_next(), which is an inline function in some kernels. */
struct scatterlist *nvpm_sg_next(struct scatterlist *entry);

/* nvidia.c: pin and unpin pages persistently. Both return 0 or a negative error number. */
int nvpm_get_pages_persistent(u64 addr, u64 len, struct nvidia_p2p_page_table **table);
int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table);
/* Each function tells whether this module knows the version of the driver's object. */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table);
bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping);
/* Returns the 16 bytes of the GPU's UUID, or NULL if the driver or the module does not know it. */
const u8 *nvpm_page_table_uuid(const struct nvidia_p2p_page_table *table);
/*
 * Returns 1 if the pages are behind a coherent link, so that the CPU caches them, and 0 if not.
 * Returns a negative error number if the kernel has not onlined such pages yet.
 */
int nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table);

/* proc.c: the state of a registration in /proc/driver/nv_peer_mem/regions. */
enum nvpm_region_state {
	NVPM_REGION_PINNING,	/* the driver has not answered yet */
	NVPM_REGION_PINNED,
	NVPM_REGION_MAPPED,
	NVPM_REGION_UNMAPPED,
	NVPM_REGION_REVOKING,	/* the free of the memory waits for the RDMA core */
	NVPM_REGION_REVOKED,
	NVPM_REGION_ORPHANED,	/* deregistered, and pinned until the memory is freed */
};

/* No device has this domain on PCI. */
#define NVPM_NO_DEVICE 0xffffffffu

/* The data of one line of /proc/driver/nv_peer_mem/regions. */
struct nvpm_region {
	u64 address;
	u64 len;
	struct nvpm_process process;
	u32 since;	/* nvpm_seconds() at registration */
	u32 domain;	/* of the device on PCI, or NVPM_NO_DEVICE */
	u16 devfn;	/* bus and devfn of the device */
	u8 client;	/* an enum nvpm_client_kind */
	u8 state;
	u8 comm[16];
};

/*
 * In Rust: copies the registration with the lowest key that is not below @key. Returns this
 * registration's key, or 0 if there is no such registration.
 */
u64 nvpm_region_from(u64 key, struct nvpm_region *region);

/* In Rust: calls nvpm_pair_line(), which is in proc.c, for each pair whose map type is known. */
void nvpm_pairs_each(void *file);
void nvpm_pair_line(void *file, const u8 *uuid, struct device *dev, const char *map_type);

/*
 * proc.c: create and remove both files in proc. Removing the files waits for their readers, as
 * removing the files of statistics.c does.
 */
int nvpm_lists_create(void);
void nvpm_lists_remove(void);

/*
 * The clients, in the order in which the core asks them. A registration stores one of these
 * numbers.
 */
enum nvpm_client_kind {
	NVPM_PERSISTENT,
	NVPM_REVOCABLE,
	NVPM_CATCH_ALL,
	NVPM_CLIENTS
};

/*
 * statistics.c: the counters. Each counter has its own file. Rust changes the counters, and C only
 * reads them.
 */
enum nvpm_counter {
	NVPM_COUNT_REACHABLE_REGIONS,	/* now reachable by a device */
	NVPM_COUNT_BYTES,	/* pinned by reachable registrations */
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

/*
 * Creates the files. The strings in @names must exist until the files are removed. The name of a
 * client that is not registered is NULL.
 */
int nvpm_statistics_create(const char *const names[NVPM_CLIENTS]);
void nvpm_statistics_remove(void);
/* Returns the name of a registered client. May be called only while the statistics' files exist. */
const char *nvpm_client_name(enum nvpm_client_kind kind);

#endif
