// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The functions of the kernel that linux.h declares. */
#include <pthread.h>
#include <stdio.h>

#include "test.h"
#include "linux.h"

struct faults faults;
unsigned long jiffies = 1000 * HZ;

/* ---- texts ---- */

/* Prints a UUID in the kernel's form, "%pUb". */
static int print_uuid(char *to, size_t size, const u8 *uuid)
{
	int len = 0, i;

	for (i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			len += snprintf(to + len, size - len, "-");
		len += snprintf(to + len, size - len, "%02x", uuid[i]);
	}
	return len;
}

/*
 * Prints one value in the form that @conversion describes. Returns the length of the text in @to.
 */
static int print_one(char *to, size_t size, const char *conversion, va_list *words)
{
	size_t len = strlen(conversion);

	if (!strcmp(conversion, "%p"))
		return print_uuid(to, size, va_arg(*words, const u8 *));
	if (conversion[len - 1] == 's')
		return snprintf(to, size, conversion, va_arg(*words, const char *));
	if (strstr(conversion, "ll"))
		return snprintf(to, size, conversion, va_arg(*words, long long));
	return snprintf(to, size, conversion, va_arg(*words, int));
}

int vscnprintf(char *to, size_t size, const char *format, va_list words)
{
	char text[1024], conversion[16];
	size_t len = 0, end;
	va_list copy;

	va_copy(copy, words);
	while (*format) {
		if (*format != '%') {
			text[len++] = *format++;
			continue;
		}
		end = strcspn(format, "cdopsux");
		snprintf(conversion, sizeof(conversion), "%.*s", (int)end + 1, format);
		format += end + 1;
		if (conversion[end] == 'p') {
			SAME_TEXT("Ub", ((char[]){ format[0], format[1], 0 }));
			format += 2;
		}
		len += print_one(text + len, sizeof(text) - len, conversion, &copy);
		TRUE(len < sizeof(text) - 64);
	}
	va_end(copy);
	text[len] = 0;
	if (!size)
		return 0;
	if (len >= size)
		len = size - 1;
	memcpy(to, text, len);
	to[len] = 0;
	return len;
}

int scnprintf(char *to, size_t size, const char *format, ...)
{
	va_list words;
	int len;

	va_start(words, format);
	len = vscnprintf(to, size, format, words);
	va_end(words);
	return len;
}

char last_line[512];

void printk(const char *format, ...)
{
	va_list words;

	va_start(words, format);
	vscnprintf(last_line, sizeof(last_line), format, words);
	va_end(words);
}

int kstrtouint(const char *text, unsigned int base, unsigned int *value)
{
	unsigned long found;
	char *end;

	found = strtoul(text, &end, base);
	if (end == text || *text == '-' || (*end && strcmp(end, "\n")))
		return -EINVAL;
	if (found > UINT32_MAX)
		return -ERANGE;
	*value = found;
	return 0;
}

/* ---- lists and numbers ---- */

void list_add_tail(struct list_head *entry, struct list_head *list)
{
	entry->next = list;
	entry->prev = list->prev;
	list->prev->next = entry;
	list->prev = entry;
}

int atomic_read(const atomic_t *number)
{
	return number->counter;
}

void atomic_inc(atomic_t *number)
{
	number->counter++;
}

u64 atomic64_inc_return(atomic64_t *number)
{
	return ++number->counter;
}

/* ---- locks ---- */

static int spinning;

void spin_lock(spinlock_t *lock)
{
	if (lock->held)
		stuck("a spin lock is taken that is not free");
	lock->held = true;
	spinning++;
}

void spin_unlock(spinlock_t *lock)
{
	TRUE(lock->held);
	lock->held = false;
	spinning--;
}

void might_sleep(void)
{
	if (spinning)
		test_failed("sleeps with a spin lock");
}

int rescheduled;

void cond_resched(void)
{
	might_sleep();
	rescheduled++;
}

void down_read(struct rw_semaphore *lock)
{
	might_sleep();
	if (lock->writer)
		stuck("a reader waits");
	lock->readers++;
}

void up_read(struct rw_semaphore *lock)
{
	TRUE(lock->readers > 0);
	lock->readers--;
}

void down_write(struct rw_semaphore *lock)
{
	might_sleep();
	if (lock->writer || lock->readers)
		stuck("a writer waits");
	lock->writer = true;
}

void up_write(struct rw_semaphore *lock)
{
	TRUE(lock->writer);
	lock->writer = false;
}

/* ---- threads ---- */

static pthread_mutex_t processor = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* The number of other threads that have neither slept nor ended yet. */
static int awake;

