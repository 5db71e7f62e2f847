// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program that registers memory. It executes the words of its command line in their order, and
 * prints a line for each registration. With -DLINKED the program is linked with libibverbs. Without
 * -DLINKED, the word "verbs" opens libibverbs. With -DOWN_LIST, the program has a dl_iterate_phdr()
 * that shows no object.
 *
 *	cuda, verbs		opens that library with RTLD_LOCAL, as NCCL does; allocates memory of CUDA
 *	libcuda			opens libcuda, and does not initialize CUDA
 *	open FILE		opens another libibverbs in the same way, and uses it from then on
 *	deeply, globally	opens libibverbs with RTLD_DEEPBIND, or with RTLD_GLOBAL
 *	by WAY			how the program finds functions of an open libibverbs: by dlvsym (the
 *				default), dlsym, iova2 (a newer function, by dlvsym), or default (dlsym
 *				in the whole process), or command (a driver's command of a real libibverbs)
 *	plugin FILE		opens a library that is no libibverbs
 *	close			closes the libibverbs that was opened last
 *	close_cuda		closes libcuda
 *	context			gives the thread the context of the memory
 *	thread, fork		the words that follow are for a new thread, or for a child
 *	stack N			they are for a new thread with a stack of N bytes
 *	leader_ends		they are for a new thread, and the first thread ends before
 *	own_files		gives the thread a table of descriptors of its own
 *	locked			the words that follow are for a child; at its fork another thread walks through
 *				the list of objects, and never ends; prints whether the child hung
 *	cancelled		the next registration in a thread with a cancellation pending; prints
 *				how the thread ends
 *	stderr FILE		closes stderr, and opens the file in its place
 *	close_input		closes stdin
 *	kept			the next registration in a thread that cannot be cancelled; prints
 *				whether it can be cancelled afterwards
 *	files N, sockets N	opens N files, or N sockets
 *	descriptors		uses all descriptors up
 *	reg ADDRESS LENGTH ACCESS
 *	iova ADDRESS LENGTH ACCESS IOVA
 *	ex ADDRESS LENGTH ACCESS IOVA
 *	umem ADDRESS LENGTH ACCESS
 *	umem_of OFFSET LENGTH ACCESS	of a dma-buf, whose descriptor is stdin
 *	times N			the next registration N times; prints how many descriptors were added
 *	threads N		the next registration 1000 times in each of N threads
 *	loading			the next registration, over and over while a thread opens libcuda, and once
 *				afterwards
 *	closing N		the same, while a thread opens and closes libcuda N times
 *	forks N			the next registration, over and over in three threads, and once in each of
 *				N children; prints how many children hung. With HOLD, the first fork comes
 *				while a thread stays in its walk
 *	waiting			asks how many bytes wait in a pipe, the second time with a wrong address
 *	broken			gives commands at wrong addresses to the device
 *	signed			registers GPU memory by a request that is a 32-bit number with a sign
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
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "cuda.h"
#include "doubles.h"
#include "uverbs.h"

struct registration {
	const char *how;
	void *addr;
	size_t length;
	int access;
	uint64_t iova;
};

static void *verbs, *cuda;
/* How the program finds the functions of libibverbs. */
static const char *way = "dlvsym";
static struct ibv_pd pd;

static void *function(void *library, const char *name, const char *version)
{
	void *it = version ? dlvsym(library, name, version) : dlsym(library, name);

	if (!it) {
		printf("%s\n", dlerror());
		exit(2);
	}
	return it;
}

#define WORD(name)	#name
#define STRING(name)	WORD(name)
/* A function of libcuda. */
#define LIBCUDA(name)	((__typeof__(&name))function(cuda, STRING(name), NULL))

/* The context of GPU_MEMORY. */
static CUcontext context_of_memory;

/* Allocates the memory of doubles.h. The thread has no context afterwards. */
static void allocate(void)
{
	CUdeviceptr memory;
	CUmemoryPool pool;
	CUdevice device;
	void *pinned;

	LIBCUDA(cuInit)(0);
	LIBCUDA(cuDeviceGet)(&device, 0);
	LIBCUDA(cuCtxCreate)(&context_of_memory, 0, device);
	LIBCUDA(cuMemAlloc)(&memory, GPU_SIZE);
	LIBCUDA(cuDeviceGet)(&device, 1);
	LIBCUDA(cuDeviceGetDefaultMemPool)(&pool, device);
	LIBCUDA(cuMemAllocFromPoolAsync)(&memory, GPU_SIZE, pool, NULL);
	LIBCUDA(cuMemAllocHost)(&pinned, GPU_SIZE);
	LIBCUDA(cuCtxPopCurrent)(&context_of_memory);
	event("allocated\n");
}

#ifdef LINKED
struct ibv_mr *reg_mr_ex(void *addr, size_t length, uint64_t iova, int access);
struct ibv_mr *umem_reg(void *addr, size_t length, int access, int fd);

/*
 * Registers memory. verbs.h calls one function if the flags are a constant, and another function if
 * they are not.
 */
static struct ibv_mr *by_link(struct registration *it)
{
	if (!strcmp(it->how, "iova"))
		return ibv_reg_mr_iova(&pd, it->addr, it->length, it->iova, IBV_ACCESS_LOCAL_WRITE);
	if (!strcmp(it->how, "ex"))
		return reg_mr_ex(it->addr, it->length, it->iova, it->access);
	if (!strcmp(it->how, "umem"))
		return umem_reg(it->addr, it->length, it->access, -1);
	if (!strcmp(it->how, "umem_of"))
		return umem_reg(it->addr, it->length, it->access, 0);
	if (it->access == IBV_ACCESS_LOCAL_WRITE)
		return ibv_reg_mr(&pd, it->addr, it->length, IBV_ACCESS_LOCAL_WRITE);
	return ibv_reg_mr(&pd, it->addr, it->length, it->access);
}
#else
static struct ibv_mr *by_link(struct registration *it)
{
	(void)it;
	exit(4);
}
#endif

/*
 * Registers memory as a device's driver in a real libibverbs does. Libibverbs has no public header for
 * drivers. The context has only the things that the command needs. Its private part belongs to
 * libibverbs, and begins with flags: all of them are set, so that libibverbs uses ioctl().
 */
static struct ibv_mr *by_command(struct registration *it)
{
	static struct verbs_context context;
	/* A region with its driver's part behind it, a command with its header, and an answer. */
	static struct ibv_mr mr[4];
	uint64_t command[1 + sizeof(struct ib_uverbs_reg_mr) / 8];
	struct ib_uverbs_reg_mr_resp resp;
	int (*reg)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access, void *mr,
		   void *command, size_t size, void *resp, size_t room);

	context.priv = memset(malloc(4096), 1, 4096);
	/* Libibverbs takes the context for the end of a struct verbs_context. */
	context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	context.context.cmd_fd = DEVICE_FD;
	pd.context = &context.context;
	pd.handle = PD_HANDLE;
	reg = function(verbs, "ibv_cmd_reg_mr", NULL);
	errno = reg(&pd, it->addr, it->length, (uintptr_t)it->addr, it->access, mr, command, sizeof(command),
		    &resp, sizeof(resp));
	mr->addr = it->addr;
	mr->length = it->length;
	return errno ? NULL : mr;
}

