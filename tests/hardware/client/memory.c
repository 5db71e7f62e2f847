// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory of each kind, and what it contains. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"

static struct buffer buffers[BUFFERS];
/* The dma-buf of each buffer, or 0. The number 0 is that of the commands. */
static int exports[BUFFERS];

struct buffer *buffer_of(char **words, int at)
{
	return &buffers[number(words, at) % BUFFERS];
}

/* gpus: answers with the PCI address and name of each GPU. */
static void list_gpus(char **words)
{
	char id[64], name[128];
	int count = 0, i, one;

	if (!open_cuda() || failed(cuda.count(&count)))
		return;
	printf("ok");
	for (i = 0; i < count; i++)
		if (!cuda.get(&one, i) && !cuda.bus_id(id, sizeof(id), one) &&
		    !cuda.name(name, sizeof(name), one))
			printf(";%s %s", id, name);
	answer("%s", "");
}

/* cuda: loads CUDA and finds the GPU. */
static void start_cuda(char **words)
{
	if (open_cuda())
		answer("ok");
}

/* Answers that the library lacks a call, and returns false. */
static bool lacking(const char *call)
{
	answer("not libcuda.so.1 lacks %s", call);
	return false;
}

static bool alloc_host(struct buffer *buffer, size_t size)
{
	void *host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (host == MAP_FAILED) {
		answer("%s", errno_name(errno));
		return false;
	}
	buffer->address = (uintptr_t)host;
	return true;
}

static bool alloc_device(struct buffer *buffer, size_t size)
{
	unsigned int one = 1;
	gpu_address address;

	if (!open_cuda() || failed(cuda.alloc(&address, size)))
		return false;
	/* RDMA must not read memory before a copy to that memory is complete. */
	if (cuda.set)
		cuda.set(&one, SYNC_MEMOPS, address);
	buffer->address = address;
	return true;
}

static bool alloc_pool(struct buffer *buffer, size_t size)
{
	gpu_address address;
	void *pool;

	if (!open_cuda())
		return false;
	if (!cuda.default_pool || !cuda.from_pool || !cuda.synchronize)
		return lacking("pools");
	if (failed(cuda.default_pool(&pool, device)) ||
	    failed(cuda.from_pool(&address, size, pool, NULL)) ||
	    failed(cuda.synchronize(NULL)))
		return false;
	buffer->address = address;
	return true;
}

static bool alloc_managed(struct buffer *buffer, size_t size)
{
	gpu_address address;

	if (!open_cuda())
		return false;
	if (!cuda.managed)
		return lacking("cuMemAllocManaged");
	if (failed(cuda.managed(&address, size, ATTACH_GLOBAL)))
		return false;
	buffer->address = address;
	return true;
}

static bool alloc_vmm(struct buffer *buffer, size_t size, bool is_capable)
{
	struct properties is = { .type = PINNED, .location = { .type = DEVICE_MEMORY } };
	struct permission who = { .location = { .type = DEVICE_MEMORY }, .flags = READ_WRITE };
	gpu_address address;
	size_t page = 0;

	if (!open_cuda())
		return false;
	is.location.id = device;
	who.location.id = device;
	if (!cuda.create || !cuda.map || !cuda.access || !cuda.reserve || !cuda.granularity ||
	    !cuda.unmap || !cuda.release || !cuda.unreserve)
		return lacking("calls for memory that a program maps by itself (cuMemCreate)");
	is.rdma_capable = is_capable;
	if (failed(cuda.granularity(&page, &is, 0)))
		return false;
	size = (size + page - 1) / page * page;
	if (failed(cuda.create(&buffer->handle, size, &is, 0)) ||
	    failed(cuda.reserve(&address, size, 0, 0, 0)) ||
	    failed(cuda.map(address, size, 0, buffer->handle, 0)) ||
	    failed(cuda.access(address, size, &who, 1)))
		return false;
	buffer->address = address;
	buffer->size = size;
	return true;
}

static bool alloc_capable(struct buffer *buffer, size_t size)
{
	return alloc_vmm(buffer, size, true);
}

static bool alloc_plain(struct buffer *buffer, size_t size)
{
	return alloc_vmm(buffer, size, false);
}

/* alloc BUFFER KIND SIZE */
static void alloc(char **words)
{
	static const struct {
		const char *name;
		enum kind kind;
		bool (*alloc)(struct buffer *buffer, size_t size);
	} kinds[] = {
		{ "host", HOST, alloc_host }, { "device", DEVICE, alloc_device },
		{ "pool", POOL, alloc_pool }, { "managed", MANAGED, alloc_managed },
		{ "vmm", VMM, alloc_capable }, { "vmm-plain", VMM, alloc_plain },
	};
	struct buffer *buffer = buffer_of(words, 1), new = { .size = number(words, 3) };
	size_t i;

	if (buffer->kind != NONE) {
		answer("in-use");
		return;
	}
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(words[2], kinds[i].name))
			continue;
		if (!kinds[i].alloc(&new, new.size))
			return;
		new.kind = kinds[i].kind;
		*buffer = new;
		answer("ok");
		return;
	}
	answer("EINVAL");
}

/* free BUFFER */
static void free_buffer(char **words)
{
	struct buffer *buffer = buffer_of(words, 1);
	int error = 0;

	switch (buffer->kind) {
	case NONE:
		answer("nothing");
		return;
	case HOST:
		munmap((void *)(uintptr_t)buffer->address, buffer->size);
		break;
	case VMM:
		error = cuda.unmap(buffer->address, buffer->size);
		if (!error)
			error = cuda.release(buffer->handle);
		if (!error)
			error = cuda.unreserve(buffer->address, buffer->size);
		break;
	default:
		error = cuda.free(buffer->address);
	}
	buffer->kind = NONE;
	if (!failed(error))
		answer("ok");
}

