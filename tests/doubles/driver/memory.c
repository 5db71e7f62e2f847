// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory that NVIDIA's code allocates: page tables, pages, mappings, addresses.
 *
 * All of this memory belongs to the driver. put_pages frees a page table and every DMA mapping that
 * was made from it. The driver does the same as soon as the free callback of a table has returned.
 *
 * When a structure that a client has seen is freed, the simulation fills it with 0x6b and keeps it
 * in a quarantine. The knob "quarantine_max" limits the quarantine; the oldest structure leaves
 * first. A client that reads a table after its end therefore finds the version 0x6b6b6b6b. A write
 * is noticed when the table leaves the quarantine, and a client that passes the table to the driver
 * again is reported. If the knob is 0, nothing is filled or kept, so that each page costs as much
 * as in the real driver. Measurements use that value.
 *
 * A structure for a client is hashed when it is made, and the hash is checked at each call that
 * names the structure. A client may have changed the structure, so its data are restored before
 * NVIDIA's code reads it for the last time.
 */
#include <linux/jhash.h>
#include <linux/string.h>

#include "driver.h"
#include "sim.h"

/* The header before each block that NVIDIA's code gets. */
struct sim_block {
	struct sim_block *next;		/* the object's next block */
	struct sim_object *object;	/* the client's object with this block, or NULL */
	size_t size;
	bool again;			/* was another table's */
	u8 data[] __aligned(8);
};

static struct sim_block *sim_block_of(const void *memory)
{
	return container_of(memory, struct sim_block, data[0]);
}

bool sim_is_used_again(const void *memory)
{
	return sim_block_of(memory)->again;
}

/*
 * Returns the block of the page table that this process has freed last, as the kernel's allocator
 * might. The new table then has the address of the old table. The address of a table is its key, so
 * the key of the old table then identifies the new table.
 */
static struct sim_block *sim_block_again(size_t size)
{
	struct sim_object *dead;
	struct sim_block *block;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry_reverse(dead, &sim_gpu.dead, node) {
		block = dead->first;
		if (dead->mapping || !block || block->size != size ||
		    container_of(dead, struct sim_pin, object)->tgid != task_tgid_nr(current))
			continue;
		dead->first = NULL;
		block->object = NULL;
		block->again = true;
		return block;
	}
	return NULL;
}

static void *sim_block_init(struct sim_block *block, size_t size)
{
	if (!block)
		return NULL;
	block->next = NULL;
	block->object = NULL;
	block->size = size;
	block->again = false;
	return block->data;
}

NV_STATUS os_alloc_mem(void **address, NvU64 size)
{
	struct sim_block *block = sim_knob(reuse) ? sim_block_again(size) : NULL;

	if (block)
		*address = block->data;
	else
		*address = sim_block_init(kvmalloc(sizeof(*block) + size, GFP_KERNEL), size);
	return *address ? NV_OK : NV_ERR_NO_MEMORY;
}

/*
 * Allocates a page. The compiler knows the size, so this function is as fast as the cache in the
 * real driver.
 */
struct nvidia_p2p_page *sim_page_new(void)
{
	const size_t size = sizeof(struct nvidia_p2p_page);

	return sim_block_init(kmalloc(sizeof(struct sim_block) + size, GFP_KERNEL), size);
}

/*
 * Frees a block. An object has several blocks, and NVIDIA's code frees the block with the key last.
 */
void os_free_mem(void *address)
{
	struct sim_block *block = sim_block_of(address);
	struct sim_object *object = block->object;

	if (sim_knob(quarantine_max))
		memset(block->data, SIM_POISON, block->size);
	if (!object)
		kvfree(block);
	else if (!object->first || object->first == block)
		sim_object_bury(object);
}

/* ---- objects that a client sees ----------------------------------------- */

void sim_object_init(struct sim_object *object, bool mapping, void *key)
{
	kref_init(&object->ref);
	INIT_LIST_HEAD(&object->node);
	object->mapping = mapping;
	object->key = key;
}

static void sim_object_destroy(struct kref *ref)
{
	struct sim_object *object = container_of(ref, struct sim_object, ref);
	struct sim_block *block;

	while ((block = object->blocks)) {
		object->blocks = block->next;
		kvfree(block);
	}
	kvfree(object->first);
	if (object->mapping)
		sim_mapping_gone(container_of(object, struct sim_mapping, object));
	/* The object is the first member of a pin and of a mapping. */
	kfree(object);
}

void sim_object_put(struct sim_object *object)
{
	if (object)
		kref_put(&object->ref, sim_object_destroy);
}

/* Sets the block that contains the object's key. */
void sim_object_adopt(struct sim_object *object, void *first)
{
	object->first = sim_block_of(first);
	object->first->object = object;
}

