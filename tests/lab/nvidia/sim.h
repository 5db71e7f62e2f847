/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulated NVIDIA driver, seen from inside.
 *
 * A test double of the open nvidia.ko for clients of its peer-to-peer
 * interface. It keeps the interface's promises, and nothing more than them,
 * counts every object, and records a violation where the real driver would
 * corrupt memory, hang or crash because of what its client did.
 *
 * Who owns what
 *
 *   sim_alloc    memory of one cudaMalloc. Owns frames of the BAR from mmap()
 *                until it has been freed and no persistent pin is left.
 *   sim_pin      one successful get_pages. Holds its allocation while it is
 *                alive; afterwards a tombstone in the quarantine.
 *   sim_mapping  one successful dma_map_pages. Same life, under its pin.
 *
 * Locks, outermost first
 *
 *   mmap_lock    of a process. Only held around us, in mmap, fault and close.
 *   API lock     apilock.c. Exclusive, not recursive, may be held for long.
 *                Held while a client's free callback runs.
 *   gpu->lock    every list and every state below. Never held while a client
 *                is called, while DMA is mapped, or while PTEs are zapped.
 *   spinlocks    of lab.c: leaves.
 *
 * mmap_lock is taken outside of the API lock in one case only: when a knob,
 * "free_from" or "inject_from", says "close". Then nothing that a callback
 * reaches may need the mmap_lock of the process that is unmapping.
 */
#ifndef SIM_H
#define SIM_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "../compat.h"
#include "export.h"
#include <nv-p2p.h>

#include "lab_gpu.h"

/*
 * Drivers 515 to 525.89 and 530 pin persistently if get_pages is given no
 * callback; later ones have calls of their own for that.
 */
#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
#define SIM_OLD false
#elif defined(NVIDIA_P2P_CAP_PERSISTENT_PAGES)
#define SIM_OLD true
#else
#error "this nv-p2p.h is older than persistent pages"
#endif

#define SIM_PAGE_SHIFT		16	/* of LAB_GPU_PAGE_SIZE */
#define SIM_PAGE_SIZE		((unsigned long)LAB_GPU_PAGE_SIZE)
#define SIM_UUID_LEN		NVIDIA_P2P_GPU_UUID_LEN

/* Who has called an export: in the exports themselves. */
#define SIM_CALLER		__builtin_return_address(0)

/*
 * Where the bus addresses of allocations without memory begin, and how large one
 * may be: with holes as large as its parts it ends below 2^39, which every IOMMU
 * reaches. Nothing of the guest's is there.
 */
#define SIM_UNBACKED		(1ULL << 38)
#define SIM_UNBACKED_MAX	(1ULL << 37)

/* BAR1 space that the resource manager never gives to third parties. */
#define SIM_BAR1_RESERVE	(36UL << 20)

/* What freed GPU memory, and freed driver structures, are filled with. */
#define SIM_SCRUB		0xdb
#define SIM_POISON		0x6b

/* What a failed get_pages leaves behind where it does not leave NULL. */
#define SIM_DANGLING		((void *)0x6b00 + POISON_POINTER_DELTA)

/* ---- the GPU ---------------------------------------------------------- */

struct sim_alloc;

struct sim_gpu {
	struct pci_dev *pdev;
	struct miscdevice misc;
	bool present;

	phys_addr_t bar;
	u64 size;
	void *kva;		/* the BAR in the kernel's linear mapping */

	struct mutex lock;	/* all that follows, and what it leads to */
	u32 nframes;
	struct sim_alloc **owner;	/* of each 64 KiB frame, or NULL */
	struct list_head allocs;	/* those that own frames */
	u64 bar1_used;
	bool coherent;		/* new allocations are RAM: coherent.c */
	struct page **ram;	/* blocks of it, instead of the BAR */

	struct list_head pins;		/* live, oldest first */
	struct list_head mappings;	/* live */
	struct list_head dead_pins;	/* quarantine, oldest first */
	struct list_head dead_mappings;
	u32 ndead_pins;
	u32 ndead_mappings;
	bool evicted;		/* the quarantine has forgotten something */
};

extern struct sim_gpu sim_gpu;

/* ---- vidmem.c: allocations -------------------------------------------- */

enum sim_alloc_state {
	SIM_ALLOC_LIVE,
	SIM_ALLOC_DYING,	/* callbacks run; no new pins, CPU may look */
	SIM_ALLOC_GONE,		/* freed; frames stay while pins persist */
};