/* Registers memory with a function that the program looks up itself. */
static struct ibv_mr *by_name(struct registration *it)
{
	struct ibv_mr *(*reg)(struct ibv_pd *pd, void *addr, size_t length, int access);
	struct ibv_mr *(*iova2)(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access);
	void *where = strcmp(way, "default") ? verbs : RTLD_DEFAULT;
	const char *version = strcmp(way, "dlvsym") ? NULL : "IBVERBS_1.1";

	if (!strcmp(way, "command"))
		return by_command(it);
	if (!strcmp(way, "iova2")) {
		iova2 = function(verbs, "ibv_reg_mr_iova2", "IBVERBS_1.8");
		return iova2(&pd, it->addr, it->length, (uintptr_t)it->addr, it->access);
	}
	reg = function(where, "ibv_reg_mr", version);
	return reg(&pd, it->addr, it->length, it->access);
}

static struct ibv_mr *registered(struct registration *it)
{
	errno = 7;
	return verbs || !strcmp(way, "default") ? by_name(it) : by_link(it);
}

static void say(struct ibv_mr *mr)
{
	if (mr && told("PRINTS_ERRNO"))
		printf("registered, errno=%d\n", errno);
	else if (mr)
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

static void *open_and_close(void *times)
{
	for (int i = atoi(times); i; i--)
		dlclose(open_library("libcuda.so.1"));
	loaded = true;
	return NULL;
}

static void while_closing(struct registration *it, char *times)
{
	pthread_t thread;

	pthread_create(&thread, NULL, open_and_close, times);
	while (!loaded)
		free(registered(it));
	pthread_join(thread, NULL);
	say(registered(it));
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

/* Waits until a child ends. Returns whether the child hung; the only signal that ends it is SIGKILL. */
static bool hangs(pid_t child)
{
	int status, tries = 0;

	while (!waitpid(child, &status, WNOHANG)) {
		if (tries++ == 10000)
			kill(child, SIGKILL);
		usleep(1000);
	}
	return status != 0;
}

static atomic_bool walks;

static int stay(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	walks = true;
	while (walks)
		pause();
	return 0;
}

static void *walk_for_ever(void *unused)
{
	dl_iterate_phdr(stay, NULL);
	return unused;
}

/* Starts a thread that has the lock of the list of objects, and never gives it back. */
static void lock_the_list(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, walk_for_ever, NULL);
	while (!walks)
		usleep(1000);
}

/*
 * Waits until the first thread of the process has ended. /proc/self/stat would do as well, but
 * qemu-aarch64 makes that file itself, and always says that the process runs.
 */
static void wait_for_the_leader(void)
{
	char name[64], state = 0;

	snprintf(name, sizeof(name), "/proc/self/task/%d/stat", getpid());
	while (state != 'Z') {
		FILE *file = fopen(name, "r");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			exit(3);
		fclose(file);
	}
}

static int pass(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info;
	(void)size;
	(void)data;
	return 0;
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
		pid_t child = fork();

		if (!child) {
			free(registered(it));
			/* Exceptions of C++ and dlopen() take the same lock. */
			dl_iterate_phdr(pass, NULL);
			_exit(0);
		}
		hung += hangs(child);
	}
	printf("hung=%d\n", hung);
	fflush(stdout);
	_exit(0);
}

