// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What only C can say: module information for which the kernel's Rust macro
 * has no key, parameters with a file in sysfs, and macros and inline functions.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pci.h>
#include <linux/ratelimit.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include <nv-p2p.h>
#include <rdma/peer_mem.h>

#include "compat.h"
#include "marker/marker.h"
#include "shim.h"
#ifdef NVPM_KUNIT
#include <kunit/static_stub.h>
#include "kunit/helpers.h"
#else
#define KUNIT_STATIC_STUB_REDIRECT(...) do {} while (0)
#endif

MODULE_AUTHOR("The nv_peer_mem authors");
MODULE_DESCRIPTION("GPUDirect RDMA: NVIDIA GPU memory for the RDMA core");
MODULE_VERSION(NVPM_VERSION);

/* What Rust stands on in this module: docs/grounds.md. */
MODULE_INFO(ground, NVPM_GROUND);

const char nvpm_version[] = NVPM_VERSION;
/* Not _GPL: a module beside a proprietary driver may have no such symbol. */
EXPORT_SYMBOL(nvpm_version);

static int nvpm_switch_set(const char *text, const struct kernel_param *param)
{
	uint value;

	if (!text || kstrtouint(text, 0, &value) || value > 1) {
		pr_err("%s=%s: the values of this parameter are 0 and 1 (modinfo nv_peer_mem explains them); look for it in /etc/modprobe.d\n",
		       param->name, text ?: "");
		return -EINVAL;
	}
	*(uint *)param->arg = value;
	return 0;
}

static const struct kernel_param_ops nvpm_switch = {
	.set = nvpm_switch_set,
	.get = param_get_uint,
};

uint nvpm_peerdirect_support;
module_param_cb(peerdirect_support, &nvpm_switch, &nvpm_peerdirect_support, 0444);
__MODULE_PARM_TYPE(peerdirect_support, "0 or 1");
MODULE_PARM_DESC(peerdirect_support,
		 "0: current RDMA cores (default); 1: MLNX_OFED 4.9 LTS");

uint nvpm_persistent_api_support = 1;
module_param_cb(persistent_api_support, &nvpm_switch, &nvpm_persistent_api_support, 0444);
__MODULE_PARM_TYPE(persistent_api_support, "0 or 1");
MODULE_PARM_DESC(persistent_api_support,
		 "1: pin until deregistration where the driver can (default); 0: revoke registrations when GPU memory is freed");

/* The same figures stand in abi.rs. */
static_assert(offsetof(struct peer_memory_client, acquire) == 80);
static_assert(offsetof(struct peer_memory_client, release) == 128);
static_assert(sizeof(struct nvpm_client) == 152);
static_assert(offsetof(struct nvidia_p2p_page_table, page_size) == 4);
static_assert(offsetof(struct nvidia_p2p_page_table, pages) == 8);
static_assert(offsetof(struct nvidia_p2p_page_table, entries) == 16);
static_assert(sizeof(struct nvidia_p2p_page) == 32);
static_assert(sizeof(struct nvidia_p2p_dma_mapping) == 40);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, entries) == 8);
static_assert(offsetof(struct nvidia_p2p_dma_mapping, dma_addresses) == 16);

void nvpm_client_extend(struct nvpm_client *client)
{
#ifdef NVPM_CORE_EX
	static_assert(sizeof(struct peer_memory_client_ex) == sizeof(*client));
	static_assert(offsetof(struct peer_memory_client_ex, ex_size) ==
		      offsetof(struct nvpm_client, ex_size));
	static_assert(offsetof(struct peer_memory_client_ex, flags) ==
		      offsetof(struct nvpm_client, flags));

	client->ex_size = sizeof(struct peer_memory_client_ex);
	client->flags = PEER_MEM_INVALIDATE_UNMAPS;
	/* Says that the fields behind are there. */
	client->client.version[ARRAY_SIZE(client->client.version) - 1] = 1;
#endif
}

const u64 nvpm_page_size = PAGE_SIZE;

s32 nvpm_process(void)
{
	return task_tgid_nr(current);
}

s32 nvpm_thread(void)
{
	return task_pid_nr(current);
}

bool nvpm_peermem_loaded(void)
{
	/*
	 * The set of all modules is not exported, but each module is in it; and
	 * kset_find_obj() is for GPL modules only.
	 */
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *module;
	bool found = false;

	spin_lock(&modules->list_lock);
	list_for_each_entry(module, &modules->list, entry)
		found |= !strcmp(kobject_name(module) ?: "", "nvidia_peermem");
	spin_unlock(&modules->list_lock);
	return found;
}

void nvpm_pause(void)
{
	msleep(20);
}

static DEFINE_RATELIMIT_STATE(nvpm_complaints, 5 * HZ, 10);

