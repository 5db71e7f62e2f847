/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What src/rt/free.c includes of the kernel, made of the C library and POSIX threads
 * for tests on the host. Where the kernel forbids something, this ends the program.
 */
#ifndef HOST_H
#define HOST_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef int64_t s64;
typedef uint64_t u64;
typedef unsigned int uint;
typedef uint64_t dma_addr_t;

#define static_assert(condition) _Static_assert(condition, #condition)
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))
#define ARCH_KMALLOC_MINALIGN 8

/* The module's beginning and end are called by name. */
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

/* Memory, of which an allocation can be made to fail. */
#define GFP_KERNEL 0
#define __GFP_NOFAIL 0
void *host_alloc(size_t size);
void host_free(void *memory);
#define kmalloc(size, flags) host_alloc(size)
#define kvmalloc(size, flags) host_alloc(size)
#define kfree host_free
#define kvfree host_free

typedef struct {
	uint count;
} refcount_t;

void refcount_set(refcount_t *refs, uint count);
void refcount_inc(refcount_t *refs);
bool refcount_dec_and_test(refcount_t *refs);

typedef struct {
	pthread_mutex_t mutex;
} spinlock_t;

void spin_lock_init(spinlock_t *lock);
void spin_lock(spinlock_t *lock);
void spin_unlock(spinlock_t *lock);

typedef struct {
	pthread_mutex_t mutex;
	pthread_cond_t woken;
	u64 times;
	uint waiting;
} wait_queue_head_t;

struct host_wait {
	wait_queue_head_t *queue;
	u64 times;
};

#define TASK_UNINTERRUPTIBLE 2
#define DEFINE_WAIT(name) struct host_wait name = { NULL, 0 }
void init_waitqueue_head(wait_queue_head_t *queue);
void prepare_to_wait(wait_queue_head_t *queue, struct host_wait *wait, int state);
void schedule(void);
void finish_wait(wait_queue_head_t *queue, struct host_wait *wait);
bool waitqueue_active(wait_queue_head_t *queue);
void wake_up_all(wait_queue_head_t *queue);

struct scatterlist {
	unsigned long page_link;
	uint offset;
	uint length;
	dma_addr_t dma_address;
	uint dma_length;
	uint dma_flags;
};

struct sg_table {
	struct scatterlist *sgl;
	uint nents;
	uint orig_nents;
};

/* As in the kernel: the last entry of an array may point to the next array. */
#define SG_CHAIN 1ul
#define SG_END 2ul
#define SG_MAX_SINGLE_ALLOC (4096 / sizeof(struct scatterlist))
#define sg_is_chain(entry) ((entry)->page_link & SG_CHAIN)
#define sg_is_last(entry) ((entry)->page_link & SG_END)
#define sg_chain_ptr(entry) ((struct scatterlist *)((entry)->page_link & ~(SG_CHAIN | SG_END)))
#define sg_chain(array, entries, next) \
	((array)[(entries) - 1].page_link = (unsigned long)(next) | SG_CHAIN)
#define sg_dma_address(entry) ((entry)->dma_address)
#define sg_dma_len(entry) ((entry)->dma_length)
#define DMA_BIDIRECTIONAL 0
#define DMA_MAPPING_ERROR (~(dma_addr_t)0)
#define dma_mapping_error(dev, address) ((address) == DMA_MAPPING_ERROR)
struct device;
dma_addr_t dma_map_resource(struct device *dev, u64 physical, size_t len, int way, unsigned long attributes);
void dma_unmap_resource(struct device *dev, dma_addr_t address, size_t len, int way, unsigned long attributes);
#define sg_mark_end(entry) ((entry)->page_link = SG_END)

#define clamp_t(type, value, low, high) ({				\
	type v_ = (value), l_ = (low), h_ = (high);			\
	v_ < l_ ? l_ : v_ > h_ ? h_ : v_; })
#define kmalloc_array(number, size, flags) host_alloc((number) * (size))
void *host_zalloc(size_t size);
#define kzalloc(size, flags) host_zalloc(size)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
int host_scnprintf(char *buf, size_t size, const char *format, ...);
#define scnprintf host_scnprintf

typedef struct {
	s64 value;
} atomic64_t;

#define atomic64_inc_return(counter) __atomic_add_fetch(&(counter)->value, 1, __ATOMIC_SEQ_CST)

#define DEFINE_SPINLOCK(name) \
	spinlock_t name = { PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP }
#define DECLARE_RWSEM(name) pthread_rwlock_t name = PTHREAD_RWLOCK_INITIALIZER
#define down_read pthread_rwlock_rdlock
#define up_read pthread_rwlock_unlock
#define down_write pthread_rwlock_wrlock
#define up_write pthread_rwlock_unlock

#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(7, 3, 0)

struct list_head {
	struct list_head *next, *prev;
};

#define LIST_HEAD(name) struct list_head name = { &(name), &(name) }
#define INIT_LIST_HEAD(head) ((head)->next = (head)->prev = (head))

static inline void list_add(struct list_head *new, struct list_head *head)
{
	new->next = head->next;
	new->prev = head;
	head->next->prev = new;
	head->next = new;
}

static inline void list_add_tail(struct list_head *new, struct list_head *head)
{
	list_add(new, head->prev);
}

static inline void list_move(struct list_head *entry, struct list_head *head)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	list_add(entry, head);
}

#define list_for_each_entry(entry, head, member)				\
	for ((entry) = container_of((head)->next, typeof(*(entry)), member);	\
	     &(entry)->member != (head);					\
	     (entry) = container_of((entry)->member.next, typeof(*(entry)), member))
#define list_for_each_entry_safe(entry, after, head, member)			\
	for ((entry) = container_of((head)->next, typeof(*(entry)), member),	\
	     (after) = container_of((entry)->member.next, typeof(*(entry)), member); \
	     &(entry)->member != (head);					\
	     (entry) = (after),							\
	     (after) = container_of((entry)->member.next, typeof(*(entry)), member))

/* All in one bucket is as right as in many. */
struct hlist_node {
	struct list_head list;
};

#define DEFINE_HASHTABLE(name, bits) LIST_HEAD(name)
#define hash_add(table, node, key) list_add(&(node)->list, &(table))
#define hash_del(node) ((node)->list.prev->next = (node)->list.next, \
			(node)->list.next->prev = (node)->list.prev)
#define hash_for_each_possible(table, entry, member, key) \
	list_for_each_entry(entry, &(table), member.list)

static inline void list_del(struct list_head *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
}

#define HZ 250
extern u64 jiffies;

#define CAP_SYS_ADMIN 21
bool capable(int capability);

/* A file of proc, and what writes it line by line. */
struct inode;
struct file {
	void *private_data;
};

struct seq_file {
	char *buf;
	size_t size;
	size_t count;
	loff_t index;
	const struct seq_operations *op;
	void *private;
};

struct seq_operations {
	void *(*start)(struct seq_file *file, loff_t *at);
	void (*stop)(struct seq_file *file, void *line);
	void *(*next)(struct seq_file *file, void *line, loff_t *at);
	int (*show)(struct seq_file *file, void *line);
};

#define SEQ_START_TOKEN ((void *)1)
int seq_open_private(struct file *file, const struct seq_operations *op, int size);
int seq_release_private(struct inode *inode, struct file *file);
void seq_printf(struct seq_file *file, const char *format, ...);
#define seq_puts(file, text) seq_printf(file, "%s", text)
#define seq_putc(file, byte) seq_printf(file, "%c", byte)
void seq_read(void);
void seq_lseek(void);

struct proc_ops {
	int (*proc_open)(struct inode *inode, struct file *file);
	int (*proc_release)(struct inode *inode, struct file *file);
	void (*proc_read)(void);
	void (*proc_lseek)(void);
};

struct proc_dir_entry;
struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent);
struct proc_dir_entry *proc_create(const char *name, uint mode, struct proc_dir_entry *parent,
				   const struct proc_ops *ops);
void proc_remove(struct proc_dir_entry *entry);

/* A device on the PCI bus, without an IOMMU, known by its references, and to the kernel or not any more. */
struct device {
	bool registered;
	int references;
	const char *name;
};

struct pci_bus {
	int domain;
	u8 number;
};

struct pci_dev {
	struct device dev;
	struct pci_bus *bus;
	uint devfn;
};

#define pci_domain_nr(bus) ((bus)->domain)

#define to_pci_dev(device) ((struct pci_dev *)(device))
#define device_is_registered(device) ((device)->registered)
#define pci_name(pci) ((pci)->dev.name)

#define use_dma_iommu(device) ((void)(device), false)
#define get_dma_ops(device) ((void)(device), NULL)

static inline struct pci_dev *pci_dev_get(struct pci_dev *pci)
{
	pci->dev.references++;
	return pci;
}

static inline void pci_dev_put(struct pci_dev *pci)
{
	pci->dev.references--;
}

#endif
