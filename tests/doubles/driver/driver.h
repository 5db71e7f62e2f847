/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The declarations that NVIDIA's nv-p2p.c is compiled with: its names for kernel functions, the
 * functions of the rest of the driver, which the lab implements, and its own functions.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include <linux/ioport.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/pci.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/string.h>

/* NVIDIA's own headers for types and for the status of a call. */
#include <nvstatus.h>

/* This macro exports nothing, because exports.c exports its own functions, which call NVIDIA's. */
#define NV_EXPORT_SYMBOL(function)
#define NV_API_CALL
#define NV_DBG_ERRORS 4
#define nv_printf(level, format, ...)	no_printk(format, ##__VA_ARGS__)
#define NV_INIT_MUTEX(semaphore)	sema_init(semaphore, 1)

/* ---- devices: without the features of GPUs on POWER9 -------------------------------- */

typedef struct nv_state nv_state_t;
typedef struct nv_linux_state {
	struct nv_linux_state *next;
	struct pci_dev *pci_dev;
} nv_linux_state_t;

#define nv_linux_devices			((nv_linux_state_t *)NULL)
#define LOCK_NV_LINUX_DEVICES()			do { } while (0)
#define UNLOCK_NV_LINUX_DEVICES()		do { } while (0)
#define NV_STATE_PTR(device)			((nv_state_t *)(device))
#define nv_get_ibmnpu_genreg_info(...)		NV_ERR_NOT_SUPPORTED
#define nv_get_ibmnpu_chip_id(device)		0
#define nv_ioremap_nocache(address, size)	NULL
#define nv_iounmap(address, size)		do { } while (0)
#define nv_register_rsync_driver(...)		(-ENODEV)
#define nv_unregister_rsync_driver(...)		do { } while (0)

/* ---- memory.c ------------------------------------------------------------------ */

NV_STATUS os_alloc_mem(void **address, NvU64 size);
void os_free_mem(void *address);
#define os_mem_copy(to, from, size)		memcpy(to, from, size)

/*
 * NVIDIA's code uses a cache for only one kind of structure. The lab allocates it like other
 * memory.
 */
struct nvidia_p2p_page *sim_page_new(void);
#define NV_KMEM_CACHE_ALLOC(cache)		sim_page_new()
#define NV_KMEM_CACHE_FREE(page, cache)		os_free_mem(page)

/* ---- rm.c: the resource manager ------------------------------------------------ */

/* The driver's functions run on separate stacks. */
typedef void nvidia_stack_t;

static inline int nv_kmem_cache_alloc_stack(nvidia_stack_t **stack)
{
	*stack = NULL;
	return 0;
}

static inline void nv_kmem_cache_free_stack(nvidia_stack_t *stack) { }

int nvidia_dev_get_uuid(const u8 *uuid, nvidia_stack_t *stack);
void nvidia_dev_put_uuid(const u8 *uuid, nvidia_stack_t *stack);

NV_STATUS sim_status(int error);
NV_STATUS sim_rm_lock(const char *what, bool ordered);

NV_STATUS rm_p2p_get_pages(nvidia_stack_t *stack, u64 token, u32 space, u64 va, u64 length,
			   NvU64 *physical, NvU32 *wreqmb_h, NvU32 *rreqmb_h, NvU32 *entries,
			   NvU8 **uuid, void *key);
NV_STATUS rm_p2p_register_callback(nvidia_stack_t *stack, u64 token, u64 va, u64 length,
				   void *key, void (*callback)(void *data), void *data);
NV_STATUS rm_p2p_put_pages(nvidia_stack_t *stack, u64 token, u32 space, u64 va, void *key);
NV_STATUS rm_p2p_get_gpu_info(nvidia_stack_t *stack, u64 va, u64 length, NvU8 **uuid,
			      void **gpu);
NV_STATUS rm_p2p_get_pages_persistent(nvidia_stack_t *stack, u64 va, u64 length, void **object,
				      NvU64 *physical, NvU32 *entries, void *key, void *gpu);
NV_STATUS rm_p2p_put_pages_persistent(nvidia_stack_t *stack, void *object, void *key);

/* ---- dma.c ---------------------------------------------------------------------- */

typedef struct nv_dma_device {
	struct {
		NvU64 start;
		NvU64 limit;
	} addressable_range;
	struct device *dev;
} nv_dma_device_t;

NV_STATUS rm_p2p_dma_map_pages(nvidia_stack_t *stack, nv_dma_device_t *peer, NvU8 *uuid,
			       NvU64 page_size, NvU32 entries, NvU64 *addresses, void **private);
NV_STATUS nv_dma_unmap_alloc(nv_dma_device_t *peer, NvU64 pages, NvU64 *addresses,
			     void **private);
void nv_dma_unmap_peer(nv_dma_device_t *peer, NvU64 pages, NvU64 address);

/* ---- driver.c: access to data of nv-p2p.c ------------------------------------------- */

struct nvidia_p2p_page_table;
struct sim_pin;

void nv_p2p_free_platform_data(void *data);

void *driver_memory(struct nvidia_p2p_page_table *table);
void driver_lead(void *memory, struct sim_pin *pin);

#endif
