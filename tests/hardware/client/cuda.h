/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The calls of CUDA. They are found at run time, because machines without CUDA's headers have the library. */
#ifndef HARDWARE_CUDA_H
#define HARDWARE_CUDA_H

#include "client.h"

/* These numbers and shapes are those of cuda.h. */
struct location {
	int type, id;
};

struct properties {
	int type, handle_types;
	struct location location;
	void *windows;
	unsigned char compression, rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};

struct permission {
	struct location location;
	int flags;
};

#define DEVICE_MEMORY	1
#define PINNED		1
#define READ_WRITE	3
#define ATTACH_GLOBAL	1
#define SYNC_MEMOPS	6
#define DMA_BUF		1
#define NO_DEVICE	100

typedef unsigned long long gpu_address;

/* Calls that only some versions have are NULL if the library lacks them. */
struct cuda_calls {
	int (*init)(unsigned int flags);
	int (*count)(int *count);
	int (*get)(int *device, int ordinal);
	int (*name)(char *name, int size, int device);
	int (*bus_id)(char *id, int size, int device);
	int (*retain)(void **context, int device);
	int (*current)(void *context);
	int (*alloc)(gpu_address *address, size_t size);
	int (*free)(gpu_address address);
	int (*to_gpu)(gpu_address to, const void *from, size_t size);
	int (*from_gpu)(void *to, gpu_address from, size_t size);
	int (*set)(const void *value, int attribute, gpu_address address);
	int (*default_pool)(void **pool, int device);
	int (*from_pool)(gpu_address *address, size_t size, void *pool, void *stream);
	int (*synchronize)(void *stream);
	int (*managed)(gpu_address *address, size_t size, unsigned int flags);
	int (*create)(unsigned long long *handle, size_t size, const struct properties *is,
		      unsigned long long flags);
	int (*release)(unsigned long long handle);
	int (*reserve)(gpu_address *address, size_t size, size_t alignment, gpu_address wanted,
		       unsigned long long flags);
	int (*unreserve)(gpu_address address, size_t size);
	int (*map)(gpu_address address, size_t size, size_t offset, unsigned long long handle,
		   unsigned long long flags);
	int (*unmap)(gpu_address address, size_t size);
	int (*access)(gpu_address address, size_t size, const struct permission *who, size_t count);
	int (*granularity)(size_t *size, const struct properties *is, int option);
	int (*handle)(void *handle, gpu_address address, size_t size, int type,
		      unsigned long long flags);
	int (*room)(size_t *unused, size_t *all);
	int (*error_name)(int error, const char **name);
};

extern struct cuda_calls cuda;
extern int device;

bool open_cuda(void);
bool failed(int error);

#endif
