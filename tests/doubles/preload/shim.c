// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A preloaded library that counts commands of the RDMA core, and passes all calls of ioctl() on to the
 * next library.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "doubles.h"
#include "uverbs.h"

int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int fd, unsigned long request, ...) = dlsym(RTLD_NEXT, "ioctl");
	va_list arguments;
	void *argument;
	int answer;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	answer = next(fd, request, argument);
	if (request == RDMA_VERBS_IOCTL)
		event("shim %s\n", answer ? "failed" : "registered");
	return answer;
}
