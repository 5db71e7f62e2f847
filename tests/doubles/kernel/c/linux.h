/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The part of the kernel that the module's C files use, implemented with the C library. This file
 * replaces each kernel header that the files include. A call that the real kernel forbids, or that
 * would wait for ever, makes the test fail (stuck()).
 *
 * The guests run the same C files in the kernel itself. There, a function of the kernel does not
 * fail when a test needs the failure, all features are those of one kernel, and a run takes minutes.
 *
 * answers.h selects the features of the kernel. Features that old kernels lack are inside #ifdef.
 */
#ifndef LINUX_H
#define LINUX_H

#include <asm-generic/errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "answers.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int32_t s32;
typedef u64 dma_addr_t, phys_addr_t;
typedef unsigned short umode_t;

#ifdef NVPM_HAS_PROC_OPS
#define static_assert(condition, ...) _Static_assert(condition, #condition)
#endif
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(number) (1ul << (number))
#define READ_ONCE(from) (*(const volatile typeof(from) *)&(from))
#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

/*
 * Marks a function without a body. The module calls this function, but no test reaches the call. If
 * a test reaches the call, the test fails, because the address of the function is then NULL.
 */
#define NO_BODY __attribute__((weak))

/*
 * The page size is that of x86. HZ has an unusual value, so that a test fails if code depends on
 * the usual value.
 */
#define PAGE_SIZE 4096ul
#define HZ 300
extern unsigned long jiffies;

/* A test sets a field to make calls fail. The calls fail until the test clears the field. */
extern struct faults {
	bool dma, iova, iova_link, iova_sync;
	bool proc_mkdir, seq_open, kobject_add;
	/* The name of the file that cannot be created. */
	const char *proc_create;
	bool not_admin;
} faults;

