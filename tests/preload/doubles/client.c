// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that registers memory. It executes the words of its command line in their order, and
 * prints a line for each registration. With -DLINKED the program is linked with libibverbs. Without
 * -DLINKED, the word "verbs" opens libibverbs. With -DOWN_LIST, the program has a dl_iterate_phdr()
 * that shows no object.
 *
 *	cuda, verbs		opens that library with RTLD_LOCAL, as NCCL does
 *	open FILE		opens another libibverbs in the same way, and uses it from then on
 *	plugin FILE		opens a library that is no libibverbs
 *	close			closes the libibverbs that was opened last, and forgets its domain
 *	close_cuda		closes libcuda
 *	pd			takes a protection domain of the libibverbs that is used
 *	crafted			makes one for a real libibverbs, with this program as the device's driver
 *	context			gives the thread a CUDA context
 *	thread, fork		the words that follow are for a new thread, or for a child
 *	cancelled		the next registration in a thread with a cancellation pending; prints
 *				how the thread ends
 *	stderr FILE		closes stderr, and opens the file in its place
 *	close_input		closes stdin
 *	kept			the next registration in a thread that cannot be cancelled; prints
 *				whether it can be cancelled afterwards
 *	descriptors		uses all descriptors up
 *	reg ADDRESS LENGTH ACCESS
 *	iova ADDRESS LENGTH ACCESS IOVA
 *	ex ADDRESS LENGTH ACCESS IOVA MASK
 *	times N			the next registration N times; prints how many descriptors were added
 *	threads N		the next registration 1000 times in each of N threads
 *	loading			the next registration, over and over while a thread opens libcuda, and once
 *				afterwards
 *	forks N			the next registration, over and over in three threads, and once in each of
 *				N children; prints how many children hung. With HOLD, the first fork comes
 *				while a thread stays in its walk
 *	probe			calls the ibv_reg_mr_iova2() that the process has without libibverbs
 *	libraries		prints the libraries of the process
 *	number			prints how many descriptors the process has
 *
 * An ADDRESS is a number or "host".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "context.h"
#include "doubles.h"
#include "mr_ex.h"

struct registration {
	const char *how;
	void *addr;
	size_t length;
	int access;
	uint64_t iova;
	uint64_t mask;
};

static void *verbs, *cuda;
static struct ibv_pd none;
static struct ibv_pd *pd = &none;

static void *function(void *library, const char *name, const char *version)
{
	void *it = version ? dlvsym(library, name, version) : dlsym(library, name);

	if (!it) {
		printf("%s\n", dlerror());
		exit(2);
	}
	return it;
}

/*
 * This function is each operation of the crafted device's driver. ibv_reg_mr_iova2() calls it with
 * a pointer. The function refuses the pointer, because there is no peer memory. ibv_reg_dmabuf_mr()
 * calls it with an offset.
 */
static struct ibv_mr *operation(struct ibv_pd *unused, uint64_t start)
{
	Dl_info copy;

	(void)unused;
	dladdr(__builtin_return_address(0), &copy);
	event("%s %s\n", start < GPU_SIZE ? "dmabuf_by" : "by", strrchr(copy.dli_fname, '/') + 1);
	if (in_gpu(start, GPU_MEMORY, 0)) {
		errno = EFAULT;
		return NULL;
	}
	return calloc(1, 4096);
}

/*
 * Makes a protection domain. All operations are the same function, because their order differs
 * between versions of rdma-core. The context must contain a function of libibverbs. It contains an
 * exported one, because this program cannot name a static one.
 */
static struct ibv_pd *crafted(void)
{
	static struct ibv_pd crafted;
	static void *device[64], *operations[512];
	struct double_context *it = calloc(1, sizeof(*it));

	for (int i = 0; i < 512; i++)
		operations[i] = operation;
	it->create_cq_ex = function(verbs, "ibv_query_port", "IBVERBS_1.1");
	it->priv = operations;
	it->sz = sizeof(*it);
	it->context.device = device;
	it->context.abi_compat = IS_EXTENDED;
	crafted.context = (struct ibv_context *)&it->context;
	return &crafted;
}

/* A request for a dma-buf has the descriptor of a file of 64 KiB, and the address as its offset. */
static struct mr_init_attr attributes_of(struct registration *it)
{
	struct mr_init_attr attr = { it->length, it->access, it->mask, it->iova, it->addr };

	if (it->mask & MASK_FD) {
		attr.fd = memfd_create("dma-buf", 0);
		if (ftruncate(attr.fd, 65536))
			attr.fd = -1;
		attr.fd_offset = (uint64_t)it->addr;
		if (!(it->mask & MASK_ADDR))
			attr.addr = NULL;
	}
	return attr;
}

#ifdef LINKED
struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct mr_init_attr *attr);

/*
 * Registers memory. verbs.h calls one function if the flags are a constant, and another function if
 * they are not.
 */
