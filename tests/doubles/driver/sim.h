/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The internals of the simulated NVIDIA driver.
 *
 * The module is a double of the open nvidia.ko for clients of its peer-to-peer interface. The
 * calls of this interface are NVIDIA's own code (driver.c), on top of the lab's resource manager
 * (rm.c, dma.c). The lab counts every object above that code (exports.c) and below it (memory.c),
 * and records a violation where a mistake of the client would make the real driver corrupt memory,
 * hang or crash.
 *
 * Owners of objects
 *
 *   sim_alloc    is the memory of one cudaMalloc. It owns frames of the BAR from mmap() until the
 *                memory is freed and no persistent pin is left.
 *   sim_pin      is the pages that the resource manager has mapped for one get_pages. It has a
 *                reference to its allocation. After its end, it stays in the quarantine and keeps
 *                the memory of the page table, so that a later use of the table is noticed.
 *   sim_mapping  is one dma_map_pages. It also ends in the quarantine, and ends before its pin.
 *
 * Locks, outermost first
 *
 *   mmap_lock    belongs to a process. Only the kernel takes it, around mmap, fault and close.
 *   API lock     is in apilock.c. It is exclusive and not recursive, may be held for long, and is
 *                held while a client's free callback runs.
 *   gpu.lock     protects every list and every state below. It is never held while a client is
 *                called, while DMA is mapped, or while PTEs are zapped.
 *   spinlocks    are the innermost locks.
 *
 * mmap_lock is taken before the API lock in one case only: if the knob "free_from" or "inject_from"
 * is "close". In that case, code that a callback reaches must not need the mmap_lock of the process
 * that is unmapping.
 */
#ifndef SIM_H
#define SIM_H

#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/stringify.h>
#include <linux/types.h>

#include "../compat.h"
#include <nv-p2p.h>

#include "lab_gpu.h"

#ifndef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
#error "this nv-p2p.h is of a driver before 535"
#endif

/*
 * The closed nvidia.ko is not under the GPL, so it needs plain exports. The open one exports its
 * functions for GPL modules only, as the real driver does.
 */
#ifdef SIM_CLOSED
#define SIM_EXPORT(function)	EXPORT_SYMBOL(function)
#else
#define SIM_EXPORT(function)	EXPORT_SYMBOL_GPL(function)
#endif

#define SIM_PAGE_SHIFT		16	/* of LAB_GPU_PAGE_SIZE */
#define SIM_PAGE_SIZE		((unsigned long)LAB_GPU_PAGE_SIZE)

/*
 * The first bus address of allocations without memory, and their largest size: with holes
 * as large as the parts, an allocation ends below 2^39, which every IOMMU reaches. The guest
 * uses no address there.
 */
#define SIM_UNBACKED		(1ULL << 38)
#define SIM_UNBACKED_MAX	(1ULL << 37)

/* BAR1 space that the resource manager never gives to third parties. */
#define SIM_BAR1_RESERVE	(36UL << 20)

/* Bytes that fill freed GPU memory, and freed structures of the driver. */
#define SIM_SCRUB		0xdb
#define SIM_POISON		0x6b

/* ---- lists: each is an enum here, and the words of debugfs in lab.c ------ */

#define SIM_ID(name)		SIM_##name
#define SIM_KNOB_ID(name)	SIM_KNOB_##name
#define SIM_ENUM(tag, list, id)	enum tag list(id)

#define SIM_LAYOUTS(name) {							\
	name(contiguous), name(descending), name(holes64k), name(holes2m),	\
	name(fragmented)							\
}

/* The freeing task. */
#define SIM_FREERS(name) {							\
	name(task), name(close), name(kthread), name(process)			\
}

/* The costs of pinning and unpinning; lab.c has the table. */
#define SIM_COSTS(name) {							\
	name(simulated), name(dynamic), name(static)				\
}

/* Points of a client's calls at which memory can be freed. */
#define SIM_POINTS(name) {							\
	name(none), name(in_get_gap), name(before_get_returns), name(after_get), \
	name(in_dma_map), name(after_dma_map), name(in_dma_unmap),		\
	name(after_dma_unmap), name(before_put), name(after_put)		\
}