struct sim_alloc {
	struct kref ref;
	struct list_head node;
	struct sim_gpu *gpu;
	pid_t tgid;
	u64 va;
	u64 size;
	u64 offset;		/* as given to mmap, or of the first page */
	u32 npages;
	u32 *frame;		/* page -> frame in the BAR */
	u32 *bar1;		/* page -> how many pins map it */

	enum sim_alloc_state state;
	bool unbacked;		/* bus addresses alone: no frames, no bytes */
	bool coherent;		/* frames of RAM, not of the BAR */
	bool unmapped;		/* its address means nothing any more */
	bool queued;		/* another task frees it */
	bool free_in_close;	/* whatever free_from says */
	bool telling;		/* a callback about it runs */
	bool orphan;		/* freed, but pinned at that time */
	u32 vmas;
	u32 npins;
	u32 npersistent;
	struct list_head pins;	/* revocable ones, in the order of arming */

	struct sim_alloc *first;	/* whose frames these are, if not its own */
	u32 lent;		/* how many others map its frames */
	bool no_p2p;		/* never to be pinned */

	struct file *device;	/* keeps f_mapping, and this module, alive */
	struct file *handle;	/* last fput frees, see vidmem.c */
};

extern const struct file_operations sim_device_fops;

struct sim_alloc *sim_alloc_find(struct sim_gpu *gpu, u64 va);
void sim_alloc_get(struct sim_alloc *alloc);
void sim_alloc_put(struct sim_alloc *alloc);
void sim_alloc_free(struct sim_alloc *alloc);
bool sim_alloc_free_in_close(struct sim_alloc *alloc);
struct sim_alloc *sim_alloc_at(struct sim_gpu *gpu, phys_addr_t phys);
void sim_alloc_settle(struct sim_alloc *alloc);
phys_addr_t sim_alloc_phys(const struct sim_alloc *alloc, u32 page);
void *sim_alloc_kva(const struct sim_alloc *alloc, u32 page);
int sim_bar1_map(struct sim_alloc *alloc, u32 first, u32 n);
void sim_bar1_unmap(struct sim_alloc *alloc, u32 first, u32 n);

/* ---- coherent.c: memory that is RAM ------------------------------------ */

int sim_coherent_set(struct sim_gpu *gpu, u8 coherent);
void sim_coherent_drop(struct sim_gpu *gpu);
phys_addr_t sim_coherent_phys(const struct sim_gpu *gpu, u32 frame);
void *sim_coherent_kva(const struct sim_gpu *gpu, u32 frame);
struct sim_alloc *sim_coherent_at(const struct sim_gpu *gpu, phys_addr_t phys);
dma_addr_t sim_coherent_map(struct device *dev, const struct sim_alloc *alloc, u32 page);
void sim_coherent_unmap(struct device *dev, dma_addr_t addr);

/* ---- copy.c: the copy engine ------------------------------------------- */

struct lab_gpu_copy;

long sim_copy(struct sim_gpu *gpu, const struct lab_gpu_copy *copy);

/* ---- apilock.c -------------------------------------------------------- */

void sim_api_init(void);
int sim_api_lock(const char *what, bool ordered);
void sim_api_lock_always(const char *what, bool ordered);
void sim_api_unlock(void);
bool sim_api_is_mine(void);

/* ---- pin.c: page tables and DMA mappings ------------------------------ */

enum sim_pin_state {
	SIM_PIN_NEW,
	SIM_PIN_LIVE,
	SIM_PIN_REVOKING,	/* its callback runs */
	SIM_PIN_PUT,		/* tombstone: the client gave it back */
	SIM_PIN_REVOKED,	/* tombstone: the memory was freed */
};

struct sim_pin {
	struct kref ref;
	struct list_head node;		/* gpu->pins or gpu->dead_pins */
	struct list_head on_alloc;
	struct list_head mappings;
	struct sim_gpu *gpu;
	struct sim_alloc *alloc;	/* while alive */
	enum sim_pin_state state;
	bool persistent;
	bool device_ref;
	pid_t tgid;
	u64 va;
	u32 first;			/* page within the allocation */
	u32 entries;
	void (*callback)(void *data);
	void *data;
	void *caller;
	bool reused;		/* the table was another pin's before */
	bool lent;		/* tombstone: the table is another pin's now */

	/* What the client sees, and what we remember of it. */
	struct nvidia_p2p_page_table *table;
	struct nvidia_p2p_page **pages;
	struct nvidia_p2p_page **objects;
	u8 *uuid;
	u32 hash;
};

