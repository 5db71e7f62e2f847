// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A libcuda.so.1 for the simulated GPU. README.md lists the rules of CUDA that the library follows.
 * A program that needs other functions of CUDA cannot be linked, or does not find them.
 *
 * The library has no locks, so only one thread of a process may use it at a time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda.h"
#include "lab_gpu.h"

#define BLOCK		(2ULL << 20)
#define BLOCKS(size)	(((size) + BLOCK - 1) / BLOCK * BLOCK)

/*
 * The first address of GPU memory. Addresses are the same in every process, although the memory
 * differs.
 */
#define FIRST		0x302000000ULL

struct CUctx_st {
	int users;	/* 0 when it was destroyed, or is the primary one and unused */
};

static struct buffer {
	CUdeviceptr start;
	size_t size;	/* 0: this place is free */
	CUcontext context;
	unsigned long long id;
} buffers[256];

#define END		(buffers + sizeof(buffers) / sizeof(*buffers))

static int gpu = -1, memory;
static pid_t owner;
static unsigned int pci[4];
static struct CUctx_st primary;
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

CUresult cuInit(unsigned int flags)
{
	glob_t found;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpu >= 0)
		return owner == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	if (glob("/sys/bus/pci/drivers/nvidia/*:*:*.*", 0, NULL, &found))
		return CUDA_ERROR_NO_DEVICE;
	if (sscanf(strrchr(found.gl_pathv[0], '/'), "/%x:%x:%x.%x", pci, pci + 1, pci + 2, pci + 3) == 4)
		gpu = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	globfree(&found);
	owner = getpid();
	return gpu >= 0 && memory >= 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

/* Tells whether a device exists. A child of fork() has no devices. */
static CUresult known(CUdevice device)
{
	if (gpu < 0 || owner != getpid())
		return CUDA_ERROR_NOT_INITIALIZED;
	return device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

/* Returns an error unless this thread has a context, because most calls need one. */
static CUresult ready(void)
{
	if (known(0) || (current() && current()->users))
		return known(0);
	return current() ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
#define NAME(error)	{ error, #error }
	static const struct { CUresult error; const char *name; } names[] = {
		NAME(CUDA_SUCCESS), NAME(CUDA_ERROR_INVALID_VALUE), NAME(CUDA_ERROR_OUT_OF_MEMORY),
		NAME(CUDA_ERROR_NOT_INITIALIZED), NAME(CUDA_ERROR_NO_DEVICE), NAME(CUDA_ERROR_INVALID_DEVICE),
		NAME(CUDA_ERROR_INVALID_CONTEXT), NAME(CUDA_ERROR_OPERATING_SYSTEM),
		NAME(CUDA_ERROR_ILLEGAL_ADDRESS), NAME(CUDA_ERROR_CONTEXT_IS_DESTROYED),
		NAME(CUDA_ERROR_NOT_FOUND), NAME(CUDA_ERROR_NOT_SUPPORTED),
	};
	size_t i;

	*name = NULL;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].error == error)
			*name = names[i].name;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *number)
{
	*number = 1;
	return known(0);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return known(ordinal);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	snprintf(name, size, "Simulated GPU of the lab");
	return known(device);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	snprintf(id, size, "%04X:%02X:%02X.%X", pci[0], pci[1], pci[2], pci[3]);
	return known(device);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*value = pci[0];
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*value = pci[1];
		break;
	case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*value = pci[2];
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
	return known(device);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	memcpy(uuid->bytes, "simulated GPU 00", sizeof(uuid->bytes));
	return known(device);
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	*bytes = 1ULL << 30;
	return known(device);
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
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

/* Returns the buffer around an address, or NULL. */
static struct buffer *find(CUdeviceptr address)
{
	struct buffer *buffer;

	for (buffer = buffers; buffer < END; buffer++)
		if (address - buffer->start < buffer->size)
			return buffer;
	return NULL;
}

/* Allocates memory at the first address at which the gap between mappings is large enough. */
CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
	static unsigned long long last_id;
	struct buffer *buffer = buffers;
	CUdeviceptr at = FIRST;

	if (ready())
		return ready();
	if (!size || !address)
		return CUDA_ERROR_INVALID_VALUE;
	while (buffer < END && buffer->size)
		buffer++;
	if (buffer == END)
		return CUDA_ERROR_OUT_OF_MEMORY;
	while (mmap((void *)at, BLOCKS(size), PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, gpu,
		    LAB_GPU_ANYWHERE) == MAP_FAILED) {
		if (errno != EEXIST)
			return CUDA_ERROR_OUT_OF_MEMORY;
		at += BLOCK;
	}
	*buffer = (struct buffer){ at, size, current(), ++last_id };
	*address = at;
	return CUDA_SUCCESS;
}