/* Lets the other threads run until they sleep or end. */
static void let_run(int others)
{
	awake += others;
	pthread_cond_broadcast(&changed);
	while (awake)
		pthread_cond_wait(&changed, &processor);
}

static void rests(void)
{
	awake--;
	pthread_cond_broadcast(&changed);
}

void sleep_on(struct wait_queue_head *queue)
{
	unsigned int wakes = queue->wakes;

	queue->sleepers++;
	rests();
	while (queue->wakes == wakes)
		pthread_cond_wait(&changed, &processor);
}

void wake_up_all(struct wait_queue_head *queue)
{
	int sleepers = queue->sleepers;

	queue->sleepers = 0;
	queue->wakes++;
	let_run(sleepers);
}

static void *thread(void *work)
{
	pthread_mutex_lock(&processor);
	((void (*)(void))work)();
	rests();
	pthread_mutex_unlock(&processor);
	return NULL;
}

void run_thread(void (*work)(void))
{
	static bool running;
	pthread_t id;

	/* The test's own thread must hold the processor before it starts its first thread. */
	if (!running)
		pthread_mutex_lock(&processor);
	running = true;
	TRUE(!pthread_create(&id, NULL, thread, work));
	pthread_detach(id);
	let_run(1);
}

int completed;

void complete(struct completion *what)
{
	what->done++;
	completed++;
}

void wait_for_completion(struct completion *what)
{
	might_sleep();
	if (!what->done)
		stuck("waits for what is never complete");
	what->done--;
	completed--;
}

/* ---- objects ---- */

struct kobject *sysfs_directory;

const char *kobject_name(const struct kobject *object)
{
	return object->name;
}

void kobject_init(struct kobject *object, const struct kobj_type *type)
{
	TRUE(!object->references);
	object->type = type;
	object->references = 1;
}

int kobject_add(struct kobject *object, struct kobject *parent, const char *format, ...)
{
	if (faults.kobject_add)
		return -ENOMEM;
	object->name = format;
	object->parent = parent;
	object->in_sysfs = true;
	sysfs_directory = object;
	return 0;
}

void kobject_del(struct kobject *object)
{
	might_sleep();
	/* The kernel warns if a directory is removed that is not in sysfs. */
	TRUE(object->in_sysfs);
	object->in_sysfs = false;
	if (sysfs_directory == object)
		sysfs_directory = NULL;
}

void kobject_put(struct kobject *object)
{
	TRUE(object->references > 0);
	if (--object->references)
		return;
	TRUE(!object->in_sysfs);
	object->type->release(object);
}

/* ---- modules ---- */

struct module this_module, callback_module;

void __module_get(struct module *module)
{
	module->references++;
}

bool try_module_get(struct module *module)
{
	if (!module->references)
		return false;
	module->references++;
	return true;
}

void module_put(struct module *module)
{
	TRUE(module->references > 0);
	module->references--;
}

/* ---- tasks ---- */

#ifdef NVPM_HAS_START_BOOTTIME
#define START_BOOTTIME start_boottime
#else
#define START_BOOTTIME real_start_time
#endif

static struct user_namespace first_namespace;

static struct task_struct leader = {
	.pid = 40, .tgid = 40, .start_time = 3, .comm = "the leader's own",
	.group_leader = &leader,
	.cred = { .uid = { 1001 }, .euid = { 1002 }, .user_ns = &first_namespace },
	.START_BOOTTIME = 5,
};

static struct task_struct task = {
	.pid = 42, .tgid = 40, .start_time = 4, .comm = "a thread",
	.group_leader = &leader,
	.cred = { .uid = { 1000 }, .euid = { 999 }, .user_ns = &first_namespace },
	.START_BOOTTIME = 6,
};

struct task_struct *current = &task;

s32 task_pid_nr(const struct task_struct *task)
{
	return task->pid;
}

s32 task_tgid_nr(const struct task_struct *task)
{
	return task->tgid;
}

bool capable(int capability)
{
	SAME(CAP_SYS_ADMIN, capability);
	return !faults.not_admin;
}

/* ---- devices ---- */

const struct bus_type pci_bus_type = { .name = "pci" };
struct pci_dev *pci_devices[4];

bool dev_is_pci(const struct device *dev)
{
	return dev->bus == &pci_bus_type;
}

int pci_domain_nr(const struct pci_bus *bus)
{
	return bus->domain;
}

const char *pci_name(const struct pci_dev *pci)
{
	return pci->dev.name;
}