/* Functions whose time is measured: the exports, without nvidia_p2p_, and two others. */
#define SIM_CLOCKS(name) {							\
	name(get_pages), name(put_pages), name(get_pages_persistent),		\
	name(put_pages_persistent), name(dma_map_pages), name(dma_unmap_pages),	\
	name(free_page_table), name(free_dma_mapping),				\
	name(free_callback), name(free_memory)					\
}

#define SIM_EXPORTS		SIM_free_callback

/* Counters called live_ are 0 when the GPU is unused; the others are totals. */
#define SIM_COUNTERS(name) {							\
	name(live_allocations), name(live_orphans), name(live_pins),		\
	name(live_persistent_pins), name(live_gpu_holds), name(live_dma_mappings), \
	name(live_own_mappings), name(live_armed_callbacks), name(live_dma_bufs),	\
	name(live_injections), name(live_held), name(frees),			\
	name(callbacks_fired), name(put_not_found), name(pages_not_found),	\
	name(tables_lost), name(failures_injected), name(injections)		\
}

/* README.md describes each knob. */
#define SIM_KNOBS(name) {							\
	name(layout), name(free_from), name(inject_from), name(hold),		\
	name(bar1_bytes), name(inject_wait_ms), name(inject_hold),		\
	name(quarantine_max), name(reuse), name(verify),			\
	name(page_table_version), name(page_size), name(dma_mapping_version),	\
	name(dma_entries_short), name(dma_contiguous), name(topology_denied),	\
	name(remap_peer_mmio), name(bus_offset), name(coherent), name(costs),	\
	name(delisted), name(gpu), name(seed)					\
}

SIM_ENUM(sim_layout, SIM_LAYOUTS, SIM_ID);
SIM_ENUM(sim_freer, SIM_FREERS, SIM_ID);
SIM_ENUM(sim_cost, SIM_COSTS, SIM_ID);
SIM_ENUM(sim_point, SIM_POINTS, SIM_ID);
SIM_ENUM(sim_clock, SIM_CLOCKS, SIM_ID);
SIM_ENUM(sim_counter, SIM_COUNTERS, SIM_ID);
SIM_ENUM(sim_knob, SIM_KNOBS, SIM_KNOB_ID);

/* ---- lab.c: the files for tests ---------------------------------------- */

extern u64 sim_knobs[];
extern const char * const sim_point_names[];

#define sim_knob(name)		READ_ONCE(sim_knobs[SIM_KNOB_##name])

void sim_lab_init(void);
void sim_lab_exit(void);
int sim_fail(enum sim_clock which);
void sim_add(enum sim_counter which, s64 n);
u32 sim_random(void);
__printf(2, 3) void sim_violation(const char *kind, const char *fmt, ...);

/* A call whose time is measured until the end of the variable's scope. */
struct sim_call {
	enum sim_clock which;
	u64 began;
};

struct sim_call sim_enter(enum sim_clock which);
void sim_leave(struct sim_call *call);

DEFINE_CLASS(sim_call, struct sim_call, sim_leave(&_T), sim_enter(which), enum sim_clock which)

/*
 * Parts of the calls that cost something. "again" is the cost if the pages are in BAR1 already, or
 * stay there, because such pages are only looked up and counted.
 */
enum sim_work {
	SIM_GET,
	SIM_GET_AGAIN,
	SIM_GET_PAGE,
	SIM_PUT,
	SIM_PUT_AGAIN,
	SIM_PUT_PAGE,
	SIM_WORKS
};

u64 sim_begin(void);
u64 sim_spend(u64 began, enum sim_work work, u32 times);

/* ---- the GPU ---------------------------------------------------------- */

extern struct sim_gpu {
	struct miscdevice misc;
	phys_addr_t bar;
	u64 size;
	void *kva;		/* the BAR's address in the kernel */
	u32 nframes;

	struct mutex lock;	/* protects the following members and their objects */
	struct sim_alloc **owner;	/* the owner of each 64 KiB frame, or NULL */
	struct page **ram;	/* the page of each frame, if memory is RAM */
	struct list_head allocs;	/* the allocations that own frames */
	u64 bar1_used;
	struct list_head live;	/* pins and mappings, oldest first */
	struct list_head dead;	/* pins and mappings in quarantine, oldest first */
	u32 ndead;
	bool evicted;		/* the quarantine has forgotten something */
} sim_gpu;

/* ---- vidmem.c: allocations -------------------------------------------- */

