// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls the functions of clients. Counts each call, and checks after the call whether the client
 * has broken a rule.
 */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "peer_server.h"

/* The largest errno that user space knows a name for. */
#define PEER_MAX_ERRNO EHWPOISON

/* The value of the context before acquire. A client that claims memory must change it. */
#define PEER_CONTEXT_POISON ((void *)0x5eed0fc0ffee0bad)

/* A call that is under way. The record is on the caller's stack. */
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
		peer_violation(call->client, "context_leak",
			       "%s came back atomic or with a lock more or less",
			       peer_op_name(call->op));
}

/*
 * Makes a call. The value of the macro is the answer. An operation without an answer is written as
 * (operation(...), 0).
 */
#define peer_call(_client, _umem, _op, _answer)				\
({									\
	struct peer_call call = { .client = (_client), .umem = (_umem),	\
				  .op = PEER_OP_##_op };		\
	typeof(_answer) answer;						\
									\
	peer_call_begin(&call);						\
	answer = (_answer);						\
	peer_call_end(&call);						\
	answer;								\
})

/* Tells whether this task is inside a call for the region @p, or for any region if @p is NULL. */
bool peer_in_call(struct peer_umem *p)
{
	struct peer_call *call;
	bool found = false;

	spin_lock(&peer_calls_lock);
	list_for_each_entry(call, &peer_calls, entry)
		found |= call->task == current && (!p || call->umem == p);
	spin_unlock(&peer_calls_lock);
	return found;
}

/* Shows the tasks that are inside a call to a client now. */
int peer_show_calls(struct seq_file *m)
{
	struct peer_call *call;

	spin_lock(&peer_calls_lock);
	list_for_each_entry(call, &peer_calls, entry)
		seq_printf(m, "%s %s %s[%d]\n", call->client->ops->name,
			   peer_op_name(call->op), call->task->comm, call->task->pid);
	spin_unlock(&peer_calls_lock);
	return 0;
}

/* Checks a client's answer. Returns zero or an errno, even if the answer is neither. */
static int peer_check_errno(struct peer_umem *p, enum peer_op op, int ret)
{
	if (!ret || (ret < 0 && ret >= -PEER_MAX_ERRNO))
		return ret;
	peer_violation(p->client, "bad_return",
		       "%s returned %d, which is no errno for user space",
		       peer_op_name(op), ret);
	return -EIO;
}

int peer_call_acquire(struct peer_client *client, unsigned long addr,
		      size_t size, void **context)
{
	int ret;

	*context = PEER_CONTEXT_POISON;
	ret = peer_call(client, NULL, acquire,
			client->ops->acquire(addr, size, NULL, NULL, context));
	if (ret <= 0)
		return 0;
	if (!*context || *context == PEER_CONTEXT_POISON) {
		peer_violation(client, "no_context",
			       "acquire returned %d and stored no context", ret);
		return 0;
	}
	peer_count(PEER_live_contexts, 1);
	return 1;
}

/* Counts a region as live or not live. Only the first of several callers changes the counter. */
void peer_set_live(struct peer_umem *p, enum peer_counter which, bool live)
{
	if (live && !test_and_set_bit(which, &p->live))
		peer_count(which, 1);
	else if (!live && test_and_clear_bit(which, &p->live))
		peer_count(which, -1);
}

/*
 * Checks the locks while a client sets the region up. In G2 no lock must be held. In later
 * generations, the region's lock must be held.
 */
static void peer_assert_setup(struct peer_umem *p)
{
	if (peer_is_g2(p->client))
		lockdep_assert_not_held(&p->client->lock.mutex);
	else
		lockdep_assert_held(&p->lock.mutex);
}

int peer_call_get_pages(struct peer_umem *p)
{
	struct ib_umem *umem = p->umem;
	bool g2 = peer_is_g2(p->client);
	u64 ticket = p->id;
	int ret;

	peer_assert_setup(p);
	if (p->id == PEER_NO_ID)
		ticket = g2 ? 0 : PEER_NO_TICKET;
	ret = peer_call(p->client, p, get_pages,
			p->client->ops->get_pages(umem->address, umem->length, 1,
						  !umem->writable, g2 ? &p->table : NULL,
						  p->context, ticket));
	ret = peer_check_errno(p, PEER_OP_get_pages, ret);
	if (!ret)
		peer_set_live(p, PEER_live_got, true);
	return ret;
}

int peer_call_dma_map(struct peer_umem *p)
{
	/* Cores from G3B on do not have a separate number of entries. */
	bool separate = p->client->generation < PEER_G3B;
	int *nmap = separate ? &p->nmap : (int *)&p->table.nents;
	int ret;

	peer_assert_setup(p);
	ret = peer_call(p->client, p, dma_map,
			p->client->ops->dma_map(&p->table, p->context, p->dma_device, 0, nmap));
	ret = peer_check_errno(p, PEER_OP_dma_map, ret);
	if (ret)
		return ret;
	p->nmap = *nmap;
	peer_set_live(p, PEER_live_mapped, true);
	return 0;
}

unsigned long peer_call_get_page_size(struct peer_umem *p)
{
	peer_assert_setup(p);
	return peer_call(p->client, p, get_page_size,
			 p->client->ops->get_page_size(p->context));
}

void peer_call_dma_unmap(struct peer_umem *p)
{
	int ret = peer_call(p->client, p, dma_unmap,
			    p->client->ops->dma_unmap(&p->table, p->context, p->dma_device));

	peer_set_live(p, PEER_live_mapped, false);
	if (ret)
		peer_violation(p->client, "bad_return", "dma_unmap returned %d", ret);
}

void peer_call_put_pages(struct peer_umem *p)
{
	peer_call(p->client, p, put_pages,
		  (p->client->ops->put_pages(&p->table, p->context), 0));
	peer_set_live(p, PEER_live_got, false);
}

void peer_call_release(struct peer_client *client, void *context)
{
	if (client->ops->release)
		peer_call(client, NULL, release, (client->ops->release(context), 0));
	peer_count(PEER_live_contexts, -1);
}
