// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library that stands for the kernel's RDMA core. The core has no peer memory, and is
 * strict about its commands and about dma-bufs. Each registration is an event. In the environment:
 *
 *	PEER_MEMORY=1		the core has peer memory
 *	REAL_ERRNO=N		a registration of a pointer fails with this number, in place of EFAULT
 *	DMABUF_ERRNO=N		a registration of a dma-buf fails with this number
 *	EARLY=N			the first N commands fail with EFAULT, before they are read
 *	REAL_CUDA=1		NVIDIA's libcuda says which memory is that of a GPU
 *
 * The handle of a new region is 77, its local key 78 and its remote key 79. A umem has the number 80.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doubles.h"
#include "uverbs.h"

/* The flags that the core accepts for a dma-buf. */
#define DMABUF_FLAGS	(1 | 2 | 4 | 8 | 1 << 20)
#define ON_DEMAND	(1 << 6)

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE and CU_MEMORYTYPE_DEVICE */
enum { MEMORY_TYPE = 2, MEMORY_OF_GPU = 2 };

struct memory {
	uint64_t start, length, iova;
	uint32_t access;
};

static struct ib_uverbs_attr *find(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id)
{
	for (int i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	return NULL;
}

/* Returns the value of an attribute that must have this length. */
static uint64_t value(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, int length)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	if (attr && attr->len == length && attr->flags == UVERBS_ATTR_F_MANDATORY && !attr->attr_data.reserved)
		return attr->data;
	event("attribute %#x is wrong\n", id);
	errno = EINVAL;
	return 0;
}

/* Stores a number at the address that an attribute has. */
static void answer(struct ib_uverbs_ioctl_hdr *hdr, unsigned int id, uint32_t number)
{
	*(uint32_t *)value(hdr, id, sizeof(number)) = number;
}

/* Stores the keys and the handle of a new region in the attributes with these numbers. */
static void answer_region(struct ib_uverbs_ioctl_hdr *hdr, unsigned int lkey, unsigned int rkey,
			  unsigned int handle)
{
	answer(hdr, lkey, 78);
	answer(hdr, rkey, 79);
	find(hdr, handle)->data = 77;
}

/* Returns whether an address is in the memory that begins at @base. */
static bool is_in(uint64_t base, uint64_t address)
{
	return address - base < GPU_SIZE;
}

/* Returns whether an address is that of GPU memory, for doubles or for NVIDIA's libcuda. */
static bool is_gpu(uint64_t start)
{
	int (*ask)(unsigned int *type, int attribute, uint64_t pointer);
	unsigned int type = 0;

	if (!told("REAL_CUDA"))
		return is_in(GPU_MEMORY, start) || is_in(GPU_POOL, start);
	ask = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuPointerGetAttribute");
	return !ask(&type, MEMORY_TYPE, start) && type == MEMORY_OF_GPU;
}

static bool pointer_is_refused(const char *what, const struct memory *it)
{
	bool gpu = is_gpu(it->start), served = (it->access & ON_DEMAND) || told("PEER_MEMORY");

	event("%s %#lx %zu %#lx %#x\n", what, it->start, it->length, it->iova, it->access);
	if (told("REAL_ERRNO"))
		errno = told("REAL_ERRNO");
	else if (it->start == NO_MEMORY || is_in(PINNED_HOST, it->start) || (gpu && !served))
		errno = EFAULT;
	return errno;
}

/*
 * Makes the same check as the kernel. The range must be inside the dma-buf, with the same offset in
 * a page.
 */
static bool dmabuf_is_refused(const char *what, const struct memory *it, int fd)
{
	struct stat file;

	event("%s %#lx %zu %#lx %#x\n", what, it->start, it->length, it->iova, it->access);
	if (told("DMABUF_ERRNO"))
		errno = told("DMABUF_ERRNO");
	else if (!errno && (fstat(fd, &file) || it->start + it->length > (uint64_t)file.st_size ||
			    (it->start ^ it->iova) & (getpagesize() - 1) || it->access & ~DMABUF_FLAGS))
		errno = EINVAL;
	return errno;
}

