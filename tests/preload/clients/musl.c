// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A program that calls the functions that the preloaded library replaces, and fork(). */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int bytes;

	printf("%d\n", ioctl(0, FIONREAD, &bytes) ? errno : 0);
	printf("opened and %s\n", dlclose(dlopen(NULL, RTLD_NOW)) ? "not closed" : "closed");
	fflush(stdout);
	if (!fork()) {
		printf("child\n");
		return 0;
	}
	wait(NULL);
	return 0;
}
