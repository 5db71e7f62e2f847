/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside the peer-memory server.
 *
 * Locks, outermost first:
 *   peer_memory_mutex   clients in order of registration; held over acquire
 *   mapping_lock        one per region, from G3a on; held over get_pages and
 *                       dma_map, and from there until the driver activates the
 *                       region
 *   tickets_lock        one per client, in G2; held over an invalidation
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

#include "compat.h"
#include "peer_driver.h"

struct ib_device;
struct ib_umem;
struct seq_file;

/* A region without ticket: one that cannot be invalidated. */
#define PEER_NO_ID U64_MAX

/* What the client is told instead, from G3a on. In G2 it is zero. */
#define PEER_NO_TICKET U32_MAX

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
	PEER_INVALIDATE,
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
	PEER_LIVE_WAITS,
	PEER_INVALIDATIONS,
	PEER_INVALIDATIONS_UNKNOWN,
	PEER_INVALIDATIONS_LATE,
	PEER_INVALIDATIONS_PREMATURE,
	PEER_REVOKED_UMEMS,
	PEER_ENDED_IN_CALLBACK,
	PEER_SKIPPED_CLIENTS,
	PEER_TABLES_WITHOUT_PAGES,
	PEER_B2_UNLOCKS,
	PEER_B11_UNSTOPPED,
	PEER_B13_HANGS,
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
	PEER_UNMAPPED_ADDRESS,
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
	PEER_AT_UMEM,
	PEER_AT_ID,
	PEER_AT_MAP,
	PEER_AT_DRIVER,
	PEER_AT_INVALIDATE,
	PEER_AT_STOP,
	PEER_AT_UNMAP,
	PEER_POINTS
};

/* What a test turns on and off: faults of the hardware, bugs of real servers. */
enum peer_switch {
	PEER_NULL_DEVICE,
	PEER_OTHER_DEVICE,
	PEER_SHORT_SEGMENTS,
	PEER_ANY_MEMORY,
	PEER_LIGHT,
	PEER_DROP_INVAL,
	PEER_LATE_TICKETS,
	PEER_B2_STOP_INVERTED,
	PEER_B7_NO_TRIM,
	PEER_B8_DEREG_FIGURES,
	PEER_B11_NO_STOP,
	PEER_B13_NEVER_ACTIVATES,
	PEER_SWITCHES
};

/* In the order of their age. */
enum peer_generation {
	PEER_G2_40,	/* MLNX_OFED 4.0 */
	PEER_G2,	/* 4.1 to 5.0 */
	PEER_G3A,	/* 5.1 to 5.4-2 */
	PEER_G3B,	/* 5.4-3 and later */
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
	struct xarray umems;		/* regions by ticket; in G2 under tickets_lock */
	u32 next_id;
	struct mutex tickets_lock;	/* of G2, as what follows */
	wait_queue_head_t tickets_wait;
	u64 next_ticket;
	struct peer_stats stats;
};

/*
 * mapping_lock to lockdep: setup is one class, everything later another,
 * because an invalidation only waits for a setup that has no client code
 * left to run. That is what PEER_INVALIDATE_EARLY watches over.
 */
enum {
	PEER_LOCK_SETUP,
	PEER_LOCK_LATER,
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
	u64 id;
	bool can_invalidate;		/* the driver said so */
	struct device *device;		/* does DMA */
	struct device *dma_device;	/* which the client is told to map for */
	size_t length;
	size_t npages;

	struct mutex mapping_lock;
	wait_queue_head_t wait;		/* for phase and for mapping_lock */
	enum peer_phase phase;
	/* under mapping_lock */
	enum peer_state state;
	bool setup_held;		/* the registering thread still has the lock */
	bool b11_unstopped;		/* nobody will stop it */
	bool b13_stuck;			/* real servers hold the lock for ever */
	umem_invalidate_func_t invalidate;
	void *invalidate_priv;
	struct sg_table table;		/* the client's */
	int nmap;			/* how many entries it said, up to G3a */
	struct sg_table table_seen;
	bool borrowed;			/* the driver has the client's list itself */
	u32 table_sum;