static void invoke_write(struct ib_uverbs_ioctl_hdr *hdr)
{
	const struct ib_uverbs_reg_mr *asked = (void *)value(hdr, UVERBS_ATTR_CORE_IN, sizeof(*asked));
	struct ib_uverbs_reg_mr_resp *resp = (void *)value(hdr, UVERBS_ATTR_CORE_OUT, sizeof(*resp));
	struct memory it;

	if (errno || value(hdr, UVERBS_ATTR_WRITE_CMD, 8) != IB_USER_VERBS_CMD_REG_MR)
		return;
	it = (struct memory){ asked->start, asked->length, asked->hca_va, asked->access_flags };
	if (!pointer_is_refused("reg_mr", &it))
		*resp = (struct ib_uverbs_reg_mr_resp){ 77, 78, 79 };
}

static void reg_dmabuf_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct memory it = {
		value(hdr, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8),
		value(hdr, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8),
		value(hdr, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8),
		value(hdr, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4),
	};

	if (value(hdr, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0) != PD_HANDLE)
		errno = ENOENT;
	if (dmabuf_is_refused("reg_dmabuf_mr", &it, value(hdr, UVERBS_ATTR_REG_DMABUF_MR_FD, 4)))
		return;
	answer_region(hdr, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY,
		      UVERBS_ATTR_REG_DMABUF_MR_HANDLE);
}

static void reg_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	bool is_dmabuf = find(hdr, REG_MR_FD);
	struct memory it = {
		value(hdr, is_dmabuf ? REG_MR_FD_OFFSET : REG_MR_ADDR, 8),
		value(hdr, REG_MR_LENGTH, 8),
		value(hdr, REG_MR_IOVA, 8),
		value(hdr, REG_MR_ACCESS_FLAGS, 4),
	};

	if (value(hdr, REG_MR_PD_HANDLE, 0) != PD_HANDLE)
		errno = ENOENT;
	if (is_dmabuf && find(hdr, REG_MR_ADDR))
		errno = EINVAL;
	if (is_dmabuf ? dmabuf_is_refused("reg_mr_ex_dmabuf", &it, value(hdr, REG_MR_FD, 0)) :
			pointer_is_refused("reg_mr_ex", &it))
		return;
	answer_region(hdr, REG_MR_RESP_LKEY, REG_MR_RESP_RKEY, REG_MR_HANDLE);
}

static void devx_umem_reg(struct ib_uverbs_ioctl_hdr *hdr)
{
	bool is_dmabuf = find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
	struct memory it = {
		.start = value(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8),
		.length = value(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8),
		.access = value(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4),
	};

	/* A umem has no address of its own, so the offset in a page may be any. */
	it.iova = it.start;
	if (is_dmabuf ? dmabuf_is_refused("umem_dmabuf", &it, value(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, 0)) :
			pointer_is_refused("umem", &it))
		return;
	answer(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 80);
	find(hdr, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE)->data = 77;
}

/* Returns the function that handles a command, or NULL. */
static void (*handler(const struct ib_uverbs_ioctl_hdr *hdr))(struct ib_uverbs_ioctl_hdr *)
{
	switch (hdr->object_id << 16 | hdr->method_id) {
	case UVERBS_OBJECT_DEVICE << 16 | UVERBS_METHOD_INVOKE_WRITE:
		return invoke_write;
	case UVERBS_OBJECT_MR << 16 | UVERBS_METHOD_REG_DMABUF_MR:
		return reg_dmabuf_mr;
	case UVERBS_OBJECT_MR << 16 | METHOD_REG_MR:
		return reg_mr;
	case MLX5_IB_OBJECT_DEVX_UMEM << 16 | MLX5_IB_METHOD_DEVX_UMEM_REG:
		return devx_umem_reg;
	}
	return NULL;
}

static int command(int fd, struct ib_uverbs_ioctl_hdr *hdr)
{
	static int early;
	void (*handle)(struct ib_uverbs_ioctl_hdr *);
	int before = errno;

	errno = early++ < told("EARLY") ? EFAULT : 0;
	if (errno)
		return -1;
	handle = handler(hdr);
	if (fd != DEVICE_FD)
		errno = EBADF;
	else if (hdr->length != sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]) || !(hdr->driver_id & DRIVER_ID))
		errno = EINVAL;
	else if (handle)
		handle(hdr);
	else
		errno = EPROTONOSUPPORT;
	if (errno)
		return -1;
	errno = before;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	/* The kernel looks at 32 bits. */
	if ((unsigned int)request == RDMA_VERBS_IOCTL)
		return command(fd, argument);
	return syscall(SYS_ioctl, fd, request, argument);
}
