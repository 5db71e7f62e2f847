// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library to preload, which gives programs two files that a machine without
 * RDMA device and without nvidia_peermem does not have in /sys: the place of
 * the double's device on PCI ($PLACE), and with PEERMEM=1 the sign of the
 * module. The library is not a part of the double in verbs.c, because the
 * functions of the double have versions, and these must have none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *realpath(const char *path, char *resolved)
{
	char *(*real)(const char *, char *);
	const char *place = getenv("PLACE");

	if (place && strstr(path, "/infiniband/double0/device"))
		path = place;
	*(void **)&real = dlsym(RTLD_NEXT, "realpath");
	return real(path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	return realpath(path, resolved);
}

int access(const char *path, int mode)
{
	int (*real)(const char *, int);

	if (getenv("PEERMEM") && !strcmp(path, "/sys/module/nvidia_peermem/version"))
		return 0;
	*(void **)&real = dlsym(RTLD_NEXT, "access");
	return real(path, mode);
}
