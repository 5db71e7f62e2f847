// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The C functions of the module's own `kernel` crate. They use no GPL-only symbol, because a module
 * for the proprietary driver must not use one.
 */
/* The module says its own name, also if its file is called nvidia_peermem.ko. */
#define pr_fmt(fmt) "nv_peer_mem: " fmt

#include <linux/bug.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/rbtree.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kernel.h"

MODULE_LICENSE("Dual BSD/GPL");

static int __init nvpm_init(void)
{
	/* alloc.rs relies on this alignment, and rbtree.rs and bindings.rs on these layouts. */
	BUILD_BUG_ON(ARCH_KMALLOC_MINALIGN < 8);
	BUILD_BUG_ON(sizeof(struct rb_root) != sizeof(struct rb_node *));
	BUILD_BUG_ON(sizeof(struct rb_node) != 24);
	BUILD_BUG_ON(offsetof(struct rb_node, __rb_parent_color) != 0);
	BUILD_BUG_ON(offsetof(struct rb_node, rb_right) != 8);
	BUILD_BUG_ON(offsetof(struct rb_node, rb_left) != 16);
	BUILD_BUG_ON(sizeof(struct sg_table) != 16);
	BUILD_BUG_ON(offsetof(struct sg_table, sgl) != 0);
	BUILD_BUG_ON(offsetof(struct sg_table, nents) != 8);
	BUILD_BUG_ON(offsetof(struct sg_table, orig_nents) != 12);
	BUILD_BUG_ON(sizeof(struct scatterlist) != 32);
	BUILD_BUG_ON(offsetof(struct scatterlist, page_link) != 0);
	BUILD_BUG_ON(offsetof(struct scatterlist, offset) != 8);
	BUILD_BUG_ON(offsetof(struct scatterlist, length) != 12);
	BUILD_BUG_ON(offsetof(struct scatterlist, dma_address) != 16);
	BUILD_BUG_ON(offsetof(struct scatterlist, dma_length) != 24);
	return nvpm_load();
}

static void __exit nvpm_exit(void)
{
	nvpm_unload();
}

module_init(nvpm_init);
module_exit(nvpm_exit);

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
