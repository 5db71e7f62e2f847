/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside the peer-memory server.
 *
 * Locks, outermost first:
 *   peer_memory_mutex   clients in order of registration; held over acquire
 *   mapping_lock        one per region; held over get_pages and dma_map, and
 *                       from there until the driver activates the region
 *   spinlocks of peer_client.c, peer_calls.c and peer_lab.c: leaves
 */
#ifndef PEER_SERVER_H
#define PEER_SERVER_H

#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/peer_mem.h>

#include "peer_driver.h"

struct ib_device;
struct ib_umem;

/* The ticket of a region that cannot be invalidated. */
#define PEER_NO_ID U32_MAX

/* How long an invalidation waits before the server calls it a deadlock. */
#define PEER_DEADLOCK_SECONDS 10

/* What the server and a client do to each other. */
enum peer_op {
	PEER_ACQUIRE,
	PEER_GET_PAGES,
	PEER_DMA_MAP,
	PEER_GET_PAGE_SIZE,
	PEER_DMA_UNMAP,
	PEER_PUT_PAGES,
	PEER_RELEASE,
	PEER_REGISTER,
	PEER_UNREGISTER,
	PEER_ACTIVATE,
	PEER_STOP,
	PEER_INVALIDATE,
	PEER_INVALIDATE_DONE,
	PEER_OPS
};

enum peer_counter {
	PEER_LIVE_CLIENTS,
	PEER_LIVE_UMEMS,
	PEER_LIVE_CONTEXTS,
	PEER_LIVE_GOT,
	PEER_LIVE_MAPPED,
	PEER_LIVE_PINNED_PAGES,
	PEER_LIVE_INVALIDATIONS,
	PEER_INVALIDATIONS,
	PEER_INVALIDATIONS_UNKNOWN,
	PEER_INVALIDATIONS_LATE,
	PEER_REVOKED_UMEMS,
	PEER_FAILED_REGISTRATIONS,
	PEER_INJECTED_FAILURES,
	PEER_B2_UNLOCKS,
	PEER_COUNTERS
};

enum peer_violation {
	PEER_BAD_CLIENT,
	PEER_BAD_HANDLE,
	PEER_REENTRY,
	PEER_NO_CONTEXT,
	PEER_BAD_RETURN,
	PEER_CONTEXT_LEAK,
	PEER_BAD_PAGE_SIZE,
	PEER_BAD_TABLE,
	PEER_BAD_ENTRY,
	PEER_BAD_LENGTH,
	PEER_BAD_ADDRESS,
	PEER_TABLE_CHANGED,
	PEER_INVALIDATE_ATOMIC,
	PEER_INVALIDATE_TICKET,
	PEER_INVALIDATE_EARLY,
	PEER_INVALIDATE_DEADLOCK,
	PEER_RELEASE_EARLY,
	PEER_UNREGISTER_EARLY,
	PEER_B2_DEADLOCK,
	PEER_VIOLATIONS
};

/* Moments at which the lab can make a call wait or fail. */
enum peer_point {
	PEER_AT_REGISTER,
	PEER_AT_UMEM,
	PEER_AT_ID,
	PEER_AT_MAP,
	PEER_AT_DRIVER,
	PEER_AT_INVALIDATE,
	PEER_AT_STOP,
	PEER_AT_RELEASE,
	PEER_POINTS
};

enum peer_generation {
	PEER_G3A,
	PEER_G3B,
};

struct peer_stats {
	atomic64_t alloc_mrs;
	atomic64_t dealloc_mrs;
	atomic64_t reg_pages;
	atomic64_t dereg_pages;
	atomic64_t reg_bytes;
	atomic64_t dereg_bytes;
	atomic64_t free_callbacks;
};

