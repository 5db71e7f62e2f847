// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The scatterlist between client and driver. The client's is checked against
 * the contract and never written to; the driver gets one of its own, with the
 * same bus addresses and with the pages that a software device needs.
 */
#include <linux/dma-mapping.h>
#include <linux/jhash.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/scatterlist.h>
#include <rdma/ib_umem.h>

#include "peer_server.h"

/* How much of the client's list is outside the range, for large pages. */
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

static bool peer_page_size_check(struct peer_umem *p, unsigned long page_size)
{
	if (page_size >= PAGE_SIZE && is_power_of_2(page_size))
		return true;
	peer_violation(p->client, PEER_BAD_PAGE_SIZE,
		       "get_page_size of region %llu said %#lx", p->id, page_size);
	return false;
}

/*
 * Whether the table can be walked. The number of entries that have pages may be that of
 * all entries, or 0, where none has. With the first and no pages nothing happens until
 * the core copies from what is registered (ib_umem_copy_from): it would follow NULL.
 */
static bool peer_table_check_shape(struct peer_umem *p)
{
	const struct sg_table *table = &p->table;
	struct scatterlist *sg = table->sgl;
	unsigned int n;

	if (!sg || !table->nents || p->nmap != table->nents ||
	    (table->orig_nents && table->nents != table->orig_nents)) {
		peer_violation(p->client, PEER_BAD_TABLE,
			       "table of region %llu: nmap %d, nents %u, orig_nents %u, list %s",
			       p->id, p->nmap, table->nents, table->orig_nents,
			       sg ? "there" : "missing");
		return false;
	}
	if (table->orig_nents && !sg_page(sg))
		peer_count(PEER_TABLES_WITHOUT_PAGES, 1);
	for (n = 1; n < table->nents && !sg_is_last(sg); n++)
		sg = sg_next(sg);
	if (n == table->nents && sg_is_last(sg))
		return true;
	peer_violation(p->client, PEER_BAD_TABLE,
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

static bool peer_table_check_entries(struct peer_umem *p)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(p->table.sgl, sg, p->table.nents, i) {
		const char *fault = peer_entry_fault(sg);

		if (!fault)
			continue;
		peer_violation(p->client, PEER_BAD_ENTRY,
			       "entry %u of region %llu %s: address %pad, length %#x, dma length %#x",
			       i, p->id, fault, &sg_dma_address(sg), sg->length,
			       sg_dma_len(sg));
		return false;
	}
	return true;
}

/*
 * A list in large pages begins and ends at bounds of such pages, but B7: some
 * servers take the first address for that of the first page of the range.
 */
static struct peer_trim peer_table_trim(struct peer_umem *p, unsigned long page_size)
{
	unsigned long start = p->umem->address;
	unsigned long end = start + p->umem->length;

	if (p->client->generation == PEER_G3A || peer_switched(PEER_B7_NO_TRIM))
		return (struct peer_trim) {};

	return (struct peer_trim) {
		.head = ALIGN_DOWN(start, PAGE_SIZE) - ALIGN_DOWN(start, page_size),
		.tail = ALIGN(end, page_size) - ALIGN(end, PAGE_SIZE),
	};
}

static bool peer_table_check_length(struct peer_umem *p, const struct peer_trim *trim)
{
	size_t want = p->npages * PAGE_SIZE + trim->head + trim->tail;
	struct scatterlist *sg, *last = NULL;
	size_t total = 0;
	unsigned int i;

	for_each_sg(p->table.sgl, sg, p->table.nents, i) {
		total += sg->length;
		last = sg;
	}
	if (total == want && p->table.sgl->length > trim->head &&
	    last->length > trim->tail)
		return true;
	peer_violation(p->client, PEER_BAD_LENGTH,
		       "table of region %llu covers %zu bytes, the range has %zu",
		       p->id, total, want);
	return false;
}

static bool peer_is_peer_memory(phys_addr_t phys)
{
	unsigned long pfn = PHYS_PFN(phys);

	return pfn_valid(pfn) &&
	       (is_zone_device_page(pfn_to_page(pfn)) || peer_switched(PEER_ANY_MEMORY));
}

/*
 * Copies one entry without @head bytes at its begin and @tail bytes at its
 * end, as one entry for each physically contiguous run. Without @out the
 * runs are only checked and counted.
 */
static int peer_table_copy_entry(struct peer_umem *p, struct scatterlist *sg,
				 const struct peer_trim *trim,
				 struct scatterlist **out)
{
	dma_addr_t dma = sg_dma_address(sg) + trim->head;
	size_t rest = sg->length - trim->head - trim->tail;
	phys_addr_t phys;
	int runs = 0;
	size_t run;

	for (; rest; dma += run, rest -= run, runs++) {
		run = peer_device_resolve(p->device, dma, rest, &phys);
		if (!run) {
			peer_violation(p->client, PEER_UNMAPPED_ADDRESS,
				       "region %llu: nothing is mapped for %s at bus address %pad",
				       p->id, dev_name(p->device), &dma);
			return -EFAULT;
		}
		if (!peer_is_peer_memory(phys) || !peer_is_peer_memory(phys + run - 1)) {
			peer_violation(p->client, PEER_BAD_ADDRESS,
				       "region %llu: bus address %pad is physical address %pa, which is no device memory",
				       p->id, &dma, &phys);
			return -EFAULT;
		}
		if (!out)
			continue;
		sg_set_page(*out, pfn_to_page(PHYS_PFN(phys)), run, 0);
		sg_dma_address(*out) = dma;
		sg_dma_len(*out) = run;
		*out = sg_next(*out);
	}
	return runs;
}

static int peer_table_copy(struct peer_umem *p, const struct peer_trim *trim,
			   struct scatterlist *out)
{
	unsigned int i, last = p->table.nents - 1;
	struct scatterlist *sg;
	int runs, total = 0;

	for_each_sg(p->table.sgl, sg, p->table.nents, i) {
		struct peer_trim ends = {
			.head = i ? 0 : trim->head,
			.tail = i == last ? trim->tail : 0,
		};

		runs = peer_table_copy_entry(p, sg, &ends, out ? &out : NULL);
		if (runs < 0)
			return runs;
		total += runs;
	}
	return total;
}

static int peer_table_build(struct peer_umem *p, const struct peer_trim *trim)
{
	struct sg_table *table = lab_umem_table(p->umem);
	int runs, err;

	runs = peer_table_copy(p, trim, NULL);
	if (runs < 0)
		return runs;
	/* The append table still tells of the pages that were pinned at first. */
	lab_umem_clear(p->umem);
	err = sg_alloc_table(table, runs, GFP_KERNEL);
	if (err) {
		/* What failed half way counts entries that are not there. */
		memset(table, 0, sizeof(*table));
		return err;
	}
	peer_table_copy(p, trim, table->sgl);
	lab_umem_mapped(p->umem);
	return 0;
}

/*
 * Gives the driver the client's own list, as real servers do: for measurements,
 * where what this double looks at would count as the core's work.
 */
static int peer_table_borrow(struct peer_umem *p, unsigned long page_size)
{
	struct peer_trim trim = peer_table_trim(p, page_size);

	/* These would have to be cut off in the client's list. */
	if (trim.head || trim.tail)
		return -EOPNOTSUPP;
	p->borrowed = true;
	lab_umem_clear(p->umem);
	*lab_umem_table(p->umem) = p->table;
	lab_umem_mapped(p->umem);
	return 0;
}

/* Checks what dma_map left, and gives the driver its table. */
int peer_table_check(struct peer_umem *p, unsigned long page_size)
{
	struct peer_trim trim;

	if (peer_switched(PEER_LIGHT))
		return peer_table_borrow(p, page_size);
	if (!peer_table_check_shape(p)) {
		/* Not to be walked later either. */
		p->table_seen.sgl = NULL;
		return -EINVAL;
	}
	p->table_sum = peer_table_hash(&p->table);
	if (!peer_page_size_check(p, page_size) || !peer_table_check_entries(p))
		return -EINVAL;
	trim = peer_table_trim(p, page_size);
	if (!peer_table_check_length(p, &trim))
		return -EINVAL;
	return peer_table_build(p, &trim);
}

/* What the device was given must mean the same as long as it may use that. */
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
		run = peer_device_resolve(p->device, sg_dma_address(sg),
					  sg->length, &phys);
		if (run == sg->length && phys == sg_phys(sg))
			continue;
		peer_violation(p->client, PEER_UNMAPPED_ADDRESS,
			       "region %llu: bus address %pad of %s is no longer mapped to what it was",
			       p->id, &sg_dma_address(sg), dev_name(p->device));
		return;
	}
}

/*
 * The client's list must still be there, as it was when it came: B6, servers
 * write to it until the region is released. Our own copy of the table's head is
 * zeroed by an invalidation.
 */
void peer_table_verify(struct peer_umem *p)
{
	const struct sg_table *now = &p->table, *then = &p->table_seen;

	if (!then->sgl || p->borrowed)
		return;
	if ((!now->sgl || !memcmp(now, then, sizeof(*now))) &&
	    peer_table_hash(then) == p->table_sum)
		return;
	peer_violation(p->client, PEER_TABLE_CHANGED,
		       "scatterlist of region %llu changed while the core used it", p->id);
}

void peer_table_free(struct peer_umem *p)
{
	if (!p->borrowed)
		sg_free_table(lab_umem_table(p->umem));
	lab_umem_clear(p->umem);
}