/* Gives commands to the device that are wholly or partly at wrong addresses. */
static void broken(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ib_uverbs_reg_mr asked = { .start = GPU_MEMORY, .length = 4096 };
	struct command it = {
		.hdr = { .object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE, .num_attrs = 3 },
		.attrs = {
			{ UVERBS_ATTR_WRITE_CMD, 8, .data = IB_USER_VERBS_CMD_REG_MR },
			{ UVERBS_ATTR_CORE_IN, sizeof(asked), .data = (uintptr_t)&asked },
			{ UVERBS_ATTR_CORE_OUT, 12, .data = (uintptr_t)&asked },
		},
	};
	static const struct ib_uverbs_reg_mr_resp constant;
	/* The kernel stores the answer to this command in the command. */
	const struct command constant_command = {
		.hdr = { .object_id = UVERBS_OBJECT_MR, .method_id = METHOD_REG_MR, .num_attrs = 3 },
		.attrs = {
			{ REG_MR_ADDR, 8, .data = GPU_MEMORY },
			{ REG_MR_LENGTH, 8, .data = 4096 },
			{ REG_MR_ACCESS_FLAGS, 4, .data = 1 },
		},
	};
	struct ib_uverbs_ioctl_hdr *at_end = (void *)(page + 4096 - sizeof(*at_end));

	munmap(page + 4096, 4096);
	*at_end = it.hdr;
	for (int i = 0; i < 5; i++) {
		void *commands[] = { (void *)NO_MEMORY, page + 4096 - 8, at_end, &it, &it };

		it.attrs[1].data = i == 3 ? (uintptr_t)page + 4096 - 8 : (uintptr_t)&asked;
		it.attrs[2].data = i == 4 ? (uintptr_t)&constant : (uintptr_t)&asked;
		printf("errno=%d\n", ioctl(DEVICE_FD, RDMA_VERBS_IOCTL, commands[i]) ? errno : 0);
	}
	memcpy(page, &constant_command, sizeof(constant_command));
	mprotect(page, 4096, PROT_READ);
	printf("errno=%d\n", ioctl(DEVICE_FD, RDMA_VERBS_IOCTL, page) ? errno : 0);
	fflush(stdout);
}

