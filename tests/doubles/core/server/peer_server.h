/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The internals of the peer-memory server.
 *
 * Locks, outermost first:
 *   peer_memory_mutex   clients in order of registration; held over acquire
 *   peer_umem.lock      from G3A on: held over get_pages and dma_map, and from
 *                       there until the driver activates the region
 *   peer_client.lock    tickets; in G2 held over an invalidation
 *   spinlocks of peer_client.c, peer_calls.c and peer_lab.c: leaves
 */
#ifndef PEER_SERVER_H
#define PEER_SERVER_H

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/export.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/timex.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/peer_mem.h>

#include "compat.h"
#include "peer_driver.h"

/* The ticket of a region that cannot be invalidated. */
#define PEER_NO_ID U64_MAX

/* The ticket that a client receives for such a region from G3A on. In G2 the ticket is zero. */
#define PEER_NO_TICKET U32_MAX

/* The number of seconds for which an invalidation waits before the server reports a deadlock. */
#define PEER_DEADLOCK_SECONDS 10

/* The words of the files in debugfs and sysfs. Calls between the server and a client: */
#define PEER_OPS(x) {							\
	x(acquire) x(get_pages) x(dma_map) x(get_page_size)		\
	x(dma_unmap) x(put_pages) x(release) x(invalidate)		\
}

#define PEER_COUNTERS(x) {						\
	x(live_clients) x(live_umems) x(live_contexts) x(live_got)	\
	x(live_mapped) x(live_invalidations) x(live_waits)		\
	x(invalidations_unknown) x(invalidations_late)			\
	x(invalidations_premature) x(revoked_umems)			\
	x(ended_in_callback) x(skipped_clients) x(tables_without_pages)	\
	x(b2_unlocks) x(b11_unstopped) x(b13_hangs)			\
}

/* Switches for tests: faults of the hardware, bugs of real servers. */
#define PEER_SWITCHES(x) {						\
	x(null_device) x(other_device) x(short_segments)		\
	x(separate_entries)						\
	x(any_memory) x(light) x(no_inval_supp) x(late_tickets)		\
	x(b2_stop_inverted) x(b7_no_trim) x(b8_dereg_figures)		\
	x(b11_no_stop) x(b13_never_activates)				\
}

/* Moments at which a test can make a call fail, or wait. */
#define PEER_FAILS(x) { x(umem) x(id) x(driver) }
#define PEER_HOLDS(x) { x(map) x(driver) x(invalidate) x(stop) x(unmap) }

#define PEER_STATS(x) {							\
	x(alloc_mrs) x(dealloc_mrs) x(reg_pages) x(dereg_pages)		\
	x(reg_bytes) x(dereg_bytes) x(free_callbacks)			\
}

#define PEER_COUNT(name) PEER_##name,
enum peer_counter PEER_COUNTERS(PEER_COUNT);

#define PEER_SWITCH(name) PEER_##name,
enum peer_switch PEER_SWITCHES(PEER_SWITCH);

#define PEER_STAT(name) PEER_##name,
enum peer_stat PEER_STATS(PEER_STAT);

#define PEER_OP(name) PEER_OP_##name,
enum peer_op PEER_OPS(PEER_OP);

#define PEER_FAIL(name) PEER_FAIL_##name,
enum peer_fail PEER_FAILS(PEER_FAIL);

#define PEER_HOLD(name) PEER_HOLD_##name,
enum peer_hold PEER_HOLDS(PEER_HOLD);

/* The oldest generation is first; README.md describes each. */
enum peer_generation {
	PEER_G2,
	PEER_G3A,
	PEER_G3B,
};

/* A mutex with a limit for the time of waiting. */
struct peer_lock {
	struct mutex mutex;
	wait_queue_head_t wait;
};

/* This is a macro, so that lockdep treats locks of clients and locks of regions as two classes. */
#define peer_lock_init(_lock) do {					\
	struct peer_lock *lock = (_lock);				\
									\
	mutex_init(&lock->mutex);					\
	init_waitqueue_head(&lock->wait);				\
} while (0)

/* A registered client. The client's handle is a pointer to this structure. */
struct peer_client {
	struct kobject kobj;
	const struct peer_memory_client *ops;
	enum peer_generation generation;
	bool revocable;			/* the client has got a function to invalidate */
	bool unmaps;			/* PEER_MEM_INVALIDATE_UNMAPS */
	bool leaving;			/* the client unregisters; under peer_memory_mutex */
	struct list_head entry;
	atomic_t invalidations;		/* the number of running invalidations */
	refcount_t users;		/* the client's regions, and its registration */
	struct completion unused;
	struct peer_lock lock;
	struct xarray umems;		/* regions by ticket */
	u64 next_ticket;
	atomic64_t stats[PEER_free_callbacks + 1];
};