static CUresult release(struct buffer *buffer)
{
	size_t size = BLOCKS(buffer->size);

	buffer->size = 0;
	return munmap((void *)buffer->start, size) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

/* Frees a buffer. The thread needs no context, because the buffer's own context is used. */
CUresult cuMemFree(CUdeviceptr address)
{
	struct buffer *buffer = find(address);

	if (known(0))
		return known(0);
	return buffer && buffer->start == address ? release(buffer) : CUDA_ERROR_INVALID_VALUE;
}

/* Tells whether @size bytes at @address are all in one buffer, or all outside every buffer. */
static int fits(CUdeviceptr address, size_t size)
{
	struct buffer *buffer = find(address);

	return !buffer || size <= buffer->start + buffer->size - address;
}

/* Copies each byte through the driver. */
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	char part[1 << 16];
	ssize_t n;

	if (ready())
		return ready();
	if (!fits(to, size) || !fits(from, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (; size; to += n, from += n, size -= n) {
		n = pread(memory, part, size < sizeof(part) ? size : sizeof(part), from);
		if (n <= 0 || pwrite(memory, part, n, to) != n)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size)
{
	return find(to) ? cuMemcpy(to, (CUdeviceptr)from, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size)
{
	return find(from) ? cuMemcpy((CUdeviceptr)to, from, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return find(to) && find(from) ? cuMemcpy(to, from, size) : CUDA_ERROR_INVALID_VALUE;
}

/* Accepts SYNC_MEMOPS, which changes nothing because all copies are synchronous. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	if (known(0))
		return known(0);
	if (!value || !find(address))
		return CUDA_ERROR_INVALID_VALUE;
	return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct buffer *buffer = find(address);

	if (known(0))
		return known(0);
	if (!value || !buffer)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = buffer->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(int *)value = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)value = false;
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
		*(void **)value = NULL;
		return CUDA_SUCCESS;
	default:
		fprintf(stderr, "libcuda of the lab: no attribute %d of a pointer\n", attribute);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* Asks for several attributes. As in CUDA, an address of the CPU is no error, and leaves zeros. */
CUresult cuPointerGetAttributes(unsigned int number, CUpointer_attribute *attributes, void **values,
				CUdeviceptr address)
{
	CUresult error = known(0);
	unsigned int i;

	for (i = 0; i < number && !error; i++) {
		if (find(address))
			error = cuPointerGetAttribute(values[i], attributes[i], address);
		else
			memset(values[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? sizeof(bool) : sizeof(int));
	}
	return error;
}

CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *size, CUdeviceptr address)
{
	struct buffer *buffer = find(address);

	if (ready())
		return ready();
	if (!buffer)
		return CUDA_ERROR_NOT_FOUND;
	if (start)
		*start = buffer->start;
	if (size)
		*size = buffer->size;
	return CUDA_SUCCESS;
}

/* This library has no cuMemCreate, so that no memory comes from it. */
CUresult cuMemGetAllocationGranularity(size_t *granularity, const void *properties, int option)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
	return CUDA_ERROR_INVALID_VALUE;
}

/* Exports whole pages of the CPU, within the memory of one buffer. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address, size_t size,
				       CUmemRangeHandleType type, unsigned long long flags)
{
	struct lab_gpu_range range = { address, size };
	int fd;

	if (ready())
		return ready();
	if (!handle || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags)
		return CUDA_ERROR_NOT_SUPPORTED;
	fd = ioctl(gpu, LAB_GPU_EXPORT, &range);
	if (fd < 0)
		return errno == EINVAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
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

/* Makes a context current, above those that the thread has. */
static CUresult push(CUcontext context)
{
	if (!context || stack.n == sizeof(stack.contexts) / sizeof(*stack.contexts))
		return CUDA_ERROR_INVALID_VALUE;
	if (!context->users)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.contexts[stack.n++] = context;
	return CUDA_SUCCESS;
}

/* Replaces the current context, or takes it away if the new one is NULL. */
CUresult cuCtxSetCurrent(CUcontext context)
{
	if (known(0))
		return known(0);
	if (stack.n)
		stack.n--;
	return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current();
	return known(0);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	return known(0) ? known(0) : push(context);
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
	if (known(0))
		return known(0);
	if (!stack.n)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = stack.contexts[--stack.n];
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	if (known(device))
		return known(device);
	*context = calloc(1, sizeof(**context));
	if (!*context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*context)->users = 1;
	return push(*context);
}

/*
 * Destroys a context. Does not free its structure, because another thread may still have the
 * context. The calls of that thread then fail.
 */
CUresult cuCtxDestroy(CUcontext context)
{
	leave(context);
	if (current() == context)
		stack.n--;
	return known(0);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	*context = &primary;
	primary.users += !known(device);
	return known(device);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	leave(&primary);
	return known(device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = primary.users > 0;
	return known(device);
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = 0;
	return ready();
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
	*flags = 0;
	return ready();
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	*id = (unsigned long long)(context ? context : current());
	return ready();
}

/* ---- streams and events: all work is done at once ------------------------------- */

CUresult cuStreamCreate(void **stream, unsigned int flags)
{
	*stream = malloc(1);
	return ready();
}

CUresult cuStreamDestroy(void *stream)
{
	free(stream);
	return ready();
}

CUresult cuStreamSynchronize(void *stream)
{
	return ready();
}

CUresult cuEventCreate(void **event, unsigned int flags)
{
	return cuStreamCreate(event, flags);
}

CUresult cuEventDestroy(void *event)
{
	return cuStreamDestroy(event);
}

CUresult cuEventRecord(void *event, void *stream)
{
	return ready();
}

CUresult cuEventQuery(void *event)
{
	return ready();
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, void *stream)
{
	return cuMemcpy(to, from, size);
}

/* ---- functions that perftest links with, but does not call here ----------------- */

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemAllocHost(void **address, size_t size)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuMemFreeHost(void *address)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