/* A registered client; the handle that it got is a pointer to this. */
struct peer_client {
	struct kobject kobj;
	const struct peer_memory_client *ops;
	enum peer_generation generation;
	bool revocable;			/* came with an invalidate callback */
	bool unmaps;			/* PEER_MEM_INVALIDATE_UNMAPS */
	bool in_sysfs;
	struct list_head entry;		/* under peer_memory_mutex */
	struct list_head live;		/* under the lock of live handles */
	unsigned int invalidations;	/* in flight; under the same lock */
	refcount_t users;		/* its regions, and its registration */
	struct completion unused;
	struct xarray umems;		/* regions by ticket */
	u32 next_id;
	struct peer_stats stats;
};

enum peer_state {
	PEER_UNMAPPED,
	PEER_MAPPED,
	PEER_INVALIDATED,
};

/* How far a registration has come, for those who wait without the lock. */
enum peer_phase {
	PEER_PINNING,
	PEER_MAPPING,
	PEER_READY,
	PEER_FAILED,
};

/* What the server knows about one umem. */
struct peer_umem {
	struct kref kref;		/* the umem's, and invalidations in flight */
	struct ib_umem *umem;
	struct peer_client *client;
	void *context;
	u32 id;
	struct device *dma_device;
	size_t length;
	size_t npages;

	struct mutex mapping_lock;
	wait_queue_head_t wait;		/* for phase and for mapping_lock */
	enum peer_phase phase;
	/* under mapping_lock */
	enum peer_state state;
	bool setup_held;		/* the registering thread still has the lock */
	umem_invalidate_func_t invalidate;
	void *invalidate_priv;
	struct sg_table table;		/* the client's */
	struct sg_table table_seen;
	u32 table_sum;

	atomic_t in_flight;		/* invalidations that have found it */
};

/* peer_client.c */
struct peer_client *peer_client_choose(unsigned long addr, size_t size,
				       bool can_invalidate, void **context);
void peer_client_put(struct peer_client *client);
struct peer_client *peer_client_enter(void *handle);
void peer_client_leave(struct peer_client *client);

/* peer_umem.c */
int peer_invalidate(void *handle, u64 core_context);

/* peer_calls.c */
int peer_call_acquire(struct peer_client *client, unsigned long addr,
		      size_t size, void **context);
int peer_call_get_pages(struct peer_umem *p);
int peer_call_dma_map(struct peer_umem *p);
unsigned long peer_call_get_page_size(struct peer_umem *p);
void peer_call_dma_unmap(struct peer_umem *p);
void peer_call_put_pages(struct peer_umem *p);
void peer_call_release(struct peer_client *client, u32 id, void *context);
bool peer_in_call(struct peer_umem *p);
bool peer_describe_call(struct peer_umem *p, char *text, size_t size);

/* peer_table.c */
int peer_table_check(struct peer_umem *p, unsigned long page_size);
void peer_table_verify(struct peer_umem *p);
void peer_table_free(struct peer_umem *p);

/* peer_device.c */
struct device *peer_device_get(struct ib_device *ibdev);
size_t peer_device_resolve(struct device *dev, dma_addr_t dma, size_t length,
			   phys_addr_t *phys);

/* peer_sysfs.c */
extern const struct kobj_type peer_client_type;
int peer_sysfs_add(struct peer_client *client);
void peer_sysfs_remove(struct peer_client *client);

/* peer_lab.c */
void peer_count(enum peer_counter which, s64 by);
void peer_trace(struct peer_client *client, enum peer_op op, u32 id, long ret);
__printf(3, 4)
void peer_violation(struct peer_client *client, enum peer_violation kind,
		    const char *format, ...);
const char *peer_op_name(enum peer_op op);

/* peer_knobs.c */
struct dentry;
void peer_knobs_create(struct dentry *dir);
void peer_delay(enum peer_point point);
int peer_fail(enum peer_point point);
bool peer_knob_null_device(void);
bool peer_knob_short_segments(void);
bool peer_knob_any_memory(void);
bool peer_knob_drop_inval(void);
bool peer_knob_b2(void);

#endif
