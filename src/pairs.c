// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is known of each pair of a GPU and a device: the driver's verdict on whether
 * and how the one may reach the other's memory. It lasts as long as the module,
 * for the driver's options do not change meanwhile, or until the device is gone.
 */
#include <linux/device.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat.h"
#include "shim.h"

#define NVPM_UUID_SIZE 16

struct nvpm_pair {
	struct list_head of_gpu;
	/* With a reference: as long as it is here its address is nobody else's. */
	struct pci_dev *pci;
	s32 verdict;
};

/* A GPU stays known until the module goes: regions point to it. */
struct nvpm_gpu {
	struct list_head all;
	struct list_head pairs;
	u8 uuid[NVPM_UUID_SIZE];
};

static LIST_HEAD(nvpm_gpus);
static DEFINE_SPINLOCK(nvpm_pairs_lock);

static struct nvpm_gpu *nvpm_gpu_find(const u8 *uuid)
{
	struct nvpm_gpu *gpu;

	list_for_each_entry(gpu, &nvpm_gpus, all)
		if (!memcmp(gpu->uuid, uuid, NVPM_UUID_SIZE))
			return gpu;
	return NULL;
}

struct nvpm_gpu *nvpm_gpu(const u8 *uuid)
{
	static const u8 nameless[NVPM_UUID_SIZE];
	struct nvpm_gpu *gpu, *new;

	uuid = uuid ?: nameless;
	spin_lock(&nvpm_pairs_lock);
	gpu = nvpm_gpu_find(uuid);
	spin_unlock(&nvpm_pairs_lock);
	if (gpu)
		return gpu;

	new = kzalloc_obj(*new, GFP_KERNEL);
	if (!new)
		return NULL;
	INIT_LIST_HEAD(&new->pairs);
	memcpy(new->uuid, uuid, NVPM_UUID_SIZE);
	spin_lock(&nvpm_pairs_lock);
	gpu = nvpm_gpu_find(uuid);
	if (!gpu) {
		list_add_tail(&new->all, &nvpm_gpus);
		gpu = new;
	}
	spin_unlock(&nvpm_pairs_lock);
	if (gpu != new)
		kfree(new);
	return gpu;
}

static struct nvpm_pair *nvpm_pair_find(const struct nvpm_gpu *gpu,
					const struct pci_dev *pci)
{
	struct nvpm_pair *pair;

	list_for_each_entry(pair, &gpu->pairs, of_gpu)
		if (pair->pci == pci)
			return pair;
	return NULL;
}

s32 nvpm_pair_verdict(const struct nvpm_gpu *gpu, struct device *dev)
{
	struct nvpm_pair *pair;
	s32 verdict;

	spin_lock(&nvpm_pairs_lock);
	pair = nvpm_pair_find(gpu, to_pci_dev(dev));
	verdict = pair ? pair->verdict : 0;
	spin_unlock(&nvpm_pairs_lock);
	return verdict;
}

static void nvpm_pairs_free(struct list_head *pairs)
{
	struct nvpm_pair *pair, *next;

	list_for_each_entry_safe(pair, next, pairs, of_gpu) {
		pci_dev_put(pair->pci);
		kfree(pair);
	}
}

/* Takes the pairs of devices that are gone out of the lists. */
static void nvpm_pairs_sweep(struct list_head *gone)
{
	struct nvpm_pair *pair, *next;
	struct nvpm_gpu *gpu;

	list_for_each_entry(gpu, &nvpm_gpus, all)
		list_for_each_entry_safe(pair, next, &gpu->pairs, of_gpu)
			if (!device_is_registered(&pair->pci->dev))
				list_move(&pair->of_gpu, gone);
}

bool nvpm_pair_add(struct nvpm_gpu *gpu, struct device *dev, s32 verdict)
{
	struct nvpm_pair *pair = kmalloc_obj(*pair, GFP_KERNEL);
	LIST_HEAD(gone);

	if (!pair)
		return false;
	pair->pci = pci_dev_get(to_pci_dev(dev));
	pair->verdict = verdict;
	spin_lock(&nvpm_pairs_lock);
	nvpm_pairs_sweep(&gone);
	/* Two registrations may have asked at the same time, and got the same answer. */
	if (nvpm_pair_find(gpu, pair->pci))
		list_add(&pair->of_gpu, &gone);
	else
		list_add_tail(&pair->of_gpu, &gpu->pairs);
	spin_unlock(&nvpm_pairs_lock);
	nvpm_pairs_free(&gone);
	return true;
}

void nvpm_pairs_forget(void)
{
	struct nvpm_gpu *gpu, *next;

	list_for_each_entry_safe(gpu, next, &nvpm_gpus, all) {
		nvpm_pairs_free(&gpu->pairs);
		kfree(gpu);
	}
	INIT_LIST_HEAD(&nvpm_gpus);
}

static const char *nvpm_verdict_name(s32 verdict)
{
	switch (verdict) {
	case NVPM_OURS:
		return "ours";
	case NVPM_DRIVERS:
		return "driver";
	case NVPM_UNASKED:
		return "unasked";
	default:
		return "refused";
	}
}

size_t nvpm_pairs_text(char *buf, size_t size)
{
	struct nvpm_pair *pair;
	struct nvpm_gpu *gpu;
	LIST_HEAD(gone);
	size_t len = 0;

	spin_lock(&nvpm_pairs_lock);
	nvpm_pairs_sweep(&gone);
	list_for_each_entry(gpu, &nvpm_gpus, all)
		list_for_each_entry(pair, &gpu->pairs, of_gpu)
			len += scnprintf(buf + len, size - len, "GPU-%pUb %s %s\n",
					 gpu->uuid, pci_name(pair->pci),
					 nvpm_verdict_name(pair->verdict));
	spin_unlock(&nvpm_pairs_lock);
	nvpm_pairs_free(&gone);
	return len;
}
