/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of the kernel that src/kernel/kernel.c uses, implemented with the C library for tests on
 * the host. A call that the real kernel forbids ends the program.
 */
#ifndef HOST_H
#define HOST_H

#define _GNU_SOURCE
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint64_t u64;
typedef unsigned int uint;

#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define ARCH_KMALLOC_MINALIGN 8

/*
 * Tests call the module's init and exit functions through host_init and host_exit.
 */
#define __init __attribute__((unused))
#define __exit __attribute__((unused))
#define MODULE_LICENSE(text)
#define module_init(function) int (*host_init)(void) = function
#define module_exit(function) void (*host_exit)(void) = function

#define KBUILD_MODNAME "nv_peer_mem"
#define pr_emerg(format, ...) host_printk("<0>" pr_fmt(format), __VA_ARGS__)
#define pr_err(format, ...) host_printk("<3>" pr_fmt(format), __VA_ARGS__)
#define pr_warn(format, ...) host_printk("<4>" pr_fmt(format), __VA_ARGS__)
#define pr_info(format, ...) host_printk("<6>" pr_fmt(format), __VA_ARGS__)
void host_printk(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define BUG() host_bug("BUG()")
void host_bug(const char *why) __attribute__((noreturn));

/*
 * host_fail() makes an allocation fail. As in the kernel, kmalloc() has a largest size, and kfree()
 * accepts only memory from kmalloc().
 */
#define GFP_KERNEL 1
#define GFP_ATOMIC 2
#define KMALLOC_MAX_SIZE (4ul << 20)
void *host_alloc(size_t size, int flags);
void *host_kmalloc(size_t size, int flags);
void host_free(void *memory);
void host_kfree(void *memory);
#define kvmalloc host_alloc
#define kvfree host_free
#define kmalloc host_kmalloc
#define kfree host_kfree

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct scatterlist {
	unsigned long page_link;
	uint offset;
	uint length;
	u64 dma_address;
	uint dma_length;
	uint dma_flags;
};

struct sg_table {
	struct scatterlist *sgl;
	uint nents;
	uint orig_nents;
};

#endif