struct pci_dev *pci_get_device(unsigned int vendor, unsigned int device, struct pci_dev *from)
{
	struct pci_dev **at = pci_devices;

	might_sleep();
	TRUE(vendor == PCI_ANY_ID && device == PCI_ANY_ID);
	if (from) {
		while (*at != from)
			at++;
		at++;
		pci_dev_put(from);
	}
	if (*at)
		(*at)->references++;
	return *at;
}

void pci_dev_put(struct pci_dev *pci)
{
	TRUE(pci->references > 0);
	pci->references--;
}

/* ---- DMA ---- */

struct mapping mapping;
u64 iova_linked, iova_synced;

dma_addr_t dma_map_resource(struct device *dev, phys_addr_t phys, size_t size,
			    enum dma_data_direction dir, unsigned long attrs)
{
	SAME(DMA_BIDIRECTIONAL, dir);
	SAME(0, attrs);
	if (faults.dma)
		return ~0ull;
	TRUE(!mapping.dev);
	mapping = (struct mapping){ dev, phys, phys + 0x5000000000, size };
	return mapping.addr;
}

int dma_mapping_error(struct device *dev, dma_addr_t addr)
{
	return addr == ~0ull ? -ENOMEM : 0;
}

void dma_unmap_resource(struct device *dev, dma_addr_t addr, size_t size,
			enum dma_data_direction dir, unsigned long attrs)
{
	SAME(DMA_BIDIRECTIONAL, dir);
	SAME(0, attrs);
	TRUE(dev == mapping.dev);
	SAME(mapping.addr, addr);
	SAME(mapping.size, size);
	mapping.dev = NULL;
}

#ifdef NVPM_HAS_DMA_IOVA_MMIO
bool dma_iova_try_alloc(struct device *dev, struct dma_iova_state *state, phys_addr_t phys,
			size_t size)
{
	if (faults.iova)
		return false;
	TRUE(!mapping.dev);
	/* The first address of the range has the same offset in a page as @phys. */
	mapping = (struct mapping){ dev, phys, 0x7000000000 + (phys & 0xffff), size };
	*state = (struct dma_iova_state){ mapping.addr, size };
	return true;
}

static void is_the_range(struct device *dev, struct dma_iova_state *state)
{
	TRUE(dev == mapping.dev);
	SAME(mapping.addr, state->addr);
	SAME(mapping.size, state->size);
}

int dma_iova_link(struct device *dev, struct dma_iova_state *state, phys_addr_t phys,
		  size_t offset, size_t size, enum dma_data_direction dir, unsigned long attrs)
{
	is_the_range(dev, state);
	SAME(DMA_BIDIRECTIONAL, dir);
	SAME(DMA_ATTR_MMIO, attrs);
	SAME(iova_linked, offset);
	if (faults.iova_link)
		return -ENOMEM;
	if (!offset)
		SAME(mapping.phys, phys);
	iova_linked += size;
	TRUE(iova_linked <= mapping.size);
	return 0;
}

int dma_iova_sync(struct device *dev, struct dma_iova_state *state, size_t offset, size_t size)
{
	is_the_range(dev, state);
	SAME(0, offset);
	if (faults.iova_sync)
		return -ENOMEM;
	iova_synced = size;
	return 0;
}

void dma_iova_destroy(struct device *dev, struct dma_iova_state *state, size_t mapped,
		      enum dma_data_direction dir, unsigned long attrs)
{
	is_the_range(dev, state);
	SAME(DMA_BIDIRECTIONAL, dir);
	SAME(DMA_ATTR_MMIO, attrs);
	SAME(iova_linked, mapped);
	iova_linked = 0;
	mapping.dev = NULL;
}
#endif

/* ---- pages ---- */

struct page the_page;
u64 the_page_phys;

bool virt_addr_valid(u64 address)
{
	return address - __va(0) == the_page_phys;
}

struct page *pfn_to_page(u64 pfn)
{
	SAME(the_page_phys >> 12, pfn);
	return &the_page;
}

/* ---- proc ---- */

struct proc_dir_entry *proc_directory;
static struct proc_dir_entry *proc_files[2];
int open_files;

static struct proc_dir_entry *proc_new(const char *name, umode_t mode,
				       struct proc_dir_entry *parent, const struct file_ops *ops)
{
	struct proc_dir_entry *new = calloc(1, sizeof(*new));

	snprintf(new->name, sizeof(new->name), "%s", name);
	new->mode = mode;
	new->parent = parent;
	new->ops = ops;
	return new;
}