/*
 * Lockdep's subclasses of a region's lock: one for setup, another for everything later, because
 * an invalidation only waits for a setup that runs no client code any more. The violation
 * invalidate_early checks this.
 */
enum {
	PEER_LOCK_SETUP,
	PEER_LOCK_LATER,
};

/* The progress of a registration, for threads that wait without the lock. */
enum peer_phase {
	PEER_PINNING,
	PEER_MAPPING,
	PEER_READY,
	PEER_FAILED,
	PEER_ENDED,	/* only in G2: an invalidation has ended it; the client may be gone */
};

/* The server's data of a umem. */
struct peer_umem {
	struct kref kref;		/* references of the umem and of running invalidations */
	struct ib_umem *umem;
	struct peer_client *client;
	void *context;
	u64 id;
	bool can_invalidate;		/* the device's driver can invalidate */
	struct device *device;		/* the device that does the DMA */
	struct device *dma_device;	/* the device for which the client must map */

	struct peer_lock lock;		/* a thread that waits for it also waits for the phase */
	enum peer_phase phase;
	/* The lock protects the members from here to table_sum. */
	bool mapped;			/* the memory was not unmapped or invalidated yet */
	bool setup_held;		/* the registering thread still holds the lock */
	bool b13_stuck;			/* real servers hold the lock for ever */
	umem_invalidate_func_t invalidate;
	void *invalidate_priv;
	unsigned long page_size;	/* the client's answer to get_page_size */
	struct sg_table table;		/* the table that the client has filled */
	int nmap;			/* the client's number of entries; only up to G3A */
	struct sg_table table_seen;
	bool borrowed;			/* the driver uses the client's list, and no copy */
	u32 table_sum;

	atomic_t in_flight;		/* the number of invalidations that have found this umem */
	unsigned long live;		/* a bit for each counted part, see peer_set_live() */

	/* Only G2 has these members. The client's lock protects all except the first. */
	atomic_t ending;		/* the number of threads that end the umem; the first goes on */
	bool dereg_begun;		/* only the deregistering thread uses it */
	bool invalidated_early;
	bool forgotten;			/* the deregistration took the ticket back */
};

static inline bool peer_is_g2(const struct peer_client *client)
{
	return client->generation == PEER_G2;
}

/* Waits under a lock for a condition. Reports a deadlock after some seconds, and then continues. */
#define peer_wait_or_tell(_client, _ticket, _what, _lock, _condition)		\
({										\
	bool met;								\
										\
	peer_count(PEER_live_waits, 1);						\
	met = wait_event_timeout((_lock)->wait, _condition,			\
				 PEER_DEADLOCK_SECONDS * HZ);			\
	peer_count(PEER_live_waits, -1);					\
	if (!met)								\
		peer_violation(_client, "invalidate_deadlock",			\
			       "invalidation of region %llu gave up waiting for its %s", \
			       _ticket, _what);					\
	met;									\
})

/* peer_client.c */
struct peer_client *peer_client_choose(unsigned long addr, size_t size,
				       bool can_invalidate, void **context);
void peer_client_put(struct peer_client *client);
struct peer_client *peer_client_enter(void *handle);
void peer_client_leave(struct peer_client *client);

/* peer_umem.c */
void peer_set_phase(struct peer_umem *p, enum peer_phase phase);
void peer_umem_unmap(struct peer_umem *p, bool by_client);
void peer_umem_forget(struct peer_umem *p);
void peer_umem_release(struct peer_umem *p);
void peer_umem_free(struct kref *kref);

/* peer_invalidate.c */
void peer_unlock(struct peer_lock *lock);
int peer_invalidate(void *handle, u64 core_context);
int peer_g2_activate(struct peer_umem *p, umem_invalidate_func_t func, void *priv);
void peer_g2_begin_dereg(struct peer_umem *p);
void peer_g2_dereg(struct peer_umem *p);

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
int peer_show_calls(struct seq_file *m);

/* peer_table.c */
struct device *peer_device_get(struct ib_device *ibdev);
struct device *peer_device_told(struct device *dev);
int peer_table_check(struct peer_umem *p);
void peer_table_check_mapped(struct peer_umem *p);
void peer_table_verify(struct peer_umem *p);
void peer_table_free(struct peer_umem *p);

/* peer_lab.c */
void peer_count(enum peer_counter which, s64 by);
void peer_clock(enum peer_op op, u64 ticks);
const char *peer_op_name(enum peer_op op);
void peer_hold(enum peer_hold point);
int peer_fail(enum peer_fail point);
bool peer_switched(enum peer_switch which);
__printf(3, 4)
void peer_violation(struct peer_client *client, const char *kind, const char *format, ...);

/* peer_consumer.c */
void peer_consumer_create(struct dentry *dir);

#endif
