// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The functions of the kernel that include/linux/host.h declares, implemented for tests on the
 * host.
 */
#include <linux/rbtree.h>
#include <malloc.h>
#include <stdarg.h>

#include "host.h"

/* Each thread has its own log. */
static __thread char host_log[1024];
static __thread long host_fail_at;
static __thread long host_allocated, host_size;

const char *host_said(void)
{
	return host_log;
}

void host_printk(const char *format, ...)
{
	va_list rest;

	va_start(rest, format);
	vsnprintf(host_log, sizeof(host_log), format, rest);
	va_end(rest);
}

void host_bug(const char *why)
{
	fprintf(stderr, "host: %s\n", why);
	abort();
}

/*
 * Makes an allocation of this thread fail. @number is 1 for the next allocation. If it is 0, all
 * allocations succeed.
 */
void host_fail(long number)
{
	host_fail_at = number;
}

/* Returns how many times this thread has allocated memory. */
long host_allocations(void)
{
	return host_allocated;
}

/* Returns the size of the last allocation of this thread, in bytes. */
long host_last_size(void)
{
	return host_size;
}

void *host_alloc(size_t size, int flags)
{
	if (flags != GFP_KERNEL)
		host_bug("an allocation that must not sleep");
	if (host_fail_at && !--host_fail_at)
		return NULL;
	host_allocated++;
	host_size = size;
	return malloc(size);
}

void *host_kmalloc(size_t size, int flags)
{
	return size > KMALLOC_MAX_SIZE ? NULL : host_alloc(size, flags);
}

void host_free(void *memory)
{
	free(memory);
}

void host_kfree(void *memory)
{
	/* The C library may return a few bytes more than the caller has requested. */
	if (malloc_usable_size(memory) > KMALLOC_MAX_SIZE + 64)
		host_bug("kfree() of memory larger than kmalloc() gives");
	free(memory);
}

/*
 * Trees that are balanced by another method than the kernel's. Each node has a rank, which is never
 * above its parent's rank. As in the kernel, balancing changes the places of nodes in the tree, and
 * the low bits of the parent's address have a meaning that callers must not rely on.
 */
static u64 rank(const struct rb_node *node)
{
	return (u64)node * 0x9e3779b97f4a7c15;
}

static struct rb_node *parent_of(const struct rb_node *node)
{
	return (struct rb_node *)(node->__rb_parent_color & ~3ul);
}

static void set_parent(struct rb_node *node, struct rb_node *parent)
{
	if (node)
		node->__rb_parent_color = (unsigned long)parent | 1;
}

/* Returns the pointer that points to @node. */
static struct rb_node **link_of(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *parent = parent_of(node);
	struct rb_node **link = !parent ? &root->rb_node :
		parent->rb_left == node ? &parent->rb_left : &parent->rb_right;

	if (*link != node)
		host_bug("a node that is not in the tree");
	return link;
}

/* Moves @node to the place of its parent. The parent becomes a child of @node. */
static void rise(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *parent = parent_of(node), *inner;
	struct rb_node **link = link_of(parent, root);

	if (parent->rb_left == node) {
		inner = node->rb_right;
		parent->rb_left = inner;
		node->rb_right = parent;
	} else {
		inner = node->rb_left;
		parent->rb_right = inner;
		node->rb_left = parent;
	}
	set_parent(inner, parent);
	set_parent(node, parent_of(parent));
	set_parent(parent, node);
	*link = node;
}

void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	if (node->rb_left || node->rb_right || node->__rb_parent_color & 3)
		host_bug("a new node is linked to others");
	link_of(node, root);
	set_parent(node, parent_of(node));
	while (parent_of(node) && rank(node) > rank(parent_of(node)))
		rise(node, root);
}

void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *left, *right;

	if (!(node->__rb_parent_color & 1))
		host_bug("a node that rb_insert_color() has not seen");
	while ((left = node->rb_left) && (right = node->rb_right))
		rise(rank(left) > rank(right) ? left : right, root);
	left = left ? left : node->rb_right;
	*link_of(node, root) = left;
	set_parent(left, parent_of(node));
}

struct rb_node *rb_next(const struct rb_node *node)
{
	struct rb_node *next = node->rb_right;

	if (next) {
		while (next->rb_left)
			next = next->rb_left;
		return next;
	}
	while ((next = parent_of(node)) && next->rb_right == node)
		node = next;
	return next;
}
