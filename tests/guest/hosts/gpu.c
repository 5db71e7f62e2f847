// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of the simulated GPU (lab_gpu.h), and what is put into it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gpu.h"
#include "lab_gpu.h"

void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static size_t rounded(size_t length)
{
	return (length + LAB_GPU_PAGE_SIZE - 1) / LAB_GPU_PAGE_SIZE *
	       LAB_GPU_PAGE_SIZE;
}

void *gpu_alloc(off_t offset, size_t length)
{
	int fd = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	void *memory;

	if (fd < 0)
		die("opening the GPU");
	memory = mmap(NULL, rounded(length), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, offset);
	if (memory == MAP_FAILED)
		die("allocating GPU memory");
	close(fd);
	return memory;
}

void gpu_free(void *memory, size_t length)
{
	if (munmap(memory, rounded(length)))
		die("freeing GPU memory");
}

void gpu_hide(void *memory, size_t length)
{
	if (mprotect(memory, rounded(length), PROT_NONE))
		die("taking GPU memory from the CPU");
}

void gpu_show(void *memory, size_t length)
{
	if (mprotect(memory, rounded(length), PROT_READ | PROT_WRITE))
		die("giving GPU memory back to the CPU");
}

void pattern_put(void *memory, size_t length, uint64_t seed)
{
	uint64_t state = seed ^ 0x9e3779b97f4a7c15;
	unsigned char *to = memory;
	uint64_t word;
	size_t n;

	if (!state)
		state = 0x9e3779b97f4a7c15;
	for (; length; to += n, length -= n) {
		state ^= state >> 12;
		state ^= state << 25;
		state ^= state >> 27;
		word = state * 0x2545f4914f6cdd1d;
		n = length < sizeof(word) ? length : sizeof(word);
		memcpy(to, &word, n);
	}
}

void poison(void *memory, size_t length)
{
	memset(memory, 0xa5, rounded(length));
}

void hold(const char *file)
{
	int fd = open(file, O_CREAT | O_EXCL | O_WRONLY, 0644);

	if (fd < 0)
		die(file);
	close(fd);
	while (access(file, F_OK) == 0)
		usleep(10000);
}