struct sim_mapping {
	struct kref ref;
	struct list_head node;		/* gpu->mappings or ->dead_mappings */
	struct list_head on_pin;
	struct sim_pin *pin;		/* holds a reference */
	struct pci_dev *peer;
	bool live;
	bool coherent;
	u32 entries;
	struct sim_run {
		dma_addr_t start;
		u32 pages;
	} *runs;			/* what we remember */
	u32 nruns;
	struct nvidia_p2p_dma_mapping *map;
	u64 *addresses;
	u32 hash;
};

struct sim_pin *sim_pin_new(struct sim_gpu *gpu);
int sim_pin_fill(struct sim_pin *pin);
void sim_pin_publish(struct sim_pin *pin);
struct sim_pin *sim_pin_find(struct sim_gpu *gpu, const void *table);
void sim_pin_drop(struct sim_pin *pin);
bool sim_pin_alive(const struct sim_pin *pin);
struct sim_alloc *sim_pin_alloc(struct sim_pin *pin);
void sim_accuse_table(const char *what, const void *table,
		      const struct sim_pin *pin, void *caller);
void sim_pin_check(struct sim_pin *pin, const char *where);
void sim_pin_release(struct sim_pin *pin, enum sim_pin_state how);
void sim_pin_revoke_all(struct sim_alloc *alloc);
void sim_pin_module_gone(struct sim_gpu *gpu, const struct module *mod);

int sim_mapping_new(struct sim_pin *pin, struct pci_dev *peer,
		    struct sim_mapping **out);
struct sim_mapping *sim_mapping_find(struct sim_gpu *gpu, const void *map);
void sim_mapping_drop(struct sim_mapping *m);
bool sim_mapping_unlink(struct sim_mapping *m);
void sim_mapping_release(struct sim_mapping *m);

void sim_quarantine_drain(struct sim_gpu *gpu);

/* ---- inject.c: freeing from another task ------------------------------ */

enum sim_point {
	SIM_INJECT_NONE,
	SIM_INJECT_IN_GET_GAP,
	SIM_INJECT_BEFORE_GET_RETURNS,
	SIM_INJECT_AFTER_GET,
	SIM_INJECT_IN_DMA_MAP,
	SIM_INJECT_AFTER_DMA_MAP,
	SIM_INJECT_IN_DMA_UNMAP,
	SIM_INJECT_AFTER_DMA_UNMAP,
	SIM_INJECT_BEFORE_PUT,
	SIM_INJECT_AFTER_PUT,
	SIM_POINTS
};

struct seq_file;

extern const char * const sim_point_names[SIM_POINTS];
extern struct wait_queue_head sim_held;

int sim_inject_init(void);
void sim_inject_exit(void);
void sim_inject(enum sim_point now, struct sim_alloc *alloc);
void sim_inject_pin(enum sim_point now, struct sim_pin *pin);
void sim_free_elsewhere(struct sim_alloc *alloc, u32 from, bool wait);
void sim_inject_moot(struct sim_alloc *alloc);
int sim_injector(void);
int sim_inject_plan(const char *words);
void sim_inject_show_plan(struct seq_file *s);
void sim_inject_show_counters(struct seq_file *s);

/* ---- owndma.c: clients that map by themselves -------------------------- */

extern bool sim_own_dma;

int sim_own_dma_init(void);
void sim_own_dma_exit(void);

/* ---- lab.c: what a test sees and sets --------------------------------- */

enum sim_export {
	SIM_GET_PAGES,
	SIM_PUT_PAGES,
	SIM_GET_PAGES_PERSISTENT,
	SIM_PUT_PAGES_PERSISTENT,
	SIM_DMA_MAP_PAGES,
	SIM_DMA_UNMAP_PAGES,
	SIM_FREE_PAGE_TABLE,
	SIM_FREE_DMA_MAPPING,
	SIM_INIT_MAPPING,
	SIM_DESTROY_MAPPING,
	SIM_REGISTER_RSYNC_DRIVER,
	SIM_UNREGISTER_RSYNC_DRIVER,
	SIM_GET_RSYNC_REGISTERS,
	SIM_PUT_RSYNC_REGISTERS,
	SIM_EXPORTS,
	/* What else has a clock: a client's free callback, and what a program waits for. */
	SIM_FREE_CALLBACK = SIM_EXPORTS,
	SIM_FREE_MEMORY,
	SIM_CLOCKS
};

