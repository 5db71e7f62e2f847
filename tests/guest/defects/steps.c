// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * verbs-steps - registrations of GPU memory, one step at a time.
 *
 * The program prints "ready", and then reads steps, one from each line of its input. It carries out
 * each step, and answers with a line, which is "ok" or the name of the errno. Scenarios use the
 * program to reproduce defects, because it can free memory before its registration ends, and can
 * use a second thread.
 *
 *   alloc SLOT OFFSET SIZE   allocate GPU memory at OFFSET of the BAR
 *   free SLOT                free it, registered or not
 *   reg SLOT                 register it
 *   dereg SLOT               end the registration
 *   & STEP                   take STEP in a thread, answer at once
 *   join                     wait for the thread, and answer with the result of its step
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab_gpu.h"

#define SLOTS 4
static struct {
	void *addr;
	size_t size;
	struct ibv_mr *mr;
} slots[SLOTS];

static int gpu;
static struct ibv_pd *pd;

static int step_alloc(int slot, long long offset, long long size)
{
	slots[slot].size = size;
	slots[slot].addr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
				gpu, offset);
	return slots[slot].addr == MAP_FAILED ? -errno : 0;
}

static int step_free(int slot)
{
	struct lab_gpu_address arg = { .addr = (unsigned long)slots[slot].addr };

	if (ioctl(gpu, LAB_GPU_FREE, &arg))
		return -errno;
	return munmap(slots[slot].addr, slots[slot].size) ? -errno : 0;
}

static int step_reg(int slot)
{
	slots[slot].mr = ibv_reg_mr(pd, slots[slot].addr, slots[slot].size,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ);
	return slots[slot].mr ? 0 : -errno;
}

static int take(const char *step)
{
	long long offset, size;
	char verb[16];
	int slot, words;

	words = sscanf(step, "%15s %d %lli %lli", verb, &slot, &offset, &size);
	if (words < 2 || slot < 0 || slot >= SLOTS)
		return -EINVAL;
	if (words == 4 && !strcmp(verb, "alloc"))
		return step_alloc(slot, offset, size);
	if (!strcmp(verb, "free"))
		return step_free(slot);
	if (!strcmp(verb, "reg"))
		return step_reg(slot);
	if (!strcmp(verb, "dereg"))
		return -ibv_dereg_mr(slots[slot].mr);
	return -EINVAL;
}

static char *other_step;
static pthread_t other;

static void *take_in_thread(void *unused)
{
	(void)unused;
	return (void *)(long)take(other_step);
}

static int start_thread(const char *step)
{
	free(other_step);
	other_step = strdup(step);
	return -pthread_create(&other, NULL, take_in_thread, NULL);
}

static int join_thread(void)
{
	void *result;
	int err = pthread_join(other, &result);

	return err ? -err : (int)(long)result;
}

static int command(const char *line)
{
	if (line[0] == '&')
		return start_thread(line + 1);
	if (!strncmp(line, "join", 4))
		return join_thread();
	return take(line);
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context;
	char *line = NULL;
	size_t size = 0;
	int err;

	gpu = open("/dev/nvidia-lab", O_RDWR);
	context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (gpu < 0 || !pd) {
		fprintf(stderr, "verbs-steps: no %s\n", gpu < 0 ? "GPU" : "RDMA device");
		return 1;
	}
	setlinebuf(stdout);
	puts("ready");
	while (getline(&line, &size, stdin) > 0) {
		err = command(line);
		printf("%s\n", err ? strerrorname_np(-err) : "ok");
	}
	return 0;
}
