// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * libibverbs.so.1 for tests of the preloaded library. It gives the same commands to ioctl() as that
 * of rdma-core. As there, ibv_reg_mr() calls ibv_reg_mr_iova2() by its name. The doubles of libibverbs
 * and libmlx5 are one library. In the tests, kernel.c answers the commands.
 */
#include <errno.h>

#include <infiniband/verbs.h>

#include "doubles.h"
#include "uverbs.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static void begin(struct command *it, int object, int method)
{
	memset(it, 0, sizeof(*it));
	it->hdr.length = sizeof(it->hdr);
	it->hdr.object_id = object;
	it->hdr.method_id = method;
	it->hdr.driver_id = DRIVER_ID;
}

/* Appends an attribute, and returns it. */
static struct ib_uverbs_attr *add(struct command *it, int id, int length, uint64_t data)
{
	struct ib_uverbs_attr *attr = &it->attrs[it->hdr.num_attrs++];

	it->hdr.length += sizeof(*attr);
	attr->attr_id = id;
	attr->len = length;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	attr->data = data;
	return attr;
}

static bool send(struct command *it)
{
	return !ioctl(DEVICE_FD, RDMA_VERBS_IOCTL, it);
}

/* Returns a region with the kernel's answers, or NULL if they are not those of kernel.c. */
static struct ibv_mr *region(void *addr, size_t length, uint32_t handle, uint32_t lkey, uint32_t rkey)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	if (handle != 77 || lkey != 78 || rkey != 79) {
		errno = ENOTUNIQ;
		return NULL;
	}
	mr->addr = addr;
	mr->length = length;
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ib_uverbs_reg_mr asked = {
		.start = (uintptr_t)addr,
		.length = length,
		.hca_va = iova,
		.pd_handle = PD_HANDLE,
		.access_flags = access,
	};
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct command it;

	(void)pd;
	begin(&it, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	add(&it, UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_REG_MR);
	add(&it, UVERBS_ATTR_CORE_IN, sizeof(asked), (uintptr_t)&asked);
	add(&it, UVERBS_ATTR_CORE_OUT, sizeof(resp), (uintptr_t)&resp);
	return send(&it) ? region(addr, length, resp.mr_handle, resp.lkey, resp.rkey) : NULL;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
				 int access)
{
	struct ib_uverbs_attr *handle;
	uint32_t lkey = 0, rkey = 0;
	struct command it;

	(void)pd;
	begin(&it, UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR);
	handle = add(&it, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, sizeof(lkey), (uintptr_t)&lkey);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, PD_HANDLE);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, offset);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, length);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, iova);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_FD, 4, fd);
	add(&it, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, access);
	return send(&it) ? region((void *)offset, length, handle->data, lkey, rkey) : NULL;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

/* ibv_reg_mr_ex() has another structure. Its command is the same for these arguments. */
struct ibv_mr *reg_mr_ex(void *addr, size_t length, uint64_t iova, int access)
{
	struct ib_uverbs_attr *handle;
	uint32_t lkey = 0, rkey = 0;
	struct command it;

	begin(&it, UVERBS_OBJECT_MR, METHOD_REG_MR);
	add(&it, REG_MR_ADDR, 8, (uintptr_t)addr);
	add(&it, REG_MR_IOVA, 8, iova);
	handle = add(&it, REG_MR_HANDLE, 0, 0);
	add(&it, REG_MR_RESP_LKEY, sizeof(lkey), (uintptr_t)&lkey);
	add(&it, REG_MR_RESP_RKEY, sizeof(rkey), (uintptr_t)&rkey);
	add(&it, REG_MR_PD_HANDLE, 0, PD_HANDLE);
	add(&it, REG_MR_LENGTH, 8, length);
	add(&it, REG_MR_ACCESS_FLAGS, 4, access);
	return send(&it) ? region(addr, length, handle->data, lkey, rkey) : NULL;
}

/*
 * Makes a umem as mlx5dv_devx_umem_reg() does. With a descriptor, it makes a umem of a dma-buf as
 * mlx5dv_devx_umem_reg_ex() does, and the address is an offset.
 */
struct ibv_mr *umem_reg(void *addr, size_t length, int access, int fd)
{
	struct ib_uverbs_attr *handle;
	uint32_t number = 0;
	struct command it;

	begin(&it, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG);
	add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, (uintptr_t)addr);
	add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, length);
	add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, access);
	if (fd >= 0)
		add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, 0, fd);
	add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, ~0xfffull);
	add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, sizeof(number), (uintptr_t)&number);
	handle = add(&it, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, 0, 0);
	return send(&it) && number == 80 ? region(addr, length, handle->data, 78, 79) : NULL;
}