struct proc_dir_entry *proc_mkdir(const char *name, struct proc_dir_entry *parent)
{
	might_sleep();
	if (faults.proc_mkdir)
		return NULL;
	TRUE(!proc_directory);
	proc_directory = proc_new(name, 0555, parent, NULL);
	return proc_directory;
}

struct proc_dir_entry *proc_find(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(proc_files); i++)
		if (proc_files[i] && !strcmp(proc_files[i]->name, name))
			return proc_files[i];
	return NULL;
}

struct proc_dir_entry *proc_create(const char *name, umode_t mode, struct proc_dir_entry *parent,
				   const struct file_ops *ops)
{
	int i = 0;

	might_sleep();
	TRUE(proc_directory && parent == proc_directory);
	if (faults.proc_create && !strcmp(faults.proc_create, name))
		return NULL;
	TRUE(!proc_find(name));
	while (proc_files[i])
		i++;
	TRUE(i < ARRAY_SIZE(proc_files));
	proc_files[i] = proc_new(name, mode, parent, ops);
	return proc_files[i];
}

/* Removes a directory together with its files. */
void proc_remove(struct proc_dir_entry *entry)
{
	int i;

	might_sleep();
	if (!entry)
		return;
	TRUE(entry == proc_directory);
	proc_directory = NULL;
	for (i = 0; i < ARRAY_SIZE(proc_files); i++) {
		free(proc_files[i]);
		proc_files[i] = NULL;
	}
	free(entry);
}

const char *proc_content(const char *name, void (*between)(void))
{
	const struct file_ops *ops = proc_find(name)->ops;
	static char text[16384];
	struct file file = { 0 };
	size_t len = 0;
	int reads = 0;
	ssize_t more;

	SAME(0, ops->PROC_OPEN(NULL, &file));
	while ((more = ops->PROC_READ(&file, text + len, sizeof(text) - 1 - len, &file.pos)) > 0) {
		len += more;
		if (++reads == 2 && between)
			between();
	}
	SAME(0, more);
	text[len] = 0;
	SAME(0, ops->PROC_CLOSE(NULL, &file));
	SAME(0, open_files);
	return text;
}

int seq_open_private(struct file *file, const struct seq_operations *op, int size)
{
	struct seq_file *seq;

	if (faults.seq_open)
		return -ENOMEM;
	seq = calloc(1, sizeof(*seq));
	seq->op = op;
	seq->private = calloc(1, size);
	file->private_data = seq;
	open_files++;
	return 0;
}

int single_open(struct file *file, int (*show)(struct seq_file *file, void *data), void *data)
{
	struct seq_file *seq;

	if (faults.seq_open)
		return -ENOMEM;
	seq = calloc(1, sizeof(*seq));
	seq->show = show;
	seq->private = data;
	file->private_data = seq;
	open_files++;
	return 0;
}

static void seq_next_line(struct seq_file *seq)
{
	void *line = seq->op->start(seq, &seq->index);

	if (line) {
		SAME(0, seq->op->show(seq, line));
		line = seq->op->next(seq, line, &seq->index);
	}
	seq->op->stop(seq, line);
}

/*
 * From a file with seq_operations, returns one line at a time, so a reader needs one call for each
 * line. From a file of single_open(), returns the whole content at once.
 */
ssize_t seq_read(struct file *file, char *to, size_t size, loff_t *pos)
{
	struct seq_file *seq = file->private_data;

	seq->count = 0;
	if (!seq->show)
		seq_next_line(seq);
	else if (!seq->index++)
		SAME(0, seq->show(seq, seq->private));
	TRUE(seq->count < size);
	memcpy(to, seq->text, seq->count);
	*pos += seq->count;
	return seq->count;
}

loff_t seq_lseek(struct file *file, loff_t offset, int whence)
{
	return -EINVAL;
}

int seq_release_private(struct inode *inode, struct file *file)
{
	struct seq_file *seq = file->private_data;

	TRUE(!seq->show);
	free(seq->private);
	free(seq);
	open_files--;
	return 0;
}

/* Frees the open file, but not its private data. */
int single_release(struct inode *inode, struct file *file)
{
	struct seq_file *seq = file->private_data;

	TRUE(seq->show);
	free(seq);
	open_files--;
	return 0;
}

void seq_putc(struct seq_file *file, char byte)
{
	file->text[file->count++] = byte;
}

void seq_puts(struct seq_file *file, const char *text)
{
	seq_printf(file, "%s", text);
}

void seq_printf(struct seq_file *file, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	file->count += vscnprintf(file->text + file->count, sizeof(file->text) - file->count,
				  format, words);
	va_end(words);
}