static struct ibv_mr *registered(struct registration *it)
{
	struct mr_init_attr attr = attributes_of(it);

	if (!strcmp(it->how, "iova"))
		return ibv_reg_mr_iova(pd, it->addr, it->length, it->iova, IBV_ACCESS_LOCAL_WRITE);
	if (!strcmp(it->how, "ex"))
		return ibv_reg_mr_ex(pd, &attr);
	if (it->access == IBV_ACCESS_LOCAL_WRITE)
		return ibv_reg_mr(pd, it->addr, it->length, IBV_ACCESS_LOCAL_WRITE);
	return ibv_reg_mr(pd, it->addr, it->length, it->access);
}

static struct ibv_pd *own_pd(void)
{
	return ibv_alloc_pd(NULL);
}
#else
static struct ibv_mr *registered(struct registration *it)
{
	struct mr_init_attr attr = attributes_of(it);
	struct ibv_mr *(*reg)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*iova)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access);
	struct ibv_mr *(*ex)(struct ibv_pd *pd, struct mr_init_attr *attr);

	if (!strcmp(it->how, "iova")) {
		iova = function(verbs, "ibv_reg_mr_iova", "IBVERBS_1.7");
		return iova(pd, it->addr, it->length, it->iova, it->access);
	}
	if (!strcmp(it->how, "ex")) {
		ex = function(verbs, "ibv_reg_mr_ex", "IBVERBS_1.15");
		return ex(pd, &attr);
	}
	reg = function(verbs, "ibv_reg_mr", "IBVERBS_1.1");
	return reg(pd, it->addr, it->length, it->access);
}

static struct ibv_pd *own_pd(void)
{
	struct ibv_pd *(*alloc)(struct ibv_context *context);

	alloc = function(verbs, "ibv_alloc_pd", "IBVERBS_1.1");
	return alloc(NULL);
}
#endif

static void say(struct ibv_mr *mr)
{
	if (mr)
		printf("addr=%p length=%zu\n", mr->addr, mr->length);
	else
		printf("errno=%d\n", errno);
	fflush(stdout);
}

static int descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int number = 0;

	while (readdir(directory))
		number++;
	closedir(directory);
	return number;
}

static void libraries(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];

	while (fgets(line, sizeof(line), maps))
		fputs(line, stdout);
	fclose(maps);
}

static int repeat(struct registration *it, int times)
{
	int done = 0;

	for (int i = 0; i < times; i++) {
		struct ibv_mr *mr = registered(it);

		done += mr && mr->addr == it->addr;
		free(mr);
	}
	return done;
}

static void *thousand(void *it)
{
	return (void *)(long)repeat(it, 1000);
}

static void threads(struct registration *it, int number)
{
	pthread_t thread[64];
	long done = 0;

	for (int i = 0; i < number; i++)
		pthread_create(&thread[i], NULL, thousand, it);
	for (int i = 0; i < number; i++) {
		void *value;

		pthread_join(thread[i], &value);
		done += (long)value;
	}
	printf("registered=%ld\n", done);
}

/*
 * The result of a thread with a pending cancellation. The thread cannot print the result itself,
 * because printing is a cancellation point.
 */
static struct ibv_mr *region_of_cancelled;
static int error_of_cancelled;
static bool returned;

static void *cancelled(void *registration)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_cancel(pthread_self());
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	region_of_cancelled = registered(registration);
	error_of_cancelled = errno;
	returned = true;
	pthread_testcancel();
	return NULL;
}

static void be_cancelled(struct registration *it)
{
	pthread_t thread;
	void *end;

	pthread_create(&thread, NULL, cancelled, it);
	pthread_join(thread, &end);
	printf("%s, then %s\n", returned ? "returned" : "did not return",
	       end == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
	errno = error_of_cancelled;
	say(region_of_cancelled);
}

static void be_kept(struct registration *it)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	say(registered(it));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	printf("%s\n", state == PTHREAD_CANCEL_DISABLE ? "not cancellable" : "cancellable");
	fflush(stdout);
}

static void *open_library(const char *file)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		printf("%s\n", dlerror());
		exit(2);
	}
	return library;
}

/* Whether dlopen() has returned. libcuda is in the list of objects even before dlopen() returns. */
static atomic_bool loaded;

static void *load_cuda(void *unused)
{
	cuda = open_library("libcuda.so.1");
	loaded = true;
	return unused;
}

static void while_loading(struct registration *it)
{
	pthread_t thread;

	pthread_create(&thread, NULL, load_cuda, NULL);
	while (!loaded)
		free(registered(it));
	pthread_join(thread, NULL);
	say(registered(it));
}

/*
 * Registers memory again and again until the process ends, so that a fork happens while this thread
 * holds a lock.
 */
static void *forever(void *it)
{
	for (;;)
		free(registered(it));
	return NULL;
}