/* Texts. */
int scnprintf(char *to, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int vscnprintf(char *to, size_t size, const char *format, va_list words);
int kstrtouint(const char *text, unsigned int base, unsigned int *value);
/* The last line of the log. */
extern char last_line[512];
void printk(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define pr_err(format, ...) printk("<3>" pr_fmt(format), ##__VA_ARGS__)

/* Lists. */
struct list_head {
	struct list_head *next, *prev;
};

void list_add_tail(struct list_head *entry, struct list_head *list);
#define list_for_each_entry(at, list, member)					\
	for (at = container_of((list)->next, typeof(*at), member);		\
	     &at->member != (list);						\
	     at = container_of(at->member.next, typeof(*at), member))

/* Atomic numbers. */
typedef struct {
	int counter;
} atomic_t;
typedef struct {
	u64 counter;
} atomic64_t;
int atomic_read(const atomic_t *number);
void atomic_inc(atomic_t *number);
u64 atomic64_inc_return(atomic64_t *number);

/*
 * Locks. There is one processor, and a thread runs until it sleeps or ends. If a thread finds that
 * a spin lock is held, it would therefore wait for ever, so the test fails.
 */
typedef struct {
	bool held;
} spinlock_t;
#define DEFINE_SPINLOCK(name) spinlock_t name = { .held = false }
void spin_lock(spinlock_t *lock);
void spin_unlock(spinlock_t *lock);
void might_sleep(void);
void cond_resched(void);
extern int rescheduled;

struct rw_semaphore {
	int readers;
	bool writer;
};

#define DECLARE_RWSEM(name) struct rw_semaphore name = { 0 }
void down_read(struct rw_semaphore *lock);
void up_read(struct rw_semaphore *lock);
void down_write(struct rw_semaphore *lock);
void up_write(struct rw_semaphore *lock);

/* A queue of waiting threads. A thread that is woken checks its condition at once. */
struct wait_queue_head {
	int sleepers;
	unsigned int wakes;
};

#define DECLARE_WAIT_QUEUE_HEAD(name) struct wait_queue_head name = { 0 }
void sleep_on(struct wait_queue_head *queue);
void wake_up_all(struct wait_queue_head *queue);
#define wait_event(queue, condition)		\
	do {					\
		might_sleep();			\
		while (!(condition))		\
			sleep_on(&(queue));	\
	} while (0)
/* Starts a thread for a test. The thread runs until it sleeps. */
void run_thread(void (*work)(void));

struct completion {
	int done;
};

#define DECLARE_COMPLETION(name) struct completion name = { 0 }
void complete(struct completion *what);
void wait_for_completion(struct completion *what);
/* How many completions nobody has waited for. */
extern int completed;

/* Objects, and files in sysfs. */
struct kobject;

struct attribute {
	const char *name;
	umode_t mode;
};

struct attribute_group {
	struct attribute **attrs;
};

struct sysfs_ops {
	ssize_t (*show)(struct kobject *object, struct attribute *attr, char *page);
};

struct kobj_type {
	void (*release)(struct kobject *object);
	const struct sysfs_ops *sysfs_ops;
#ifdef NVPM_HAS_DEFAULT_GROUPS
	const struct attribute_group **default_groups;
#else
	struct attribute **default_attrs;
#endif
};

struct kset {
	struct list_head list;
	spinlock_t list_lock;
};

struct kobject {
	const char *name;
	struct list_head entry;
	struct kobject *parent;
	struct kset *kset;
	const struct kobj_type *type;
	int references;
	bool in_sysfs;
};

const char *kobject_name(const struct kobject *object);
void kobject_init(struct kobject *object, const struct kobj_type *type);
int kobject_add(struct kobject *object, struct kobject *parent, const char *format, ...);
void kobject_del(struct kobject *object);
void kobject_put(struct kobject *object);
/* The directory that is in sysfs now, or NULL. Tests read this variable. */
extern struct kobject *sysfs_directory;

/* Modules. */
struct module {
	struct {
		struct kobject kobj;
	} mkobj;
	int references;
};

extern struct module this_module, callback_module;
#ifndef THIS_MODULE
#define THIS_MODULE (&this_module)
#endif
/* A module without a reference is one that the kernel is unloading. */
bool try_module_get(struct module *module);
void module_put(struct module *module);
void __module_get(struct module *module);
#define __init
#define module_init(function) int (*const callback_module_init)(void) = (function)
#define EXPORT_SYMBOL(what) const void *const exported_##what = &(what)
#define MODULE_INFO(tag, text) const char modinfo_##tag[] = text
#define MODULE_AUTHOR(text) _Static_assert(sizeof(text) > 1, "no author")
#define MODULE_DESCRIPTION(text) _Static_assert(sizeof(text) > 1, "no description")
#define MODULE_LICENSE(text) _Static_assert(sizeof(text) > 1, "no licence")
#define MODULE_VERSION(text) _Static_assert(sizeof(text) > 1, "no version")

struct kernel_param;

struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *param);
	int (*get)(char *to, const struct kernel_param *param);
};

struct kernel_param {
	const char *name;
	const struct kernel_param_ops *ops;
	umode_t perm;
	void *arg;
};

int param_get_uint(char *to, const struct kernel_param *param) NO_BODY;
#define module_param_cb(param, its_ops, its_arg, its_perm)	\
	const struct kernel_param param_##param = {		\
		.name = #param,					\
		.ops = (its_ops),				\
		.perm = (its_perm),				\
		.arg = (its_arg),				\
	}
#define __MODULE_PARM_TYPE(param, text) _Static_assert(sizeof(text) > 1, "no type")
#define MODULE_PARM_DESC(param, text) _Static_assert(sizeof(text) > 1, "no description")

struct ratelimit_state {
	int interval, burst;
};

#define DEFINE_RATELIMIT_STATE(name, its_interval, its_burst) \
	struct ratelimit_state name = { .interval = (its_interval), .burst = (its_burst) }
int ___ratelimit(struct ratelimit_state *state, const char *name) NO_BODY;

/* Tasks. */
#define TASK_COMM_LEN 16
#define PF_EXITING 0x4
#define PF_SIGNALED 0x400
typedef struct {
	u32 val;
} kuid_t;
#define GLOBAL_ROOT_UID ((kuid_t){ 0 })
#define uid_eq(left, right) ((left).val == (right).val)
struct user_namespace {
	struct user_namespace *parent;
	kuid_t owner;
};

