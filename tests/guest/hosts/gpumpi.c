// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * gpumpi SEED HOLD LENGTH... - GPU memory between two ranks of an MPI job
 *
 * For each length a pattern goes from rank 0 to rank 1 and back as messages,
 * and then by one-sided operations. Every buffer is GPU memory that the CPU
 * cannot touch: what arrives in it came from an RDMA device. Then each rank
 * makes the file HOLD, and waits until somebody has looked and removes it.
 *
 * Slot n of a rank is at n * 8 MiB in its GPU:
 *
 *	rank 0: 0 the source  1 what came back  2 what MPI_Get fetched
 *	rank 1: 0 what came   1 what MPI_Put brought
 */
#include <mpi.h>
#include <stdlib.h>

#include "gpu.h"

#define SLOTS 3
#define SLOT (8 << 20)

static int rank;
static void *slot[SLOTS];

static void fill(int length, uint64_t seed)
{
	int i;

	for (i = 0; i < SLOTS; i++) {
		gpu_show(slot[i], SLOT);
		poison(slot[i], length);
	}
	if (rank == 0)
		pattern_put(slot[0], length, seed);
	for (i = 0; i < SLOTS; i++)
		gpu_hide(slot[i], SLOT);
}

static void messages(int length)
{
	if (rank == 0) {
		MPI_Send(slot[0], length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
		MPI_Recv(slot[1], length, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	} else {
		MPI_Recv(slot[0], length, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		MPI_Send(slot[0], length, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
	}
}

static void one_sided(int length)
{
	MPI_Win window;

	MPI_Win_create(slot[1], length, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &window);
	MPI_Win_fence(0, window);
	if (rank == 0)
		MPI_Put(slot[0], length, MPI_BYTE, 1, 0, length, MPI_BYTE,
			window);
	MPI_Win_fence(0, window);
	if (rank == 0)
		MPI_Get(slot[2], length, MPI_BYTE, 1, 0, length, MPI_BYTE,
			window);
	MPI_Win_fence(0, window);
	MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
	int i, length;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (i = 0; i < SLOTS; i++)
		slot[i] = gpu_alloc(i * SLOT, SLOT);
	for (i = 3; i < argc; i++) {
		length = atoi(argv[i]);
		fill(length, strtoull(argv[1], NULL, 0));
		messages(length);
		one_sided(length);
		MPI_Barrier(MPI_COMM_WORLD);
		hold(argv[2]);
	}
	for (i = 0; i < SLOTS; i++)
		gpu_free(slot[i], SLOT);
	MPI_Finalize();
	return 0;
}
