// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * GPUs without a driver: GPUS=N is their number, which is 1 by default. Their memory is memory of
 * the process. A dma-buf is a file of the same size, whose name has the address of the memory.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"

/* A program that takes the number of a GPU for its device gets an error. */
const CUdevice gpu_first = 7;

/* A file that stands for /dev/nvidia-uvm, which CUDA keeps open. */
#define UVM	"/dev/shm/nvidia-uvm-double"

int gpu_find(unsigned int pci[GPUS][4])
{
	const char *number = getenv("GPUS");

	open(UVM, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	unlink(UVM);
	pci[0][1] = 0x03;
	pci[1][1] = 0x1a;
	if (!number)
		return 1;
	return atoi(number) < GPUS ? atoi(number) : GPUS;
}

void *gpu_map(void *address, size_t size, int properties)
{
	return mmap(address, size, properties & GPU_CPU ? PROT_READ | PROT_WRITE : PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

int gpu_export(CUdeviceptr address, size_t size)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "dma-buf of %#llx", address);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (!ftruncate(fd, size))
		return fd;
	close(fd);
	return -1;
}