enum sim_counter {
	/* gauges: zero when nobody uses the GPU */
	SIM_LIVE_ALLOCATIONS,
	SIM_LIVE_FRAMES,
	SIM_LIVE_ORPHANS,
	SIM_LIVE_PINS,
	SIM_LIVE_PERSISTENT_PINS,
	SIM_LIVE_DMA_MAPPINGS,
	SIM_LIVE_DMA_PAGES,
	SIM_LIVE_OWN_MAPPINGS,
	SIM_LIVE_ARMED_CALLBACKS,
	SIM_LIVE_CALLBACKS_RUNNING,
	SIM_LIVE_DEVICE_REFS,
	SIM_LIVE_BAR1_USED,
	SIM_LIVE_INJECTIONS,
	SIM_LIVE_HELD,
	SIM_LIVE_RSYNC_DRIVERS,
	SIM_LIVE_END,
	/* totals since the module was loaded */
	SIM_ALLOCATIONS = SIM_LIVE_END,
	SIM_FREES,
	SIM_CALLBACKS_FIRED,
	SIM_PUT_NOT_FOUND,
	SIM_PAGES_NOT_FOUND,
	SIM_FAILURES_INJECTED,
	SIM_INJECTIONS,
	SIM_COSTS_EXCEEDED,
	SIM_VIOLATIONS,
	SIM_COUNTERS
};

enum sim_offence {
	SIM_BAD_REENTRY,
	SIM_BAD_STALL,
	SIM_BAD_NULL,
	SIM_BAD_RANGE,
	SIM_BAD_TABLE_UNKNOWN,
	SIM_BAD_TABLE_DEAD,
	SIM_BAD_TABLE_KIND,
	SIM_BAD_TABLE_ADDRESS,
	SIM_BAD_TABLE_MODIFIED,
	SIM_BAD_DOUBLE_PUT,
	SIM_BAD_ABA_PUT,
	SIM_BAD_MAPPING_UNKNOWN,
	SIM_BAD_MAPPING_DEAD,
	SIM_BAD_MAPPING_OWNER,
	SIM_BAD_MAPPING_MODIFIED,
	SIM_BAD_WRITE_AFTER_FREE,
	SIM_BAD_PEER,
	SIM_BAD_PAGE_SIZE,
	SIM_BAD_RACE_DMA_MAP,
	SIM_BAD_RACE_DMA_UNMAP,
	SIM_BAD_NOOP_FREE,
	SIM_BAD_OWN_COHERENT,
	SIM_BAD_UNLOAD_ARMED,
	SIM_BAD_UNLOAD_PINNED,
	SIM_BAD_RSYNC,
	SIM_BAD_LEFTOVER,
	SIM_OFFENCES
};

enum sim_layout {
	SIM_CONTIGUOUS,
	SIM_DESCENDING,
	SIM_HOLES64K,
	SIM_HOLES2M,
	SIM_FRAGMENTED,
	SIM_LAYOUTS
};

enum sim_free_from {
	SIM_FREE_FROM_TASK,
	SIM_FREE_FROM_CLOSE,
	SIM_FREE_FROM_KTHREAD,
	SIM_FREE_FROM_PROCESS,
	SIM_FREE_FROMS
};

struct sim_knobs {
	u64 bar1_bytes;
	u32 layout;
	u32 free_from;
	u32 inject_from;
	u32 inject_wait_ms;
	u32 inject_hold;
	u32 hold;		/* calls stay at this point */
	u32 quarantine_max;
	u32 page_table_version;
	u32 page_size;
	u32 dma_mapping_version;
	u32 dma_entries_short;
	u32 dma_contiguous;
	u32 topology_denied;
	u32 remap_peer_mmio;
	u64 bus_offset;
	u32 reuse;
	u32 verify;
	u32 costs;
};

extern struct sim_knobs sim_knobs;
extern const char * const sim_clock_names[SIM_CLOCKS];

int sim_lab_init(void);
void sim_lab_exit(void);
int sim_fail(enum sim_export which);
void sim_add(enum sim_counter which, s64 n);
s64 sim_read(enum sim_counter which);
u32 sim_random(void);
__printf(2, 3) void sim_violation(enum sim_offence what, const char *fmt, ...);

/* ---- clock.c ------------------------------------------------------------ */

/* One call on the clock, until the end of its scope. */
struct sim_call {
	int which;
	u64 began;
	u64 began_ns;	/* 0: it costs what it costs */
};

struct dentry;

struct sim_call sim_enter(enum sim_export which);
struct sim_call sim_clock_start(int which);
void sim_clock_stop(struct sim_call *call);
void sim_spend_call(const struct sim_call *call);
void sim_spend_all(const struct sim_call *call, u32 pages);
s64 sim_clock_calls(int which);
void sim_clock_init(struct dentry *dir);

DEFINE_CLASS(sim_call, struct sim_call, sim_clock_stop(&_T), sim_enter(which),
	     enum sim_export which)

#endif
