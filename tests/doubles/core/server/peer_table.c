// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Finds the device that does DMA, and passes scatterlists from the client to the driver. The
 * client's list is checked against the contract, and is not written to. The driver receives another
 * list, with the same bus addresses, and with the pages that a software device needs.
 */
#include <linux/dma-mapping.h>
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/pci.h>
#include <linux/sizes.h>

#include "core_priv.h"
#include "lab_device.h"
#include "peer_server.h"

/* Returns the device that clients see, with a reference, or NULL. */
struct device *peer_device_get(struct ib_device *ibdev)
{
	struct device *dev = lab_device_get(ibdev);

	/*
	 * The drivers of NICs do not set the longest segment, so this function sets 2 GiB, as mlx5
	 * does for its RDMA device.
	 */
	if (dev)
		dma_set_max_seg_size(dev, peer_switched(PEER_short_segments) ?
				     SZ_64K : SZ_2G);
	return dev;
}

/* Returns the device that the core passes to the client, with a reference. */
struct device *peer_device_told(struct device *dev)
{
	struct pci_dev *other = NULL;

	if (peer_switched(PEER_null_device))
		return NULL;
	if (!peer_switched(PEER_other_device))
		return get_device(dev);
	for_each_pci_dev(other)
		if (&other->dev != dev)
			return &other->dev;
	return NULL;
}

/*
 * The numbers of bytes of the client's list that are before and after the range, because the list
 * consists of large pages.
 */
struct peer_trim {
	size_t head;
	size_t tail;
};

static u32 peer_table_hash(const struct sg_table *table)
{
	struct scatterlist *sg;
	unsigned int i;
	u32 sum = 0;

	for_each_sg(table->sgl, sg, table->nents, i) {
		u64 entry[] = {
			sg->page_link, sg->offset, sg->length,
			sg_dma_address(sg), sg_dma_len(sg),
		};

		sum = jhash(entry, sizeof(entry), sum);
	}
	return sum;
}

/*
 * Tells whether the table can be walked. orig_nents, the number of entries with pages, is the
 * number of all entries, or 0 if no entry has pages. In a real core, another value would do harm
 * only later: when the core copies from the registered memory (ib_umem_copy_from), it would follow
 * a NULL pointer.
 */
static bool peer_table_check_shape(struct peer_umem *p)
{
	const struct sg_table *table = &p->table;
	struct scatterlist *sg = table->sgl;
	unsigned int n;

	if (!sg || !table->nents || p->nmap != table->nents ||
	    (table->orig_nents && table->nents != table->orig_nents)) {
		peer_violation(p->client, "bad_table",
			       "table of region %llu: nmap %d, nents %u, orig_nents %u, list %s",
			       p->id, p->nmap, table->nents, table->orig_nents,
			       sg ? "there" : "missing");
		return false;
	}
	if (table->orig_nents && !sg_page(sg))
		peer_count(PEER_tables_without_pages, 1);
	for (n = 1; n < table->nents && !sg_is_last(sg); n++)
		sg = sg_next(sg);
	if (n == table->nents && sg_is_last(sg))
		return true;
	peer_violation(p->client, "bad_table",
		       "table of region %llu does not end at its entry %u",
		       p->id, table->nents);
	return false;
}

static const char *peer_entry_fault(struct scatterlist *sg)
{
	if (!sg->length)
		return "has no length";
	if (sg_dma_len(sg) != sg->length)
		return "has two lengths";
	if (!sg_dma_address(sg) || sg_dma_address(sg) == DMA_MAPPING_ERROR)
		return "has no address";
	if (!PAGE_ALIGNED(sg_dma_address(sg)) || !PAGE_ALIGNED(sg->length))
		return "is not page aligned";
	return NULL;
}

/*
 * Finds the parts of the list that are outside the range. A list of large pages begins and ends at
 * the bounds of such pages. Some servers nevertheless use the first address as that of the first
 * page of the range (B7).
 */
static struct peer_trim peer_table_trim(struct peer_umem *p)
{
	unsigned long start = p->umem->address;
	unsigned long end = start + p->umem->length;

	if (p->client->generation == PEER_G3A || peer_switched(PEER_b7_no_trim))
		return (struct peer_trim) {};

	return (struct peer_trim) {
		.head = ALIGN_DOWN(start, PAGE_SIZE) - ALIGN_DOWN(start, p->page_size),
		.tail = ALIGN(end, p->page_size) - ALIGN(end, PAGE_SIZE),
	};
}

static bool peer_table_check_entries(struct peer_umem *p, const struct peer_trim *trim)
{
	size_t want = ib_umem_num_pages(p->umem) * PAGE_SIZE + trim->head + trim->tail;
	struct scatterlist *sg, *last = NULL;
	size_t total = 0;
	unsigned int i;

	for_each_sg(p->table.sgl, sg, p->table.nents, i) {
		const char *fault = peer_entry_fault(sg);

		if (fault) {
			peer_violation(p->client, "bad_entry",
				       "entry %u of region %llu %s: address %pad, length %#x, dma length %#x",
				       i, p->id, fault, &sg_dma_address(sg), sg->length,
				       sg_dma_len(sg));
			return false;
		}
		total += sg->length;
		last = sg;
	}
	if (total == want && p->table.sgl->length > trim->head &&
	    last->length > trim->tail)
		return true;
	peer_violation(p->client, "bad_length",
		       "table of region %llu covers %zu bytes, the range has %zu",
		       p->id, total, want);
	return false;
}