enum sim_alloc_state {
	SIM_ALLOC_LIVE,
	SIM_ALLOC_DYING,	/* callbacks run; nothing more is pinned, and the CPU may read */
	SIM_ALLOC_GONE,		/* the memory is freed; its frames stay until nothing pins them */
};

struct sim_alloc {
	struct kref ref;
	struct list_head node;
	pid_t tgid;
	u64 va;
	u64 size;
	u64 offset;		/* the offset that mmap() got, or that of the first page */
	u32 npages;
	u32 *frame;		/* the frame in the BAR of each page */

	enum sim_alloc_state state;
	bool unbacked;		/* the memory has bus addresses, but no frames and no bytes */
	bool coherent;		/* the frames are RAM, not part of the BAR */
	bool no_p2p;		/* the memory can never be pinned */
	bool unmapped;		/* another allocation may have got the address */
	bool queued;		/* another task frees it */
	bool free_in_close;	/* close() frees the memory, whatever free_from names */
	bool telling;		/* a callback about this memory runs */
	bool orphan;		/* the memory was freed while it was pinned */
	u32 vmas;
	u32 npins;
	u32 npersistent;	/* persistent pins, and dma-bufs, which also keep memory */
	struct list_head pins;	/* revocable pins, in the order of arming */
	struct list_head extents[2];	/* room in BAR1 for revocable and for persistent pins */

	struct file *device;	/* the reference keeps f_mapping and this module */
	struct file *handle;	/* its last fput() frees the memory, see vidmem.c */
};

extern const struct file_operations sim_device_fops;

struct sim_alloc *sim_alloc_find(u64 va);
struct sim_alloc *sim_alloc_of(u64 va);
void sim_alloc_get(struct sim_alloc *alloc);
void sim_alloc_put(struct sim_alloc *alloc);
void sim_alloc_free(struct sim_alloc *alloc);
bool sim_alloc_free_in_close(struct sim_alloc *alloc);
struct sim_alloc *sim_alloc_at(phys_addr_t phys);
void sim_alloc_settle(struct sim_alloc *alloc);
phys_addr_t sim_alloc_phys(const struct sim_alloc *alloc, u32 page);

/* ---- coherent.c: memory that is RAM ------------------------------------ */

int sim_coherent_take(bool reserved);
void sim_coherent_drop(void);
u32 sim_coherent_frame(phys_addr_t phys);

/* ---- dmabuf.c: memory as a dma-buf -------------------------------------- */

long sim_export(u64 addr, u64 size);

/* ---- apilock.c -------------------------------------------------------- */

void sim_api_init(void);
int sim_api_lock(const char *what, bool ordered);
void sim_api_lock_always(const char *what, bool ordered);
void sim_api_unlock(void);
bool sim_api_is_mine(void);

/* ---- memory.c: the allocations of NVIDIA's code -------- */

/* A page table or a mapping, with its memory, until the last block is freed. */
struct sim_object {
	struct kref ref;
	struct list_head node;	/* an entry of sim_gpu.live or sim_gpu.dead */
	bool mapping;		/* the object is part of a sim_mapping, and not of a sim_pin */
	void *key;		/* the address, by which a client names the object */
	struct sim_block *first;	/* has the key; NULL if the key is another object's now */
	struct sim_block *blocks;	/* all other blocks */
	union {
		struct nvidia_p2p_page_table table;
		struct nvidia_p2p_dma_mapping map;
	} made;			/* a copy of the structure as the driver has written it */
	u32 hash;		/* the hash of the part that a client sees */
};

void sim_object_init(struct sim_object *object, bool mapping, void *key);
void sim_object_adopt(struct sim_object *object, void *first);
void sim_object_own(struct sim_object *object, void *memory);
void sim_object_seal(struct sim_object *object);
void sim_object_hand_back(struct sim_object *object, const char *where);
void sim_object_check(struct sim_object *object, const char *where);
void sim_object_poison(struct sim_object *object);
void sim_object_bury(struct sim_object *object);
struct sim_object *sim_object_find(const void *key, bool mapping);
void sim_object_put(struct sim_object *object);
bool sim_is_used_again(const void *memory);
void sim_quarantine_trim(u32 max);

/* ---- pin.c: pinned pages ----------------------------------------------------- */