	atomic_t in_flight;		/* invalidations that have found it */
	unsigned long live;		/* bits: what is counted of it, see peer_set_live() */

	/* G2 only, but for `ending` under tickets_lock */
	atomic_t ending;		/* by deregistration, by invalidation */
	bool dereg_begun;		/* the deregistering thread's own */
	bool invalidated_early;
	struct completion ended;	/* the invalidation that ended it is through */
	struct completion forgotten;	/* the deregistration took the ticket back */
};

/* peer_client.c */
struct peer_client *peer_client_choose(unsigned long addr, size_t size,
				       bool can_invalidate, void **context);
void peer_client_put(struct peer_client *client);
struct peer_client *peer_client_enter(void *handle);
void peer_client_leave(struct peer_client *client);
int peer_client_take_name(const char *name);

/* peer_umem.c */
int peer_umem_mapped(struct peer_umem *p, unsigned long page_size);
void peer_umem_unmap(struct peer_umem *p);
void peer_umem_invalidated(struct peer_umem *p);
void peer_umem_release(struct peer_umem *p);
void peer_umem_free(struct kref *kref);
void peer_unlock(struct peer_umem *p);

/* peer_invalidate.c */
int peer_invalidate(void *handle, u64 core_context);
void peer_tell_deadlock(struct peer_umem *p, const char *what);

/* peer_g2.c */
int peer_g2_setup(struct peer_umem *p);
int peer_g2_activate(struct peer_umem *p, umem_invalidate_func_t func, void *priv);
void peer_g2_begin_dereg(struct peer_umem *p);
void peer_g2_dereg(struct peer_umem *p);
void peer_g2_invalidate(struct peer_client *client, u64 ticket);

static inline bool peer_is_g2(const struct peer_client *client)
{
	return client->generation <= PEER_G2;
}

/* peer_calls.c */
int peer_call_acquire(struct peer_client *client, unsigned long addr,
		      size_t size, void **context);
int peer_call_get_pages(struct peer_umem *p);
int peer_call_dma_map(struct peer_umem *p);
unsigned long peer_call_get_page_size(struct peer_umem *p);
void peer_call_dma_unmap(struct peer_umem *p);
void peer_call_put_pages(struct peer_umem *p);
void peer_call_release(struct peer_client *client, void *context);
void peer_set_live(struct peer_umem *p, enum peer_counter which, bool live);
bool peer_in_call(struct peer_umem *p);
bool peer_describe_call(struct peer_umem *p, char *text, size_t size);
void peer_show_calls(struct seq_file *m);

/* peer_table.c */
int peer_table_check(struct peer_umem *p, unsigned long page_size);
void peer_table_check_mapped(struct peer_umem *p);
void peer_table_verify(struct peer_umem *p);
void peer_table_free(struct peer_umem *p);

/* peer_device.c */
struct device *peer_device_get(struct ib_device *ibdev);
struct device *peer_device_told(struct device *dev);
size_t peer_device_resolve(struct device *dev, dma_addr_t dma, size_t length,
			   phys_addr_t *phys);

/* peer_sysfs.c */
extern const struct kobj_type peer_client_type;
int peer_sysfs_add(struct peer_client *client);
void peer_sysfs_remove(struct peer_client *client);
int peer_sysfs_squat(const char *name);

/* peer_lab.c */
void peer_count(enum peer_counter which, s64 by);
void peer_clock(enum peer_op op, u64 ticks);
__printf(3, 4)
void peer_violation(struct peer_client *client, enum peer_violation kind,
		    const char *format, ...);
const char *peer_op_name(enum peer_op op);

/* peer_knobs.c */
struct dentry;
void peer_knobs_create(struct dentry *dir);
void peer_hold(enum peer_point point);
int peer_fail(enum peer_point point);
bool peer_switched(enum peer_switch which);

/* peer_consumer.c */
void peer_consumer_create(struct dentry *dir);

#endif