static void forks(struct registration *it, int number)
{
	const atomic_bool *held = told("HOLD") ? dlsym(RTLD_DEFAULT, "walk_is_held") : NULL;
	pthread_t thread;
	int hung = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&thread, NULL, forever, it);
	while (held && !*held)
		usleep(1000);
	for (int i = 0; i < number && !hung; i++) {
		int status;
		pid_t child = fork();

		if (!child) {
			alarm(10);
			free(registered(it));
			_exit(0);
		}
		waitpid(child, &status, 0);
		hung += status != 0;
	}
	printf("hung=%d\n", hung);
	fflush(stdout);
	_exit(0);
}

static void other_stderr(const char *file)
{
	close(2);
	if (open(file, O_WRONLY | O_CREAT, 0600) != 2)
		exit(3);
}

static void *words(void *arguments)
{
	int times = 0, at_once = 0, children = 0;
	bool is_cancelled = false, is_kept = false, is_loading = false;

	for (char **word = arguments; *word; word++) {
		if (!strcmp(*word, "cuda")) {
			cuda = open_library("libcuda.so.1");
		} else if (!strcmp(*word, "verbs")) {
			verbs = open_library("libibverbs.so.1");
		} else if (!strcmp(*word, "open")) {
			verbs = open_library(*++word);
		} else if (!strcmp(*word, "plugin")) {
			open_library(*++word);
		} else if (!strcmp(*word, "close")) {
			dlclose(verbs);
			pd = &none;
		} else if (!strcmp(*word, "close_cuda")) {
			dlclose(cuda);
		} else if (!strcmp(*word, "pd")) {
			pd = own_pd();
		} else if (!strcmp(*word, "crafted")) {
			pd = crafted();
		} else if (!strcmp(*word, "cancelled")) {
			is_cancelled = true;
		} else if (!strcmp(*word, "kept")) {
			is_kept = true;
		} else if (!strcmp(*word, "close_input")) {
			close(0);
		} else if (!strcmp(*word, "stderr")) {
			other_stderr(*++word);
		} else if (!strcmp(*word, "context")) {
			int (*push)(void *context);

			push = function(cuda, "cuCtxPushCurrent_v2", NULL);
			push((void *)0xcc);
		} else if (!strcmp(*word, "thread")) {
			pthread_t thread;

			pthread_create(&thread, NULL, words, word + 1);
			pthread_join(thread, NULL);
			return NULL;
		} else if (!strcmp(*word, "fork")) {
			if (fork()) {
				wait(NULL);
				return NULL;
			}
		} else if (!strcmp(*word, "descriptors")) {
			while (dup(0) >= 0)
				;
		} else if (!strcmp(*word, "times")) {
			times = atoi(*++word);
		} else if (!strcmp(*word, "threads")) {
			at_once = atoi(*++word);
		} else if (!strcmp(*word, "loading")) {
			is_loading = true;
		} else if (!strcmp(*word, "forks")) {
			children = atoi(*++word);
		} else if (!strcmp(*word, "probe")) {
			struct ibv_mr *(*iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
						unsigned int access);

			iova2 = function(RTLD_DEFAULT, "ibv_reg_mr_iova2", NULL);
			say(iova2(pd, NULL, 0, 0, 0));
		} else if (!strcmp(*word, "libraries")) {
			libraries();
		} else if (!strcmp(*word, "number")) {
			printf("descriptors=%d\n", descriptors());
		} else {
			struct registration it = { .how = word[0] };

			it.addr = strcmp(word[1], "host") ? (void *)strtoul(word[1], NULL, 0) :
							    aligned_alloc(4096, 1 << 20);
			it.length = strtoul(word[2], NULL, 0);
			it.access = strtoul(word[3], NULL, 0);
			word += 3;
			if (strcmp(it.how, "reg"))
				it.iova = strtoul(*++word, NULL, 0);
			if (!strcmp(it.how, "ex"))
				it.mask = strtoul(*++word, NULL, 0);
			if (times) {
				int before, done;

				say(registered(&it));
				before = descriptors();
				done = repeat(&it, times);
				printf("registered=%d descriptors=%d\n", done, descriptors() - before);
			} else if (is_cancelled) {
				be_cancelled(&it);
			} else if (is_kept) {
				be_kept(&it);
			} else if (is_loading) {
				while_loading(&it);
			} else if (children) {
				forks(&it, children);
			} else if (at_once) {
				threads(&it, at_once);
			} else {
				say(registered(&it));
			}
		}
	}
	return NULL;
}

#ifdef OWN_LIST
/*
 * Some programs replace this function by a function that takes no lock and shows the objects of an
 * earlier time. This function shows no object.
 */
int dl_iterate_phdr(int (*show)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	(void)show;
	(void)data;
	return 0;
}
#endif

int main(int count, char **arguments)
{
	(void)count;
	words(arguments + 1);
	return 0;
}
