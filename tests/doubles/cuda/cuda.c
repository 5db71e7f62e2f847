// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The lab's libcuda.so.1. README.md lists the rules of CUDA that the library follows, and gpu.h has
 * the GPUs below it. A program that needs other functions of CUDA cannot be linked, or does not find
 * them.
 *
 * The library has no locks. Several threads may use the same memory, but only one thread of a process
 * at a time may make or free memory and contexts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffers.h"
#include "cuda.h"
#include "events.h"
#include "gpu.h"

/*
 * The first address of GPU memory. Addresses are the same in every process, although the memory
 * differs.
 */
#define FIRST		0x302000000ULL

struct CUctx_st {
	unsigned long long id;
	int gpu;
	int users;	/* 0 when it was destroyed, or is the primary one and unused */
};

struct CUmemPoolHandle_st {
	int gpu;
};

static struct buffer buffers[256];

#define END		(buffers + sizeof(buffers) / sizeof(*buffers))

/* The numbers of GPUs, of buffers that were not freed, and of contexts that were not destroyed. */
static int gpus, allocated, created;
/* The file /proc/self/mem. */
static int memory;
static pid_t owner;
static unsigned int pci[GPUS][4];
static struct CUctx_st primary[GPUS];
static struct CUmemPoolHandle_st pools[GPUS];

/* The contexts of the thread. The last is current. */
static __thread struct {
	CUcontext contexts[8];
	unsigned int n;
} stack;

static CUcontext current(void)
{
	return stack.n ? stack.contexts[stack.n - 1] : NULL;
}

/* ---- the device -------------------------------------------------------------- */

/* Begins each function. Records the call, and returns the error that a test wants. */
static CUresult called(const char *function)
{
	CUresult error = told(function);

	event("%s%s\n", function, error ? " refused" : "");
	return error;
}

CUresult cuInit(unsigned int flags)
{
	CUresult error = called(__func__);
	int gpu;

	if (error || flags)
		return error ?: CUDA_ERROR_INVALID_VALUE;
	if (gpus)
		return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (memory >= 0)
		gpus = gpu_find(pci);
	for (gpu = 0; gpu < gpus; gpu++) {
		primary[gpu] = (struct CUctx_st){ .id = gpu + 1, .gpu = gpu };
		pools[gpu].gpu = gpu;
	}
	owner = getpid();
	return gpus ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* Begins a function that needs CUDA to be initialized. A child of fork() has no CUDA. */
static CUresult begin(const char *function)
{
	CUresult error = called(function);

	if (!error && (!gpus || owner != getpid()))
		return CUDA_ERROR_NOT_INITIALIZED;
	return error;
}

/* Begins a function that needs a device. */
static CUresult known(const char *function, CUdevice device)
{
	CUresult error = begin(function);

	if (!error && (device < gpu_first || device >= gpu_first + gpus))
		return CUDA_ERROR_INVALID_DEVICE;
	return error;
}

CUresult ready(const char *function)
{
	CUresult error = begin(function);

	if (error)
		return error;
	if (!current())
		return CUDA_ERROR_INVALID_CONTEXT;
	return current()->users ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
#define NAME(error)	{ error, #error }
	static const struct { CUresult error; const char *name; } names[] = {
		NAME(CUDA_SUCCESS), NAME(CUDA_ERROR_INVALID_VALUE), NAME(CUDA_ERROR_OUT_OF_MEMORY),
		NAME(CUDA_ERROR_NOT_INITIALIZED), NAME(CUDA_ERROR_DEINITIALIZED),
		NAME(CUDA_ERROR_NO_DEVICE), NAME(CUDA_ERROR_INVALID_DEVICE),
		NAME(CUDA_ERROR_INVALID_CONTEXT), NAME(CUDA_ERROR_OPERATING_SYSTEM),
		NAME(CUDA_ERROR_ILLEGAL_ADDRESS), NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED),
		NAME(CUDA_ERROR_NOT_FOUND), NAME(CUDA_ERROR_NOT_SUPPORTED), NAME(CUDA_ERROR_UNKNOWN),
	};
	CUresult refusal = called(__func__);
	size_t i;

	if (refusal)
		return refusal;
	*name = NULL;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].error == error)
			*name = names[i].name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *number)
{
	*number = gpus;
	return begin(__func__);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = gpu_first + ordinal;
	return known(__func__, *device);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, size, "Simulated GPU of the lab");
	return known(__func__, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	CUresult error = known(__func__, device);
	unsigned int *at = pci[error ? 0 : device - gpu_first];

	snprintf(id, size, "%04X:%02X:%02X.%X", at[0], at[1], at[2], at[3]);
	return error;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	CUresult error = known(__func__, device);
	unsigned int *at = pci[error ? 0 : device - gpu_first];

	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*value = at[0];
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = at[1];
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*value = at[2];
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		break;
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		*value = 1;
		break;
	case CU_DEVICE_ATTRIBUTE_INTEGRATED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = 0;
		break;
	default:
		fprintf(stderr, "libcuda of the lab: no attribute %d of a device\n", attribute);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	return error;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	memcpy(uuid->bytes, "simulated GPU 00", sizeof(uuid->bytes));
	uuid->bytes[15] += device - gpu_first;
	return known(__func__, device);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	*bytes = 1ULL << 30;
	return known(__func__, device);
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return called(__func__);
}