bool nvpm_may_complain(void)
{
	/* Under this name it reports how many messages it has suppressed. */
	return ___ratelimit(&nvpm_complaints, KBUILD_MODNAME);
}

#ifdef NVPM_KUNIT
void nvpm_kunit_complain_again(void)
{
	ratelimit_state_init(&nvpm_complaints, 5 * HZ, 10);
}
#endif

bool nvpm_module_get(void)
{
	return try_module_get(THIS_MODULE);
}

void nvpm_module_put(void)
{
	module_put(THIS_MODULE);
}

static NVPM_DEFINE_TABLE(nvpm_ids);
static atomic64_t nvpm_last_id;

u64 nvpm_ids_add(const void *object)
{
	u64 id = atomic64_inc_return(&nvpm_last_id);

	/* A 32-bit kernel would run out of indexes; there is no driver for one. */
	BUILD_BUG_ON(sizeof(unsigned long) < sizeof(u64));
	return nvpm_table_store(&nvpm_ids, id, (void *)object) ? 0 : id;
}

void *nvpm_ids_take(u64 id)
{
	return nvpm_table_erase(&nvpm_ids, id);
}

bool nvpm_ids_has(u64 id)
{
	return nvpm_table_load(&nvpm_ids, id);
}

static DECLARE_RWSEM(nvpm_gate);

void nvpm_gate_enter(bool exclusive)
{
	if (exclusive)
		down_write(&nvpm_gate);
	else
		down_read(&nvpm_gate);
}

void nvpm_gate_leave(bool exclusive)
{
	if (exclusive)
		up_write(&nvpm_gate);
	else
		up_read(&nvpm_gate);
}

struct pci_dev *nvpm_pci_dev(struct device *dev)
{
	return dev && dev_is_pci(dev) ? to_pci_dev(dev) : NULL;
}

bool nvpm_revocable(struct device *dev)
{
	/* Alibaba's erdma: an invalidation would hang, and the GPU with it. */
	return !dev->driver || strcmp(dev->driver->name, "erdma");
}

u32 nvpm_max_segment(struct device *dev)
{
	return dma_get_max_seg_size(dev);
}

int nvpm_dma_map(struct device *dev, u64 phys, size_t len, u64 *addr)
{
	dma_addr_t dma;

	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_map, dev, phys, len, addr);
	dma = dma_map_resource(dev, phys, len, DMA_BIDIRECTIONAL, 0);
	if (dma_mapping_error(dev, dma))
		return -EIO;
	*addr = dma;
	return 0;
}

void nvpm_dma_unmap(struct device *dev, u64 addr, size_t len)
{
	KUNIT_STATIC_STUB_REDIRECT(nvpm_dma_unmap, dev, addr, len);
	dma_unmap_resource(dev, addr, len, DMA_BIDIRECTIONAL, 0);
}

#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
bool nvpm_has_persistent(void)
{
	return true;
}

int nvpm_get_pages_persistent(u64 addr, u64 len,
			      struct nvidia_p2p_page_table **table)
{
	return nvidia_p2p_get_pages_persistent(addr, len, table, 0);
}

int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table)
{
	return nvidia_p2p_put_pages_persistent(addr, table, 0);
}
#elif defined(NVIDIA_P2P_CAP_PERSISTENT_PAGES)
/* Drivers 515 to 530: without a callback the pages are pinned until put. */
bool nvpm_has_persistent(void)
{
	return nvidia_p2p_cap_persistent_pages;
}

int nvpm_get_pages_persistent(u64 addr, u64 len,
			      struct nvidia_p2p_page_table **table)
{
	return nvidia_p2p_get_pages(0, 0, addr, len, table, NULL, NULL);
}

int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table)
{
	return nvidia_p2p_put_pages(0, 0, addr, table);
}
#else
bool nvpm_has_persistent(void)
{
	return false;
}

int nvpm_get_pages_persistent(u64 addr, u64 len,
			      struct nvidia_p2p_page_table **table)
{
	return -ENOTSUPP;
}

int nvpm_put_pages_persistent(u64 addr, struct nvidia_p2p_page_table *table)
{
	return -ENOTSUPP;
}
#endif

/*
 * The page table's major number went from 1 to 2 when a field was appended; the
 * fields read here are the same in both.
 */
bool nvpm_page_table_known(const struct nvidia_p2p_page_table *table)
{
	u32 major = table->version >> 16;

	return major == 1 || major == 2;
}

bool nvpm_dma_mapping_known(const struct nvidia_p2p_dma_mapping *mapping)
{
	return NVIDIA_P2P_DMA_MAPPING_VERSION_COMPATIBLE(mapping);
}

bool nvpm_page_table_coherent(const struct nvidia_p2p_page_table *table)
{
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
	return table->version >> 16 >= 2 &&
	       table->flags & NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE;
#else
	return false;
#endif
}
