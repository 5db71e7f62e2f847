// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls into a client: each is counted, and looked at afterwards for
 * what a client must not do in it.
 */
#include <linux/bitops.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/timex.h>
#include <rdma/ib_umem.h>

#include "peer_server.h"

/* The largest errno that user space knows a name for. */
#define PEER_MAX_ERRNO EHWPOISON

/* What a context must not be after acquire: what it was before. */
#define PEER_CONTEXT_POISON ((void *)0x5eed0fc0ffee0bad)

/* One call under way; lives on the caller's stack. */
struct peer_call {
	struct list_head entry;
	struct task_struct *task;
	struct peer_client *client;
	struct peer_umem *umem;
	enum peer_op op;
	int preempt;
	int locks;
	u64 began;
};

static DEFINE_SPINLOCK(peer_calls_lock);
static LIST_HEAD(peer_calls);

static void peer_call_begin(struct peer_call *call)
{
	call->task = current;
	call->preempt = preempt_count();
	call->locks = lockdep_depth(current);
	spin_lock(&peer_calls_lock);
	list_add(&call->entry, &peer_calls);
	spin_unlock(&peer_calls_lock);
	call->began = get_cycles();
}

static void peer_call_end(struct peer_call *call)
{
	peer_clock(call->op, get_cycles() - call->began);
	spin_lock(&peer_calls_lock);
	list_del(&call->entry);
	spin_unlock(&peer_calls_lock);
	if (preempt_count() != call->preempt || irqs_disabled() ||
	    lockdep_depth(current) != call->locks)
		peer_violation(call->client, PEER_CONTEXT_LEAK,
			       "%s came back atomic or with a lock more or less",
			       peer_op_name(call->op));
}

/* Whether this task is inside a call: one for the region, or any. */
bool peer_in_call(struct peer_umem *p)
{
	struct peer_call *call;
	bool found = false;

	spin_lock(&peer_calls_lock);
	list_for_each_entry(call, &peer_calls, entry)
		if (call->task == current && (!p || call->umem == p))
			found = true;
	spin_unlock(&peer_calls_lock);
	return found;
}

/* Who is in the client for the region, for a message. */
bool peer_describe_call(struct peer_umem *p, char *text, size_t size)
{
	struct peer_call *call;
	bool found = false;

	spin_lock(&peer_calls_lock);
	list_for_each_entry(call, &peer_calls, entry) {
		if (call->umem != p)
			continue;
		snprintf(text, size, "%s of %s[%d]", peer_op_name(call->op),
			 call->task->comm, call->task->pid);
		found = true;
		break;
	}
	spin_unlock(&peer_calls_lock);
	return found;
}

/* Who is in a client now. */
void peer_show_calls(struct seq_file *m)
{
	struct peer_call *call;

	spin_lock(&peer_calls_lock);
	list_for_each_entry(call, &peer_calls, entry)
		seq_printf(m, "%s %s %s[%d]\n", call->client->ops->name,
			   peer_op_name(call->op), call->task->comm, call->task->pid);
	spin_unlock(&peer_calls_lock);
}

/* Zero or an errno, whatever the client said. */
static int peer_check_errno(const struct peer_call *call, int ret)
{
	if (!ret || (ret < 0 && ret >= -PEER_MAX_ERRNO))
		return ret;
	peer_violation(call->client, PEER_BAD_RETURN,
		       "%s returned %d, which is no errno for user space",
		       peer_op_name(call->op), ret);
	return -EIO;
}

static void peer_call_for(struct peer_call *call, struct peer_umem *p,
			  enum peer_op op)
{
	call->client = p->client;
	call->umem = p;
	call->op = op;
	peer_call_begin(call);
}

