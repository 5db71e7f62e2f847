// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Adds the import of dma-bufs to rxe. The kernel's own rxe cannot import dma-bufs.
 *
 * The RDMA core pins and maps the dma-buf for the NIC that rxe uses, as for a real device. The
 * resulting list has bus addresses and no pages, so this file finds the memory through its bus
 * addresses. The memory may be any that the kernel can copy, in particular a GPU's.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mmzone.h>
#include <rdma/ib_umem.h>

#include "lab_device.h"
#include "rxe.h"
#include "rxe_dmabuf.h"

static bool rxe_dmabuf;
module_param_named(dmabuf, rxe_dmabuf, bool, 0444);
MODULE_PARM_DESC(dmabuf, "whether memory can be registered as a dma-buf");

/* Adds the data that rxe needs in order to copy from or to a page. */
static int rxe_dmabuf_add_page(struct rxe_mr *mr, phys_addr_t phys)
{
	if (!pfn_valid(PHYS_PFN(phys)))
		return -EFAULT;
	mr->page_info[mr->nbuf].page = pfn_to_page(PHYS_PFN(phys));
	mr->page_info[mr->nbuf].offset = 0;
	mr->nbuf++;
	return 0;
}

static int rxe_dmabuf_add_entry(struct rxe_mr *mr, struct device *dev, struct scatterlist *sg)
{
	dma_addr_t dma = sg_dma_address(sg), end = dma + sg_dma_len(sg);
	phys_addr_t phys;
	int err;

	for (; dma < end; dma += PAGE_SIZE) {
		if (mr->nbuf == mr->num_buf || !lab_device_resolve(dev, dma, PAGE_SIZE, &phys))
			return -EFAULT;
		err = rxe_dmabuf_add_page(mr, phys);
		if (err)
			return err;
	}
	return 0;
}

static int rxe_dmabuf_fill(struct rxe_mr *mr, struct device *dev)
{
	const struct sg_table *table = &mr->umem->sgt_append.sgt;
	u32 pages = ib_umem_num_pages(mr->umem);
	struct scatterlist *sg;
	unsigned int i;
	int err;

	/* rxe frees page_info with the MR. */
	mr->page_info = kcalloc(pages, sizeof(*mr->page_info), GFP_KERNEL);
	if (!mr->page_info)
		return -ENOMEM;
	mr->num_buf = pages;
	mr->max_allowed_buf = pages;
	for_each_sg(table->sgl, sg, table->nents, i) {
		err = rxe_dmabuf_add_entry(mr, dev, sg);
		if (err)
			return err;
	}
	return mr->nbuf == pages ? 0 : -EFAULT;
}

/* Pins and maps a dma-buf for an MR. After a failure, the MR releases everything. */
static int rxe_dmabuf_init_mr(struct rxe_mr *mr, u64 offset, u64 length, u64 iova, int fd,
			      int access)
{
	struct ib_device *ibdev = mr->ibmr.device;
	struct device *dev = lab_device_get(ibdev);
	struct ib_umem_dmabuf *umem;
	int err;

	rxe_mr_init(access, mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	if (!dev)
		return -ENODEV;
	umem = ib_umem_dmabuf_get_pinned_with_dma_device(ibdev, dev, offset, length, fd, access);
	err = PTR_ERR_OR_ZERO(umem);
	if (!err) {
		mr->umem = &umem->umem;
		/* The MR counts its pages from this address. */
		mr->umem->iova = iova;
		err = rxe_dmabuf_fill(mr, dev);
	}
	put_device(dev);
	if (!err)
		mr->state = RXE_MR_STATE_VALID;
	return err;
}

/* Registers a dma-buf, as rxe_reg_user_mr() registers memory with an address. */
static struct ib_mr *rxe_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset, u64 length, u64 iova,
					    int fd, int access, struct ib_dmah *dmah,
					    struct uverbs_attr_bundle *attrs)
{
	struct rxe_dev *rxe = to_rdev(ibpd->device);
	struct rxe_mr *mr;
	int err;

	if (dmah || access & ~RXE_ACCESS_SUPPORTED_MR)
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = rxe_add_to_pool(&rxe->mr_pool, mr);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	rxe_get(to_rpd(ibpd));
	mr->ibmr.pd = ibpd;
	mr->ibmr.device = ibpd->device;
	err = rxe_dmabuf_init_mr(mr, offset, length, iova, fd, access);
	if (err) {
		rxe_cleanup(mr);
		kfree(mr);
		return ERR_PTR(err);
	}
	rxe_finalize(mr);
	return &mr->ibmr;
}

static const struct ib_device_ops rxe_dmabuf_ops = {
	.reg_user_mr_dmabuf = rxe_reg_user_mr_dmabuf,
};

void rxe_dmabuf_init(struct ib_device *ibdev)
{
	if (rxe_dmabuf)
		ib_set_device_ops(ibdev, &rxe_dmabuf_ops);
}
