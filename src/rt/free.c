// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The C half of the ground "free". Nothing here is for GPL modules only: beside a
 * proprietary driver this module may use no such thing.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "../compat.h"
#include "../shim.h"
#include "free.h"

MODULE_LICENSE("Dual BSD/GPL");

static int __init nvpm_init(void)
{
	return nvpm_load();
}

static void __exit nvpm_exit(void)
{
	nvpm_unload();
}

module_init(nvpm_init);
module_exit(nvpm_exit);

/* What Rust takes for granted on this ground: bindings.rs has these layouts. */
static_assert(ARCH_KMALLOC_MINALIGN >= 8);
static_assert(sizeof(struct sg_table) == 16);
static_assert(offsetof(struct sg_table, sgl) == 0);
static_assert(offsetof(struct sg_table, nents) == 8);
static_assert(offsetof(struct sg_table, orig_nents) == 12);
static_assert(sizeof(struct scatterlist) == 32);
static_assert(offsetof(struct scatterlist, page_link) == 0);
static_assert(offsetof(struct scatterlist, offset) == 8);
static_assert(offsetof(struct scatterlist, length) == 12);
static_assert(offsetof(struct scatterlist, dma_address) == 16);
static_assert(offsetof(struct scatterlist, dma_length) == 24);
static_assert(offsetof(struct nvpm_sg_list, next) == 16);
static_assert(offsetof(struct nvpm_sg_list, room) == 24);
static_assert(sizeof(struct nvpm_sg_list) == 40);

void nvpm_print(int level, const u8 *text, size_t len)
{
	if (level == 6)
		pr_info("%.*s", (int)len, text);
	else if (level == 4)
		pr_warn("%.*s", (int)len, text);
	else if (level == 3)
		pr_err("%.*s", (int)len, text);
	else
		pr_emerg("%.*s", (int)len, text);
}

void nvpm_bug(void)
{
	BUG();
}

void *nvpm_alloc(size_t size)
{
	return kvmalloc(size, GFP_KERNEL);
}

void nvpm_free(void *memory)
{
	kvfree(memory);
}

struct nvpm_shared {
	refcount_t owners;
	spinlock_t lock;
	wait_queue_head_t changed;
	u64 object[];
};

static struct nvpm_shared *nvpm_shared(void *object)
{
	return container_of(object, struct nvpm_shared, object);
}

void *nvpm_shared_new(size_t size)
{
	struct nvpm_shared *shared = kmalloc(sizeof(*shared) + size, GFP_KERNEL);

	if (!shared)
		return NULL;
	refcount_set(&shared->owners, 1);
	spin_lock_init(&shared->lock);
	init_waitqueue_head(&shared->changed);
	return shared->object;
}

void nvpm_shared_get(void *object)
{
	refcount_inc(&nvpm_shared(object)->owners);
}

bool nvpm_shared_put(void *object)
{
	return refcount_dec_and_test(&nvpm_shared(object)->owners);
}

void nvpm_shared_free(void *object)
{
	kfree(nvpm_shared(object));
}

void nvpm_shared_lock(void *object)
{
	spin_lock(&nvpm_shared(object)->lock);
}

void nvpm_shared_unlock(void *object)
{
	spin_unlock(&nvpm_shared(object)->lock);
}

void nvpm_shared_wait(void *object)
{
	struct nvpm_shared *shared = nvpm_shared(object);
	DEFINE_WAIT(wait);

	/* In the queue before the lock is let go: whoever changes the state has it. */
	prepare_to_wait(&shared->changed, &wait, TASK_UNINTERRUPTIBLE);
	spin_unlock(&shared->lock);
	schedule();
	finish_wait(&shared->changed, &wait);
	spin_lock(&shared->lock);
}

void nvpm_shared_wake(void *object)
{
	struct nvpm_shared *shared = nvpm_shared(object);

	/* Whoever waits was in the queue before it let go of the lock. Mostly nobody does. */
	if (waitqueue_active(&shared->changed))
		wake_up_all(&shared->changed);
}
