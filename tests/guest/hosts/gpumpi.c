// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gpumpi FILE HOLD LENGTH... - moves GPU memory between two ranks of an MPI job
 *
 * For each LENGTH, the program moves LENGTH bytes of FILE from rank 0 to rank 1 and back. It moves
 * the bytes first as messages, and then by one-sided operations. Every buffer is GPU memory that
 * the CPU cannot access, so its bytes must have come from an RDMA device. If there is a libcuda,
 * CUDA allocates the memory. At the end each rank makes the file HOLD, and waits until the scenario
 * has looked at the memory and removed HOLD.
 *
 * Slot n of a rank is at n * 8 MiB in its GPU:
 *
 *	rank 0: 0 the source                   1 the bytes that came back
 *	        2 the bytes that MPI_Get fetched
 *	rank 1: 0 the bytes that MPI_Send brought   1 the bytes that MPI_Put brought
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SLOTS 3
#define SLOT (8 << 20)

static int rank;
static char *slots;

static char *slot(int n)
{
	return slots + (size_t)n * SLOT;
}

/* Sets which accesses of the CPU to the slots are allowed. */
static void allow(int rights)
{
	if (mprotect(slots, SLOTS * SLOT, rights))
		abort();
}

static void messages(int length)
{
	if (rank == 0)
		MPI_Send(slot(0), length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	MPI_Recv(slot(!rank), length, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(slot(0), length, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void one_sided(int length)
{
	MPI_Win window;

	MPI_Win_create(slot(1), length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	if (rank == 0)
		MPI_Put(slot(0), length, MPI_BYTE, 1, 0, length, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	if (rank == 0)
		MPI_Get(slot(2), length, MPI_BYTE, 1, 0, length, MPI_BYTE, window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

/* Allocates GPU memory for all slots. */
static void *gpu_memory(size_t size)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	int fd = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	int (*init)(unsigned int flags);
	int (*create)(void **context, unsigned int flags, int device);
	int (*alloc)(unsigned long long *address, size_t size);
	unsigned long long address;
	void *context;

	if (!cuda)
		return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	init = dlsym(cuda, "cuInit");
	create = dlsym(cuda, "cuCtxCreate_v2");
	alloc = dlsym(cuda, "cuMemAlloc_v2");
	if (init(0) || create(&context, 0, 0) || alloc(&address, size))
		return MAP_FAILED;
	return (void *)address;
}

int main(int argc, char **argv)
{
	int i, length, from;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	slots = gpu_memory(SLOTS * SLOT);
	if (slots == MAP_FAILED)
		abort();
	for (i = 3; i < argc; i++) {
		length = atoi(argv[i]);
		allow(PROT_READ | PROT_WRITE);
		memset(slots, 0xa5, SLOTS * SLOT);
		from = open(argv[1], O_RDONLY | O_CLOEXEC);
		if (rank == 0 && read(from, slot(0), length) != length)
			abort();
		close(from);
		allow(PROT_NONE);
		messages(length);
		one_sided(length);
		MPI_Barrier(MPI_COMM_WORLD);
		if (close(creat(argv[2], 0644)))
			abort();
		while (access(argv[2], F_OK) == 0)
			usleep(10000);
	}
	MPI_Finalize();
	return 0;
}
