// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library with functions of the C library that behave as on another system. In the
 * environment:
 *
 *	PAGE_SIZE=N		pages have this size
 *	EVENTFD_ERRNO=N		eventfd() fails with this number
 *	LINKS=1			each link that syscall() reads is an event
 *	CLOCK_AHEAD=N		time() returns a time that is N seconds later. A program sees the same
 *				if the clock is set back by N seconds after the call
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "doubles.h"

long syscall(long number, ...)
{
	static long (*next)(long number, ...);
	long words[6];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(arguments, long);
	va_end(arguments);
	if (!next)
		next = dlsym(RTLD_NEXT, "syscall");
	if (number == SYS_readlinkat && told("LINKS"))
		event("link\n");
	return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int getpagesize(void)
{
	return told("PAGE_SIZE") ? told("PAGE_SIZE") : 4096;
}

int eventfd(unsigned int value, int flags)
{
	if (told("EVENTFD_ERRNO")) {
		errno = told("EVENTFD_ERRNO");
		return -1;
	}
	return syscall(SYS_eventfd2, value, flags);
}

time_t time(time_t *also_here)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	now.tv_sec += told("CLOCK_AHEAD");
	if (also_here)
		*also_here = now.tv_sec;
	return now.tv_sec;
}