/* Adds a block to the object's other memory. */
void sim_object_own(struct sim_object *object, void *memory)
{
	struct sim_block *block = sim_block_of(memory);

	block->object = object;
	block->next = object->blocks;
	object->blocks = block;
}

static size_t sim_key_size(const struct sim_object *object)
{
	return object->mapping ? sizeof(object->made.map) : sizeof(object->made.table);
}

static u32 sim_object_hash(const struct sim_object *object)
{
	u32 hash = jhash(object->key, sim_key_size(object), 0);
	const struct sim_block *block;

	for (block = object->blocks; block; block = block->next)
		hash = jhash(block->data, block->size, hash);
	return hash | 1;
}

/*
 * Hashes a complete object, which must not change any more. Before that, falsifies its contents if
 * a knob says so.
 */
void sim_object_seal(struct sim_object *object)
{
	struct nvidia_p2p_dma_mapping *map = object->key;
	struct nvidia_p2p_page_table *table = object->key;

	memcpy(&object->made, object->key, sim_key_size(object));
	if (object->mapping) {
		map->version = sim_knob(dma_mapping_version);
		map->entries -= sim_knob(dma_entries_short);
	} else {
		table->version = sim_knob(page_table_version);
		table->page_size = sim_knob(page_size);
	}
	if (sim_knob(verify))
		object->hash = sim_object_hash(object);
}

/* Checks that a client has not written to an object. The API lock keeps the object from ending. */
void sim_object_check(struct sim_object *object, const char *where)
{
	if (!object->hash || object->hash == sim_object_hash(object))
		return;
	sim_violation(object->mapping ? "mapping_modified" : "table_modified",
		      "%p has been changed by its client, seen in %s", object->key, where);
	object->hash = 0;
}

/*
 * Restores the data of an object before NVIDIA's code reads them for the last time and frees the
 * object.
 */
void sim_object_hand_back(struct sim_object *object, const char *where)
{
	sim_object_check(object, where);
	memcpy(object->key, &object->made, sim_key_size(object));
}

/* ---- the quarantine ------------------------------------------------------ */

static void sim_object_inspect(const struct sim_object *object)
{
	const struct sim_block *block = object->blocks;
	bool written = object->first &&
		       memchr_inv(object->first->data, SIM_POISON, object->first->size);

	for (; block && !written; block = block->next)
		written = memchr_inv(block->data, SIM_POISON, block->size);
	if (written)
		sim_violation("write_after_free", "%s %p was written to after it had been freed",
			      object->mapping ? "DMA mapping" : "page table", object->key);
}

/* Frees the oldest objects of the quarantine beyond @max. gpu.lock is held. */
static void sim_evict(u32 max)
{
	struct sim_object *object;

	while (sim_gpu.ndead > max) {
		object = list_first_entry(&sim_gpu.dead, struct sim_object, node);
		list_del_init(&object->node);
		sim_gpu.ndead--;
		sim_gpu.evicted = true;
		sim_object_inspect(object);
		sim_object_put(object);
	}
}

void sim_quarantine_trim(u32 max)
{
	guard(mutex)(&sim_gpu.lock);
	sim_evict(max);
}

/* Poisons an object that NVIDIA's code does not free. */
void sim_object_poison(struct sim_object *object)
{
	struct sim_block *block = object->blocks;

	for (; block; block = block->next)
		memset(block->data, SIM_POISON, block->size);
	if (object->first)
		memset(object->first->data, SIM_POISON, object->first->size);
}

/* Moves a dead object to the quarantine. */
void sim_object_bury(struct sim_object *object)
{
	guard(mutex)(&sim_gpu.lock);
	if (object->mapping)
		list_del_init(&container_of(object, struct sim_mapping, object)->on_pin);
	if (!sim_knob(quarantine_max)) {
		list_del_init(&object->node);
		sim_gpu.evicted = true;
		sim_object_put(object);
		return;
	}
	list_move_tail(&object->node, &sim_gpu.dead);
	sim_gpu.ndead++;
	sim_evict(sim_knob(quarantine_max));
}

/*
 * Returns a reference to the object with this key. If there is none, returns the last object that
 * had this key. The search begins with the newest object, because a client that has many objects
 * usually names a new one.
 */
struct sim_object *sim_object_find(const void *key, bool mapping)
{
	struct sim_object *object;

	guard(mutex)(&sim_gpu.lock);
	list_for_each_entry_reverse(object, &sim_gpu.live, node)
		if (object->key == key && object->mapping == mapping)
			goto found;
	list_for_each_entry_reverse(object, &sim_gpu.dead, node)
		if (object->key == key && object->mapping == mapping)
			goto found;
	return NULL;
found:
	kref_get(&object->ref);
	return object;
}