int peer_call_acquire(struct peer_client *client, unsigned long addr,
		      size_t size, void **context)
{
	struct peer_call call = { .client = client, .op = PEER_ACQUIRE };
	int ret;

	*context = PEER_CONTEXT_POISON;
	peer_call_begin(&call);
	ret = client->ops->acquire(addr, size, NULL, NULL, context);
	peer_call_end(&call);
	if (ret <= 0)
		return 0;
	if (!*context || *context == PEER_CONTEXT_POISON) {
		peer_violation(client, PEER_NO_CONTEXT,
			       "acquire returned %d and stored no context", ret);
		return 0;
	}
	peer_count(PEER_LIVE_CONTEXTS, 1);
	return 1;
}

/* Counts a region among the live ones, or no longer: once, whoever comes first. */
void peer_set_live(struct peer_umem *p, enum peer_counter which, bool live)
{
	if (live && !test_and_set_bit(which, &p->live))
		peer_count(which, 1);
	else if (!live && test_and_clear_bit(which, &p->live))
		peer_count(which, -1);
}

/* What is locked while a client sets a region up: its lock, in G2 nothing. */
static void peer_assert_setup(struct peer_umem *p)
{
	if (peer_is_g2(p->client))
		lockdep_assert_not_held(&p->client->tickets_lock);
	else
		lockdep_assert_held(&p->mapping_lock);
}

int peer_call_get_pages(struct peer_umem *p)
{
	struct ib_umem *umem = p->umem;
	struct peer_call call;
	u64 ticket = p->id;
	int ret;

	peer_assert_setup(p);
	if (p->id == PEER_NO_ID)
		ticket = peer_is_g2(p->client) ? 0 : PEER_NO_TICKET;
	peer_call_for(&call, p, PEER_GET_PAGES);
	ret = p->client->ops->get_pages(umem->address, umem->length, 1, !umem->writable,
					peer_is_g2(p->client) ? &p->table : NULL,
					p->context, ticket);
	peer_call_end(&call);
	ret = peer_check_errno(&call, ret);
	if (!ret)
		peer_set_live(p, PEER_LIVE_GOT, true);
	return ret;
}

int peer_call_dma_map(struct peer_umem *p)
{
	/* Cores of today keep no number of their own. */
	bool separate = p->client->generation < PEER_G3B;
	int *nmap = separate ? &p->nmap : (int *)&p->table.nents;
	struct peer_call call;
	int ret;

	peer_assert_setup(p);
	peer_call_for(&call, p, PEER_DMA_MAP);
	ret = p->client->ops->dma_map(&p->table, p->context, p->dma_device, 0, nmap);
	peer_call_end(&call);
	ret = peer_check_errno(&call, ret);
	if (ret)
		return ret;
	p->nmap = *nmap;
	peer_set_live(p, PEER_LIVE_MAPPED, true);
	return 0;
}

unsigned long peer_call_get_page_size(struct peer_umem *p)
{
	struct peer_call call;
	unsigned long ret;

	peer_assert_setup(p);
	peer_call_for(&call, p, PEER_GET_PAGE_SIZE);
	ret = p->client->ops->get_page_size(p->context);
	peer_call_end(&call);
	return ret;
}

void peer_call_dma_unmap(struct peer_umem *p)
{
	struct peer_call call;
	int ret;

	peer_call_for(&call, p, PEER_DMA_UNMAP);
	ret = p->client->ops->dma_unmap(&p->table, p->context, p->dma_device);
	peer_call_end(&call);
	peer_set_live(p, PEER_LIVE_MAPPED, false);
	if (ret)
		peer_violation(p->client, PEER_BAD_RETURN,
			       "dma_unmap of region %llu returned %d", p->id, ret);
}

void peer_call_put_pages(struct peer_umem *p)
{
	struct peer_call call;

	peer_call_for(&call, p, PEER_PUT_PAGES);
	p->client->ops->put_pages(&p->table, p->context);
	peer_call_end(&call);
	peer_set_live(p, PEER_LIVE_GOT, false);
}

void peer_call_release(struct peer_client *client, void *context)
{
	struct peer_call call = { .client = client, .op = PEER_RELEASE };

	if (client->ops->release) {
		peer_call_begin(&call);
		client->ops->release(context);
		peer_call_end(&call);
	}
	peer_count(PEER_LIVE_CONTEXTS, -1);
}