static struct ib_uverbs_reg_mr registration = {
	.start = GPU_MEMORY, .length = 4096, .hca_va = GPU_MEMORY, .pd_handle = PD_HANDLE, .access_flags = 1
};
static struct ib_uverbs_reg_mr_resp response;

/* Returns a command that has the registration, and the place for the answer, somewhere else. */
static struct command with_structures(void)
{
	struct command it = {
		.hdr = {
			.length = sizeof(it.hdr) + 3 * sizeof(it.attrs[0]), .object_id = UVERBS_OBJECT_DEVICE,
			.method_id = UVERBS_METHOD_INVOKE_WRITE, .num_attrs = 3, .driver_id = DRIVER_ID,
		},
		.attrs = {
			{
				UVERBS_ATTR_CORE_IN, sizeof(registration), UVERBS_ATTR_F_MANDATORY,
				.data = (uintptr_t)&registration,
			},
			{
				UVERBS_ATTR_CORE_OUT, sizeof(response), UVERBS_ATTR_F_MANDATORY,
				.data = (uintptr_t)&response,
			},
			{ UVERBS_ATTR_WRITE_CMD, 8, UVERBS_ATTR_F_MANDATORY, .data = IB_USER_VERBS_CMD_REG_MR },
		},
	};

	return it;
}

static void give(int request, const void *command)
{
	printf("errno=%d\n", ioctl(DEVICE_FD, request, command) ? errno : 0);
	printf("lkey=%u\n", response.lkey);
	fflush(stdout);
}

/* Many languages and ioctl() of musl have the request as an int. */
static void with_sign(void)
{
	struct command it = with_structures();

	give((int)RDMA_VERBS_IOCTL, &it.hdr);
}

/* Nobody has to write to a command whose answer is somewhere else. */
static void read_only(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct command it = with_structures();

	memcpy(page, &it, sizeof(it));
	mprotect(page, 4096, PROT_READ);
	give((int)RDMA_VERBS_IOCTL, page);
}

static void other_stderr(const char *file)
{
	close(2);
	if (open(file, O_WRONLY | O_CREAT, 0600) != 2)
		exit(3);
}

static void *words(void *arguments);

static void *after_the_leader(void *arguments)
{
	wait_for_the_leader();
	return words(arguments);
}