struct cred {
	kuid_t uid, euid;
	struct user_namespace *user_ns;
};

struct task_struct {
	unsigned int flags;
	s32 pid, tgid;
	u64 start_time;
#ifdef NVPM_HAS_START_BOOTTIME
	u64 start_boottime;
#else
	u64 real_start_time;
#endif
	struct task_struct *group_leader;
	struct cred cred;
	char comm[TASK_COMM_LEN];
};

extern struct task_struct *current;
#define current_uid() (current->cred.uid)
#define current_euid() (current->cred.euid)
#define current_cred() ((const struct cred *)&current->cred)
#define __kuid_val(uid) ((uid).val)
s32 task_pid_nr(const struct task_struct *task);
s32 task_tgid_nr(const struct task_struct *task);
#define CAP_SYS_ADMIN 21
bool capable(int capability);

/* Devices on PCI. */
struct bus_type {
	const char *name;
};

struct device_driver {
	const char *name;
};

struct device {
	const char *name;
	const struct bus_type *bus;
	const struct device_driver *driver;
};

struct pci_bus {
	u8 number;
	int domain;
};

struct resource {
	u64 start, end;
	unsigned long flags;
};

#define PCI_ANY_ID (~0u)
#define PCI_STD_RESOURCE_END 5
#define IORESOURCE_IO 0x100
#define IORESOURCE_MEM 0x200
struct pci_dev {
	struct pci_bus *bus;
	unsigned int devfn;
	struct resource resource[PCI_STD_RESOURCE_END + 1];
	int references;
	struct device dev;
};

extern const struct bus_type pci_bus_type;
bool dev_is_pci(const struct device *dev);
#define to_pci_dev(device) container_of(device, struct pci_dev, dev)
int pci_domain_nr(const struct pci_bus *bus);
const char *pci_name(const struct pci_dev *pci);
u32 dma_get_max_seg_size(const struct device *dev) NO_BODY;
bool device_is_registered(const struct device *dev) NO_BODY;
#define pci_resource_flags(pci, bar) ((pci)->resource[bar].flags)
#define pci_resource_start(pci, bar) ((pci)->resource[bar].start)
#define pci_resource_end(pci, bar) ((pci)->resource[bar].end)
struct pci_dev *pci_get_device(unsigned int vendor, unsigned int device, struct pci_dev *from);
void pci_dev_put(struct pci_dev *pci);
/* All PCI devices, up to the first NULL. A test sets this variable. */
extern struct pci_dev *pci_devices[4];

/* DMA addresses of devices. */
enum dma_data_direction { DMA_BIDIRECTIONAL, DMA_TO_DEVICE, DMA_FROM_DEVICE };
#define DMA_ATTR_MMIO 0x400
dma_addr_t dma_map_resource(struct device *dev, phys_addr_t phys, size_t size,
			    enum dma_data_direction dir, unsigned long attrs);
int dma_mapping_error(struct device *dev, dma_addr_t addr);
void dma_unmap_resource(struct device *dev, dma_addr_t addr, size_t size,
			enum dma_data_direction dir, unsigned long attrs);
/* The mapping that exists now. Only one mapping can exist at a time. Tests read this variable. */
extern struct mapping {
	struct device *dev;
	u64 phys, addr, size;
} mapping;

#ifdef NVPM_HAS_DMA_IOVA_MMIO
struct dma_iova_state {
	dma_addr_t addr;
	u64 size;
};

bool dma_iova_try_alloc(struct device *dev, struct dma_iova_state *state, phys_addr_t phys,
			size_t size);
int dma_iova_link(struct device *dev, struct dma_iova_state *state, phys_addr_t phys,
		  size_t offset, size_t size, enum dma_data_direction dir, unsigned long attrs);
int dma_iova_sync(struct device *dev, struct dma_iova_state *state, size_t offset, size_t size);
void dma_iova_destroy(struct device *dev, struct dma_iova_state *state, size_t mapped,
		      enum dma_data_direction dir, unsigned long attrs);
