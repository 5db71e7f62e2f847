// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Preloaded, it stops a verbs program where it is done with its memory: before
 * the first deregistration. It makes the file that HOLD names, and goes on when
 * somebody has looked at the memory and removed that.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int (*real)(struct ibv_mr *mr) = dlsym(RTLD_NEXT, "ibv_dereg_mr");
	const char *file = getenv("HOLD");

	if (file && close(creat(file, 0644)))
		abort();
	while (file && access(file, F_OK) == 0)
		usleep(10000);
	unsetenv("HOLD");
	return real(mr);
}