static void *words(void *arguments)
{
	int times = 0, at_once = 0, children = 0;
	bool is_cancelled = false, is_kept = false, is_loading = false;
	char *closings = NULL;

	for (char **word = arguments; *word; word++) {
		if (!strcmp(*word, "cuda")) {
			cuda = open_library("libcuda.so.1");
			allocate();
		} else if (!strcmp(*word, "libcuda")) {
			cuda = open_library("libcuda.so.1");
		} else if (!strcmp(*word, "verbs")) {
			verbs = open_library("libibverbs.so.1");
		} else if (!strcmp(*word, "open")) {
			verbs = open_library(*++word);
		} else if (!strcmp(*word, "deeply")) {
			verbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
		} else if (!strcmp(*word, "globally")) {
			dlopen("libibverbs.so.1", RTLD_NOW | RTLD_GLOBAL);
		} else if (!strcmp(*word, "by")) {
			way = *++word;
		} else if (!strcmp(*word, "plugin")) {
			open_library(*++word);
		} else if (!strcmp(*word, "close")) {
			dlclose(verbs);
			verbs = NULL;
		} else if (!strcmp(*word, "close_cuda")) {
			dlclose(cuda);
		} else if (!strcmp(*word, "cancelled")) {
			is_cancelled = true;
		} else if (!strcmp(*word, "kept")) {
			is_kept = true;
		} else if (!strcmp(*word, "close_input")) {
			close(0);
		} else if (!strcmp(*word, "stderr")) {
			other_stderr(*++word);
		} else if (!strcmp(*word, "context")) {
			LIBCUDA(cuCtxPushCurrent)(context_of_memory);
		} else if (!strcmp(*word, "thread")) {
			pthread_t thread;

			pthread_create(&thread, NULL, words, word + 1);
			pthread_join(thread, NULL);
			return NULL;
		} else if (!strcmp(*word, "stack")) {
			pthread_attr_t attributes;
			pthread_t thread;

			pthread_attr_init(&attributes);
			pthread_attr_setstacksize(&attributes, atoi(*++word));
			if (pthread_create(&thread, &attributes, words, word + 1))
				printf("no thread\n");
			else
				pthread_join(thread, NULL);
			return NULL;
		} else if (!strcmp(*word, "leader_ends")) {
			pthread_t thread;

			pthread_create(&thread, NULL, after_the_leader, word + 1);
			pthread_exit(NULL);
		} else if (!strcmp(*word, "own_files")) {
			if (unshare(CLONE_FILES))
				exit(3);
		} else if (!strcmp(*word, "locked")) {
			pid_t child;

			lock_the_list();
			child = fork();
			if (!child)
				continue;
			printf("hung=%d\n", hangs(child));
			fflush(stdout);
			_exit(0);
		} else if (!strcmp(*word, "fork")) {
			if (fork()) {
				wait(NULL);
				return NULL;
			}
		} else if (!strcmp(*word, "files")) {
			for (int i = atoi(*++word); i; i--)
				dup(0);
		} else if (!strcmp(*word, "sockets")) {
			for (int i = atoi(*++word); i; i--)
				socket(AF_UNIX, SOCK_STREAM, 0);
		} else if (!strcmp(*word, "descriptors")) {
			while (dup(0) >= 0)
				;
		} else if (!strcmp(*word, "times")) {
			times = atoi(*++word);
		} else if (!strcmp(*word, "threads")) {
			at_once = atoi(*++word);
		} else if (!strcmp(*word, "loading")) {
			is_loading = true;
		} else if (!strcmp(*word, "closing")) {
			closings = *++word;
		} else if (!strcmp(*word, "forks")) {
			children = atoi(*++word);
		} else if (!strcmp(*word, "waiting")) {
			int bytes = -1, ends[2] = { -1, -1 };

			if (!pipe(ends) && write(ends[1], "four", 4) == 4 && !ioctl(ends[0], FIONREAD, &bytes))
				printf("%d bytes\n", bytes);
			/* The kernel cannot write to this address. */
			if (ioctl(ends[0], FIONREAD, NO_MEMORY))
				printf("errno=%d\n", errno);
		} else if (!strcmp(*word, "broken")) {
			broken();
		} else if (!strcmp(*word, "signed")) {
			with_sign();
		} else if (!strcmp(*word, "read-only")) {
			read_only();
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
			if (!strcmp(it.how, "iova") || !strcmp(it.how, "ex"))
				it.iova = strtoul(*++word, NULL, 0);
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
			} else if (closings) {
				while_closing(&it, closings);
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