CUresult cuGetErrorString(CUresult error, const char **words)
{
	return cuGetErrorName(error, words);
}

/* Returns the function of this library with this name, in its newest form. */
CUresult cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
			     int *status)
{
	char newer[128];

	snprintf(newer, sizeof(newer), "%s_v2", name);
	*function = dlsym(RTLD_DEFAULT, newer);
	if (!*function)
		*function = dlsym(RTLD_DEFAULT, name);
	if (status)
		*status = !*function;
	if (!*function)
		fprintf(stderr, "libcuda of the lab: no function %s\n", name);
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- memory ------------------------------------------------------------------ */

struct buffer *find(CUdeviceptr address)
{
	struct buffer *buffer;

	for (buffer = buffers; buffer < END; buffer++)
		if (address - buffer->start < buffer->size)
			return buffer;
	return NULL;
}

CUresult allocate(CUdeviceptr *address, struct buffer wanted)
{
	const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	static unsigned long long last_id;
	size_t size = BLOCKS(wanted.size);
	struct buffer *buffer = buffers;
	CUdeviceptr at = wanted.start ?: FIRST;
	void *mapped;

	if (!size || !address)
		return CUDA_ERROR_INVALID_VALUE;
	while (buffer < END && buffer->size)
		buffer++;
	if (buffer == END)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (;; at += BLOCK) {
		if (wanted.type == CU_MEMORYTYPE_HOST)
			mapped = mmap((void *)at, size, PROT_READ | PROT_WRITE, own, -1, 0);
		else
			mapped = gpu_map((void *)at, size, wanted.properties);
		if (mapped == (void *)at)
			break;
		if (mapped != MAP_FAILED || errno != EEXIST || wanted.start)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	wanted.start = at;
	wanted.id = ++last_id;
	*buffer = wanted;
	allocated++;
	*address = at;
	return CUDA_SUCCESS;
}

/* Makes a buffer of the current context. */
static CUresult allocate_here(CUdeviceptr *address, size_t size, CUmemorytype type)
{
	struct buffer wanted = { .size = size, .type = type, .gpu = current()->gpu, .context = current() };

	return allocate(address, wanted);
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
	return ready(__func__) ?: allocate_here(address, size, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemAllocHost(void **address, size_t size)
{
	return ready(__func__) ?: allocate_here((CUdeviceptr *)address, size, CU_MEMORYTYPE_HOST);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	CUresult error = known(__func__, device);

	if (!error)
		*pool = &pools[device - gpu_first];
	return error;
}

/* Allocates memory of a pool, which may be that of another GPU than the current one. */
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool, void *stream)
{
	struct buffer wanted = {
		.size = size, .type = CU_MEMORYTYPE_DEVICE, .gpu = pool->gpu, .properties = GPU_NO_P2P,
	};

	return ready(__func__) ?: allocate(address, wanted);
}

/* Makes memory that CUDA would move between CPU and GPU. Here, it stays at the GPU. */
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t size, unsigned int flags)
{
	CUresult error = ready(__func__);
	struct buffer wanted = {
		.size = size, .type = CU_MEMORYTYPE_DEVICE, .properties = GPU_NO_P2P | GPU_CPU,
		.is_managed = true,
	};

	if (error)
		return error;
	if (flags != CU_MEM_ATTACH_GLOBAL)
		return CUDA_ERROR_NOT_SUPPORTED;
	wanted.gpu = current()->gpu;
	wanted.context = current();
	return allocate(address, wanted);
}

void was_freed(void)
{
	allocated--;
}

CUresult release(struct buffer *buffer)
{
	size_t size = BLOCKS(buffer->size);

	buffer->size = 0;
	return munmap((void *)buffer->start, size) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

static CUresult free_buffer(CUdeviceptr address, CUmemorytype type)
{
	struct buffer *buffer = find(address);

	if (!buffer || buffer->start != address || buffer->type != type)
		return CUDA_ERROR_INVALID_VALUE;
	was_freed();
	return release(buffer);
}

/* Frees a buffer. The thread needs no context, because the buffer's own context is used. */
CUresult cuMemFree(CUdeviceptr address)
{
	return begin(__func__) ?: free_buffer(address, CU_MEMORYTYPE_DEVICE);
}

CUresult cuMemFreeHost(void *address)
{
	return begin(__func__) ?: free_buffer((CUdeviceptr)address, CU_MEMORYTYPE_HOST);
}

/* Tells whether @size bytes at @address are all in one buffer, or all outside every buffer. */
static int fits(CUdeviceptr address, size_t size)
{
	struct buffer *buffer = find(address);

	return !buffer || size <= buffer->start + buffer->size - address;
}

/* Copies each byte by the kernel, because the CPU cannot access memory of a GPU. */
static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	char part[1 << 16];
	ssize_t n;

	if (!fits(to, size) || !fits(from, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (; size; to += n, from += n, size -= n) {
		n = pread(memory, part, size < sizeof(part) ? size : sizeof(part), from);
		if (n <= 0 || pwrite(memory, part, n, to) != n)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

/* Copies for a function that needs a context. @known tells whether the GPU's addresses are known. */
static CUresult copy_for(const char *function, bool known, CUdeviceptr to, CUdeviceptr from,
			 size_t size)
{
	CUresult error = ready(function);

	if (!error && !known)
		return CUDA_ERROR_INVALID_VALUE;
	return error ?: copy(to, from, size);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_for(__func__, true, to, from, size);
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
	return copy_for(__func__, find(to), to, (CUdeviceptr)from, size);
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
	return copy_for(__func__, find(from), (CUdeviceptr)to, from, size);
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_for(__func__, find(to) && find(from), to, from, size);
}

/* Begins a function about an attribute, and finds the buffer of the address. */
static CUresult pointed(const char *function, const void *value, CUdeviceptr address,
			struct buffer **buffer)
{
	CUresult error = begin(function);

	*buffer = find(address);
	if (!error && (!value || !*buffer))
		return CUDA_ERROR_INVALID_VALUE;
	return error;
}

/* Accepts SYNC_MEMOPS, which changes nothing because all copies are synchronous. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct buffer *buffer;
	CUresult error = pointed(__func__, value, address, &buffer);

	if (error)
		return error;
	if (attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_NOT_SUPPORTED;
	buffer->sync_memops = *(const unsigned int *)value;
	event("sync_memops %#llx %u\n", address, buffer->sync_memops);
	return CUDA_SUCCESS;
}

static CUresult attribute_of(struct buffer *buffer, CUpointer_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = buffer->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = buffer->type;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)value = buffer->sync_memops;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = buffer->gpu;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(int *)value = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)value = buffer->is_managed;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)value = buffer->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)value = buffer->start;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = buffer->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)value = buffer->context ? NULL : &pools[buffer->gpu];
		return CUDA_SUCCESS;
	default:
		fprintf(stderr, "libcuda of the lab: no attribute %d of a pointer\n", attribute);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct buffer *buffer;
	CUresult error = pointed(__func__, value, address, &buffer);

	return error ?: attribute_of(buffer, attribute, value);
}

/* Asks for several attributes. As in CUDA, an address of the CPU is no error, and leaves zeros. */
CUresult cuPointerGetAttributes(unsigned int number, CUpointer_attribute *attributes, void **values,
				CUdeviceptr address)
{
	CUresult error = begin(__func__);
	struct buffer *buffer = find(address);
	unsigned int i;

	for (i = 0; i < number && !error; i++) {
		if (buffer)
			error = attribute_of(buffer, attributes[i], values[i]);
		else
			memset(values[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? sizeof(bool) : sizeof(int));
	}
	return error;
}

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *size, CUdeviceptr address)
{
	CUresult error = ready(__func__);
	struct buffer *buffer = find(address);

	if (error)
		return error;
	if (!buffer)
		return CUDA_ERROR_NOT_FOUND;
	if (start)
		*start = buffer->start;
	if (size)
		*size = buffer->size;
	return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
	return begin(__func__) ?: CUDA_ERROR_INVALID_VALUE;
}

/* Tells whether a range is in the blocks of one buffer of a GPU. */
static bool is_exportable(CUdeviceptr address, size_t size)
{
	struct buffer *buffer = find(address);

	return buffer && buffer->type == CU_MEMORYTYPE_DEVICE && !buffer->is_managed &&
	       size <= buffer->start + BLOCKS(buffer->size) - address;
}

/* Exports whole pages of the CPU. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size,
				       CUmemRangeHandleType type, unsigned long long flags)
{
	CUresult error = ready(__func__);
	int fd;

	if (error)
		return error;
	if (!handle || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	if (!size || (address | size) & (getpagesize() - 1) || !is_exportable(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	/* The only flag is that for PCIe. A GPU that has no other way to the CPU refuses the flag. */
	if (flags)
		return flags & 1 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	fd = gpu_export(address, size);
	/* CUDA does not promise an error number. */
	errno = 0;
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	event("export %#llx %zu\n", address, size);
	*(int *)handle = fd;
	return CUDA_SUCCESS;
}

/* ---- contexts ------------------------------------------------------------------ */

static void leave(CUcontext context)
{
	struct buffer *buffer;

	if (!context->users || --context->users)
		return;
	for (buffer = buffers; buffer < END; buffer++)
		if (buffer->size && buffer->context == context)
			release(buffer);
}

/*
 * Tells a test how many buffers and contexts the program has not given back. A buffer that went with
 * its context counts.
 */
int lab_left(void)
{
	return allocated + created + primary[0].users + primary[1].users + stack.n;
}

/* Makes a context current, above those that the thread has. */
static CUresult push(CUcontext context)
{
	if (!context || stack.n == sizeof(stack.contexts) / sizeof(*stack.contexts))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context->users)
		return CUDA_ERROR_INVALID_CONTEXT;
	event("pushed %llu\n", context->id);
	stack.contexts[stack.n++] = context;
	return CUDA_SUCCESS;
}

/* Replaces the current context, or takes it away if the new one is NULL. */
CUresult cuCtxSetCurrent(CUcontext context)
{
	CUresult error = begin(__func__);

	if (error)
		return error;
	if (context && !context->users)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.n)
		stack.n--;
	return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current();
	return begin(__func__);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	return begin(__func__) ?: push(context);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
	CUresult error = begin(__func__);

	if (error)
		return error;
	if (!stack.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = stack.contexts[--stack.n];
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	static unsigned long long last_id = GPUS;
	CUresult error = known(__func__, device);

	if (error)
		return error;
	if (flags & ~0xff)
		return CUDA_ERROR_INVALID_VALUE;
	*context = malloc(sizeof(**context));
	if (!*context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**context = (struct CUctx_st){ ++last_id, device - gpu_first, 1 };
	created++;
	return push(*context);
}

/*
 * Destroys a context. Does not free its structure, because another thread may still have the
 * context. The calls of that thread then fail.
 */
CUresult cuCtxDestroy(CUcontext context)
{
	CUresult error = begin(__func__);

	if (error)
		return error;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (context == &primary[context->gpu])
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!context->users)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	leave(context);
	created--;
	if (current() == context)
		stack.n--;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult error = known(__func__, device);

	if (error)
		return error;
	*context = &primary[device - gpu_first];
	(*context)->users++;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUresult error = known(__func__, device);

	if (error)
		return error;
	if (!primary[device - gpu_first].users)
		return CUDA_ERROR_INVALID_CONTEXT;
	leave(&primary[device - gpu_first]);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	CUresult error = known(__func__, device);

	*flags = 0;
	*active = !error && primary[device - gpu_first].users;
	return error;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUresult error = ready(__func__);

	if (!error)
		*device = gpu_first + current()->gpu;
	return error;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	*flags = 0;
	return ready(__func__);
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	CUresult error = ready(__func__);

	if (!error)
		*id = (context ? context : current())->id;
	return error;
}

/* ---- streams and events: all work is done at once ------------------------------- */

CUresult cuStreamCreate(void **stream, unsigned int flags)
{
	*stream = malloc(1);
	return ready(__func__);
}

CUresult cuStreamDestroy(void *stream)
{
	free(stream);
	return ready(__func__);
}

CUresult cuStreamSynchronize(void *stream)
{
	return ready(__func__);
}

CUresult cuEventCreate(void **event, unsigned int flags)
{
	*event = malloc(1);
	return ready(__func__);
}

CUresult cuEventDestroy(void *event)
{
	free(event);
	return ready(__func__);
}

CUresult cuEventRecord(void *event, void *stream)
{
	return ready(__func__);
}

CUresult cuEventQuery(void *event)
{
	return ready(__func__);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream)
{
	return copy_for(__func__, true, to, from, size);
}

/* ---- a function that perftest links with, but does not call here ---------------- */

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	return begin(__func__) ?: CUDA_ERROR_NOT_SUPPORTED;
}