static bool peer_is_peer_memory(phys_addr_t phys)
{
	unsigned long pfn = PHYS_PFN(phys);

	return pfn_valid(pfn) && (is_zone_device_page(pfn_to_page(pfn)) ||
				  peer_switched(PEER_any_memory));
}

/* Does the same as lab_device_resolve(), but accepts only device memory. */
static size_t peer_table_run(struct peer_umem *p, dma_addr_t dma, size_t length,
			     phys_addr_t *phys)
{
	size_t run = lab_device_resolve(p->device, dma, length, phys);

	if (!run) {
		peer_violation(p->client, "unmapped_address",
			       "region %llu: nothing is mapped for %s at bus address %pad",
			       p->id, dev_name(p->device), &dma);
		return 0;
	}
	if (peer_is_peer_memory(*phys) && peer_is_peer_memory(*phys + run - 1))
		return run;
	peer_violation(p->client, "bad_address",
		       "region %llu: bus address %pad is physical address %pa, which is no device memory",
		       p->id, &dma, phys);
	return 0;
}

/*
 * Copies the part of the list that is inside the range to @out, with one entry for each physically
 * contiguous run. If @out is NULL, only checks and counts the runs.
 */
static int peer_table_copy(struct peer_umem *p, const struct peer_trim *trim,
			   struct scatterlist *out)
{
	unsigned int i, last = p->table.nents - 1;
	struct scatterlist *sg;
	phys_addr_t phys;
	int runs = 0;
	size_t run;

	for_each_sg(p->table.sgl, sg, p->table.nents, i) {
		size_t head = i ? 0 : trim->head;
		size_t rest = sg->length - head - (i == last ? trim->tail : 0);
		dma_addr_t dma = sg_dma_address(sg) + head;

		for (; rest; dma += run, rest -= run, runs++) {
			run = peer_table_run(p, dma, rest, &phys);
			if (!run)
				return -EFAULT;
			if (!out)
				continue;
			sg_set_page(out, pfn_to_page(PHYS_PFN(phys)), run, 0);
			sg_dma_address(out) = dma;
			sg_dma_len(out) = run;
			out = sg_next(out);
		}
	}
	return runs;
}

static int peer_table_build(struct peer_umem *p, const struct peer_trim *trim)
{
	struct sg_table *table = lab_umem_table(p->umem);
	int runs, err;

	if (p->borrowed) {
		lab_umem_clear(p->umem);
		*table = p->table;
		lab_umem_mapped(p->umem);
		return 0;
	}
	runs = peer_table_copy(p, trim, NULL);
	if (runs < 0)
		return runs;
	/* The append table still describes the pages that were pinned before pinning failed. */
	lab_umem_clear(p->umem);
	err = sg_alloc_table(table, runs, GFP_KERNEL);
	if (err) {
		/* A partial failure leaves a count of entries that do not exist. */
		memset(table, 0, sizeof(*table));
		return err;
	}
	peer_table_copy(p, trim, table->sgl);
	lab_umem_mapped(p->umem);
	return 0;
}

/*
 * Checks the client's table after dma_map, and gives the driver its table. In measurements these
 * checks would count as the core's work, so they are left out. The driver then receives the
 * client's own list, as with real servers, and nothing can be cut off from this list.
 */
int peer_table_check(struct peer_umem *p)
{
	struct peer_trim trim = peer_table_trim(p);

	p->borrowed = peer_switched(PEER_light);
	if (p->borrowed)
		return trim.head || trim.tail ? -EOPNOTSUPP : peer_table_build(p, &trim);
	if (!peer_table_check_shape(p)) {
		/* peer_table_verify() must not walk this table later. */
		p->table_seen.sgl = NULL;
		return -EINVAL;
	}
	p->table_sum = peer_table_hash(&p->table);
	if (p->page_size < PAGE_SIZE || !is_power_of_2(p->page_size)) {
		peer_violation(p->client, "bad_page_size",
			       "get_page_size of region %llu said %#lx", p->id, p->page_size);
		return -EINVAL;
	}
	return peer_table_check_entries(p, &trim) ? peer_table_build(p, &trim) : -EINVAL;
}

/*
 * Checks that the device's addresses still refer to the same memory, while the device may use them.
 */
void peer_table_check_mapped(struct peer_umem *p)
{
	const struct sg_table *table = lab_umem_table(p->umem);
	struct scatterlist *sg;
	phys_addr_t phys;
	unsigned int i;
	size_t run;

	if (p->borrowed)
		return;
	for_each_sg(table->sgl, sg, table->orig_nents, i) {
		run = lab_device_resolve(p->device, sg_dma_address(sg),
					  sg->length, &phys);
		if (run == sg->length && phys == sg_phys(sg))
			continue;
		peer_violation(p->client, "unmapped_address",
			       "region %llu: bus address %pad of %s is no longer mapped to what it was",
			       p->id, &sg_dma_address(sg), dev_name(p->device));
		return;
	}
}

/*
 * Checks that the client's list has not changed. A client must keep its list until the region is
 * released, because servers write to it until then (B6). An invalidation zeroes our own copy of the
 * table's head.
 */
void peer_table_verify(struct peer_umem *p)
{
	const struct sg_table *now = &p->table, *then = &p->table_seen;

	if (!then->sgl || p->borrowed)
		return;
	if ((!now->sgl || !memcmp(now, then, sizeof(*now))) &&
	    peer_table_hash(then) == p->table_sum)
		return;
	peer_violation(p->client, "table_changed",
		       "scatterlist of region %llu changed while the core used it", p->id);
}

void peer_table_free(struct peer_umem *p)
{
	if (!p->borrowed)
		sg_free_table(lab_umem_table(p->umem));
	lab_umem_clear(p->umem);
}