enum sim_pin_state {
	SIM_PIN_MAPPED,		/* the page table is not complete yet */
	SIM_PIN_LIVE,
	SIM_PIN_REVOKING,	/* the pin's callback runs */
	SIM_PIN_PUT,		/* the client gave the pin back */
	SIM_PIN_REVOKED,	/* the memory was freed */
	SIM_PIN_LOST,		/* the memory was freed before there was a callback to call */
};

struct sim_pin {
	struct sim_object object;	/* a page table; must be the first member */
	struct list_head on_alloc;
	struct list_head mappings;
	struct sim_alloc *alloc;	/* NULL after the end of the pin */
	enum sim_pin_state state;
	bool persistent;
	bool reused;		/* another pin had the page table before */
	bool remapped;		/* the last call for this pin has changed what is in BAR1 */
	pid_t tgid;
	u64 va;
	u64 began;		/* the time at which the pages' cost began, from sim_begin() */
	u32 first;		/* the number of the first page in the allocation */
	u32 entries;
	void (*free_callback)(void *data);	/* the client's function */
	void *data;
	void (*callback)(void *data);		/* NVIDIA's function, which calls free_callback */
	void *callback_data;
};

struct sim_pin *sim_pin_new(u64 va, u64 length, bool persistent, void *table);
void sim_pin_drop(struct sim_pin *pin);
void sim_pin_publish(struct sim_pin *pin);
void sim_pin_complete(struct sim_pin *pin, void *memory);
void sim_pin_complete_persistent(struct nvidia_p2p_page_table *table);
struct sim_pin *sim_pin_find(const void *table);
bool sim_pin_alive(const struct sim_pin *pin);
struct sim_alloc *sim_pin_alloc(struct sim_pin *pin);
void sim_accuse_table(const char *what, const void *table, const struct sim_pin *pin);
void sim_pin_tell(void *data);
void sim_pin_end(struct sim_pin *pin, enum sim_pin_state how);
void sim_pin_unmap(struct sim_alloc *alloc, struct sim_pin *pin);
void sim_pin_revoke_all(struct sim_alloc *alloc);
void sim_pin_module_gone(const struct module *mod);

/* ---- bar1.c: room in BAR1 ----------------------------------------------- */

int sim_bar1_map(struct sim_alloc *alloc, struct sim_pin *pin);
void sim_bar1_unmap(struct sim_alloc *alloc, struct sim_pin *pin);

/* ---- rm.c: the resource manager; driver.h has the rest of it ------------ */

int sim_refuse_bar1(const char *what, u64 va, u64 length);

/* ---- dma.c: DMA mappings ----------------------------------------------- */

struct sim_mapping {
	struct sim_object object;	/* a mapping; must be the first member */
	struct list_head on_pin;
	struct sim_pin *pin;		/* a counted reference */
	struct pci_dev *peer;
	bool live;
	bool ram;			/* the memory is RAM, and not part of the BAR */
	const u64 *addresses;		/* the list that NVIDIA's code has */
	struct sim_run {
		dma_addr_t start;
		u32 pages;
	} *runs;			/* the mapped pieces */
	u32 nruns;
	u32 undone;			/* the number of pieces that are unmapped again */
};

void sim_mapping_complete(struct sim_pin *pin, struct nvidia_p2p_dma_mapping *map);
bool sim_mapping_end(struct sim_mapping *m);
void sim_mapping_end_all(struct sim_pin *pin);
void sim_mapping_gone(struct sim_mapping *m);

/* ---- inject.c: freeing from another task ------------------------------ */

extern struct wait_queue_head sim_held;

int sim_inject_init(void);
void sim_inject_exit(void);
void sim_inject(enum sim_point now, struct sim_alloc *alloc);
void sim_inject_pin(enum sim_point now, struct sim_pin *pin);
void sim_free_elsewhere(struct sim_alloc *alloc, enum sim_freer from, bool wait);
void sim_inject_moot(struct sim_alloc *alloc);
int sim_injector(void);
int sim_inject_plan(const char *words);
s64 sim_injected(enum sim_point point);

/* ---- watch.c: what the emulated network cards are told ----------------- */

void sim_watch_init(void);
void sim_watch_exit(void);
void sim_watch(const struct sim_alloc *alloc, u32 page, u32 npages, bool pinned);

/* ---- owndma.c: clients that map by themselves -------------------------- */

int sim_own_dma_init(void);
void sim_own_dma_exit(void);

#endif
