// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * verbs-steps - registrations of GPU memory, one step at a time.
 *
 * Reads a step from each line of its input, takes it, and answers with a line:
 * "ok", or the name of the errno. What a scenario needs to meet a defect is
 * here: memory that outlives its registration, a second thread, a child.
 *
 *   alloc SLOT OFFSET SIZE   allocate GPU memory at OFFSET of the BAR
 *   free SLOT                free it, registered or not
 *   reg SLOT [NTH]           register it; the NTH allocation of memory that the
 *                            kernel makes meanwhile fails; if there were fewer,
 *                            the answer is how many: "after N"
 *   dereg SLOT               end the registration
 *   & STEP                   take STEP in a thread, answer at once
 *   join                     wait for that thread; the answer is its step's
 *   child STEP               take STEP in a child that inherits all descriptors
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
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

static int step_alloc(int slot, const char *args)
{
	unsigned long long offset, size;

	if (sscanf(args, "%lli %lli", (long long *)&offset, (long long *)&size) != 2)
		return -EINVAL;
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

/* The NTH allocation from now fails, in this thread; 0 is the end of that. */
static void fail_nth(int fd, int nth)
{
	if (dprintf(fd, "%d", nth) < 0) {
		perror("fail-nth");
		exit(1);
	}
}

/* How many allocations were left to make; 0 when one has failed. */
static int fail_nth_left(int fd)
{
	char text[16] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? atoi(text) : 0;
}

static int step_reg(int slot, const char *args)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ;
	int fd, nth = atoi(args), left = 0, err;

	if (!nth) {
		slots[slot].mr = ibv_reg_mr(pd, slots[slot].addr,
					    slots[slot].size, access);
		return slots[slot].mr ? 0 : -errno;
	}
	fd = open("/proc/thread-self/fail-nth", O_RDWR);
	fail_nth(fd, nth);
	slots[slot].mr = ibv_reg_mr(pd, slots[slot].addr, slots[slot].size, access);
	err = slots[slot].mr ? 0 : -errno;
	left = fail_nth_left(fd);
	fail_nth(fd, 0);
	close(fd);
	return !err && left ? nth - left : err;
}

static int take(const char *step)
{
	char verb[16];
	int slot, rest;

	if (sscanf(step, "%15s %d%n", verb, &slot, &rest) < 2 || slot < 0 || slot >= SLOTS)
		return -EINVAL;
	if (!strcmp(verb, "alloc"))
		return step_alloc(slot, step + rest);
	if (!strcmp(verb, "free"))
		return step_free(slot);
	if (!strcmp(verb, "reg"))
		return step_reg(slot, step + rest);
	if (!strcmp(verb, "dereg"))
		return -ibv_dereg_mr(slots[slot].mr);
	return -EINVAL;
}

static int take_in_child(const char *step)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(-take(step));
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
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
	if (!strncmp(line, "child ", 6))
		return take_in_child(line + 6);
	if (!strncmp(line, "join", 4))
		return join_thread();
	return take(line);
}

static void open_devices(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context;

	gpu = open("/dev/nvidia-lab", O_RDWR);
	context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (gpu < 0 || !pd) {
		fprintf(stderr, "verbs-steps: no %s\n", gpu < 0 ? "GPU" : "RDMA device");
		exit(1);
	}
}

int main(void)
{
	char *line = NULL;
	size_t size = 0;
	int err;

	open_devices();
	setlinebuf(stdout);
	while (getline(&line, &size, stdin) > 0) {
		err = command(line);
		if (err > 0)
			printf("after %d\n", err);
		else
			printf("%s\n", err ? strerrorname_np(-err) : "ok");
	}
	return 0;
}