/* where BUFFER: answers with its address and its size. */
static void where(char **words)
{
	const struct buffer *buffer = buffer_of(words, 1);

	answer("ok %" PRIu64 " %zu", buffer->address, buffer->size);
}

/* Fills host memory with bytes that follow from a seed and from their place. */
static void pattern(unsigned char *bytes, size_t length, uint64_t seed)
{
	size_t i;

	for (i = 0; i < length; i++) {
		uint64_t x = (i + 1) * 0x9e3779b97f4a7c15ull ^ seed * 0xd1342543de82ef95ull;

		x ^= x >> 29;
		bytes[i] = x * 0xbf58476d1ce4e5b9ull >> 56;
	}
}

static int put(struct buffer *buffer, size_t skip, const void *bytes, size_t length)
{
	if (buffer->kind == HOST)
		memcpy((char *)(uintptr_t)buffer->address + skip, bytes, length);
	else
		return cuda.to_gpu(buffer->address + skip, bytes, length);
	return 0;
}

static int fetch(struct buffer *buffer, size_t skip, void *bytes, size_t length)
{
	if (buffer->kind == HOST)
		memcpy(bytes, (char *)(uintptr_t)buffer->address + skip, length);
	else
		return cuda.from_gpu(bytes, buffer->address + skip, length);
	return 0;
}

static bool is_inside(const struct buffer *buffer, size_t skip, size_t length)
{
	return skip <= buffer->size && length <= buffer->size - skip;
}

/* Gets room for the bytes of a command, with the contents that its seed stands for. */
static unsigned char *expected_by(char **words)
{
	const struct buffer *buffer = buffer_of(words, 1);
	size_t skip = number(words, 2), length = number(words, 3);
	uint64_t seed = number(words, 4);
	unsigned char *bytes;

	bytes = is_inside(buffer, skip, length) ? calloc(1, length + 1) : NULL;
	if (!bytes)
		answer("too-long");
	else if (seed)
		pattern(bytes, length, seed);
	return bytes;
}

/* fill BUFFER SKIP LENGTH SEED: the seed 0 stands for zeroes. */
static void fill(char **words)
{
	unsigned char *bytes = expected_by(words);

	if (bytes && !failed(put(buffer_of(words, 1), number(words, 2), bytes, number(words, 3))))
		answer("ok");
	free(bytes);
}

/* compare BUFFER SKIP LENGTH SEED */
static void compare(char **words)
{
	size_t length = number(words, 3), i = 0;
	unsigned char *expected = expected_by(words), *found;

	if (!expected)
		return;
	found = malloc(length + 1);
	if (!found) {
		answer("ENOMEM");
	} else if (!failed(fetch(buffer_of(words, 1), number(words, 2), found, length))) {
		while (i < length && expected[i] == found[i])
			i++;
		if (i == length)
			answer("ok");
		else
			answer("differs at byte %zu", i);
	}
	free(expected);
	free(found);
}

/* word BUFFER SKIP: answers with the eight bytes there as a number. */
static void word(char **words)
{
	struct buffer *buffer = buffer_of(words, 1);
	size_t skip = number(words, 2);
	uint64_t value = 0;

	if (!is_inside(buffer, skip, sizeof(value)))
		answer("too-long");
	else if (!failed(fetch(buffer, skip, &value, sizeof(value))))
		answer("ok %" PRIu64, value);
}

/* room: answers with the free bytes of the GPU, and with all. */
static void room(char **words)
{
	size_t unused, all;

	if (!open_cuda())
		return;
	if (!cuda.room)
		lacking("cuMemGetInfo");
	else if (!failed(cuda.room(&unused, &all)))
		answer("ok %zu %zu", unused, all);
}

/* export BUFFER LENGTH: exports it as a dma-buf, and answers with the size that the kernel knows. */
static void export(char **words)
{
	const char *reason;
	int fd = export_dma_buf(buffer_of(words, 1), number(words, 2), &reason);

	if (fd < 0) {
		answer("%s", reason);
		return;
	}
	exports[number(words, 1) % BUFFERS] = fd;
	answer("ok %lld", (long long)lseek(fd, 0, SEEK_END));
}

/* unexport BUFFER */
static void unexport(char **words)
{
	int *fd = &exports[number(words, 1) % BUFFERS];

	if (*fd)
		answer("%s", close(*fd) ? errno_name(errno) : "ok");
	else
		answer("nothing");
	*fd = 0;
}

static void *begin_export(const struct buffer *buffer, size_t length)
{
	const char *reason;
	int fd = export_dma_buf(buffer, length, &reason);

	errno = EINVAL;
	return fd < 0 ? NULL : (void *)(intptr_t)(fd + 1);
}

static int end_export(void *begun)
{
	return close((intptr_t)begun - 1) ? errno : 0;
}

/* time-export BUFFER LENGTH COUNT THREADS: answers with the medians of exporting and closing, ns. */
static void time_export(char **words)
{
	static const struct way way = { begin_export, end_export };

	timed(words, &way);
}

const struct command memory_commands[] = {
	{ "gpus", 0, list_gpus },
	{ "cuda", 0, start_cuda },
	{ "alloc", 3, alloc },
	{ "free", 1, free_buffer },
	{ "where", 1, where },
	{ "fill", 4, fill },
	{ "compare", 4, compare },
	{ "word", 2, word },
	{ "room", 0, room },
	{ "export", 2, export },
	{ "unexport", 1, unexport },
	{ "time-export", 4, time_export },
	{ NULL, 0, NULL },
};
