// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library that adds a thread to any program. The thread frees GPU memory when an injected free is
 * due. inject.c decides whether that is memory of the program or of another process.
 *
 *	LD_PRELOAD=/usr/local/lib/lab-injector.so gpuverbs register ...
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "lab_gpu.h"

static void *free_where_told(void *fd)
{
	while (!ioctl((int)(long)fd, LAB_GPU_INJECTOR))
		;
	return NULL;
}

__attribute__((constructor)) static void start(void)
{
	int fd = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	pthread_t thread;

	if (fd < 0 || pthread_create(&thread, NULL, free_where_told, (void *)(long)fd)) {
		perror("lab-injector: no thread for injected frees");
		exit(1);
	}
}