#endif
/*
 * The number of linked bytes of the range, and the number of bytes that the device can reach. Tests
 * read both numbers.
 */
extern u64 iova_linked, iova_synced;

#define GFP_KERNEL 1
struct scatterlist;
struct sg_table;

int sg_alloc_table(struct sg_table *table, unsigned int entries, int flags) NO_BODY;
struct scatterlist *sg_next(struct scatterlist *entry) NO_BODY;

/* There is only one page, whose properties and address a test sets. */
struct page {
	bool reserved, zone_device, p2pdma;
};

extern struct page the_page;
extern u64 the_page_phys;
#define __va(phys) ((u64)(phys) + 0xffff888000000000)
#define PHYS_PFN(phys) ((phys) >> 12)
bool virt_addr_valid(u64 address);
struct page *pfn_to_page(u64 pfn);
#define PageReserved(page) ((page)->reserved)
#define is_zone_device_page(page) ((page)->zone_device)
#ifdef NVPM_HAS_IS_PCI_P2PDMA_PAGE
#define is_pci_p2pdma_page(page) ((page)->p2pdma)
#endif

/* Files in proc. */
struct inode;

struct file {
	void *private_data;
	loff_t pos;
};

struct seq_file {
	char text[16384];
	size_t count;
	loff_t index;
	const struct seq_operations *op;
	/* Shows a file of single_open(). */
	int (*show)(struct seq_file *file, void *data);
	void *private;
};

struct seq_operations {
	void *(*start)(struct seq_file *file, loff_t *pos);
	void (*stop)(struct seq_file *file, void *line);
	void *(*next)(struct seq_file *file, void *line, loff_t *pos);
	int (*show)(struct seq_file *file, void *line);
};

#define SEQ_START_TOKEN ((void *)1)
int seq_open_private(struct file *file, const struct seq_operations *op, int size);
ssize_t seq_read(struct file *file, char *to, size_t size, loff_t *pos);
loff_t seq_lseek(struct file *file, loff_t offset, int whence);
int seq_release_private(struct inode *inode, struct file *file);
int single_open(struct file *file, int (*show)(struct seq_file *file, void *data), void *data);
int single_release(struct inode *inode, struct file *file);
void seq_putc(struct seq_file *file, char byte);
void seq_puts(struct seq_file *file, const char *text);
void seq_printf(struct seq_file *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef NVPM_HAS_PROC_OPS
struct proc_ops {
	int (*proc_open)(struct inode *inode, struct file *file);
	ssize_t (*proc_read)(struct file *file, char *to, size_t size, loff_t *pos);
	loff_t (*proc_lseek)(struct file *file, loff_t offset, int whence);
	int (*proc_release)(struct inode *inode, struct file *file);
};
#define file_ops proc_ops
#define PROC_OPEN proc_open
#define PROC_READ proc_read
#define PROC_SEEK proc_lseek
#define PROC_CLOSE proc_release
#else
struct file_operations {
	int (*open)(struct inode *inode, struct file *file);
	ssize_t (*read)(struct file *file, char *to, size_t size, loff_t *pos);
	loff_t (*llseek)(struct file *file, loff_t offset, int whence);
	int (*release)(struct inode *inode, struct file *file);
};
#define file_ops file_operations
#define PROC_OPEN open
#define PROC_READ read
#define PROC_SEEK llseek
#define PROC_CLOSE release
#endif

struct proc_dir_entry {
	char name[64];
	umode_t mode;
	struct proc_dir_entry *parent;
	const struct file_ops *ops;
};

struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent);
struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
				   const struct file_ops *ops);
void proc_remove(struct proc_dir_entry *entry);
/*
 * The directory that is in proc now, or NULL. Tests read this variable. proc_find() returns a file
 * of this directory.
 */
extern struct proc_dir_entry *proc_directory;
struct proc_dir_entry *proc_find(const char *name);
/*
 * Reads a file line by line, and returns its content. If @between is not NULL, calls @between after
 * the second read.
 */
const char *proc_content(const char *name, void (*between)(void));
/* The number of open files in proc. */
extern int open_files;

#endif
