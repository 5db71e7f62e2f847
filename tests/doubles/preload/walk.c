// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library that records each walk through the list of objects as an event. With WAIT=N, the
 * first walk outside of the main thread waits until another thread walks, but at most N seconds. With
 * HOLD=N, that walk stays N milliseconds at the first object of the list, and the list is locked.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doubles.h"

typedef int (*callback)(struct dl_phdr_info *info, size_t size, void *data);

struct walk {
	callback show;
	void *data;
};

/* Returns whether this is the first walk outside of the main thread. */
static bool is_first(void)
{
	static atomic_int walks;

	return syscall(SYS_gettid) != getpid() && !walks++;
}

/* A program can wait until this walk holds the list. */
atomic_bool walk_is_held;

static int shown(struct dl_phdr_info *info, size_t size, void *data)
{
	struct walk *walk = data;

	if (told("HOLD") && is_first()) {
		walk_is_held = true;
		usleep(1000 * told("HOLD"));
	}
	return walk->show(info, size, walk->data);
}

static void wait_in_the_first(void)
{
	static atomic_int walks;

	if (walks++)
		return;
	for (int tenths = 10 * told("WAIT"); tenths && walks == 1; tenths--)
		usleep(100000);
	event("waited %s\n", walks > 1 ? "for another" : "in vain");
}

int dl_iterate_phdr(callback show, void *data)
{
	/*
	 * The function is looked up before there are threads, because dlsym() would wait for a
	 * thread that is inside dlopen().
	 */
	static int (*next)(callback show, void *data);
	struct walk walk = { show, data };

	if (!next)
		next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	event("walk\n");
	if (told("WAIT") && syscall(SYS_gettid) != getpid())
		wait_in_the_first();
	return next(shown, &walk);
}
