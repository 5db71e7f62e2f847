/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The calls of test programs to the simulated GPU, through /dev/nvidia-lab.
 *
 * They stand for the few calls of the CUDA driver API that matter here:
 *
 *   allocate  mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, where)
 *             "where" is the offset in the GPU's memory at which the allocation
 *             starts; a multiple of LAB_GPU_PAGE_SIZE. The address that comes
 *             back is the GPU virtual address. The descriptor may be closed.
 *             With PROT_NONE only the GPU knows the address: an access of the CPU
 *             causes SIGSEGV. /proc/self/mem is the copy engine.
 *             LAB_GPU_ANYWHERE instead of an offset takes the first free room.
 *             LAB_GPU_NO_P2P, added to either, makes memory that cannot be pinned.
 *   free      munmap() of the whole mapping, exit, or LAB_GPU_FREE, which
 *             frees the memory under a mapping that stays: a later access
 *             causes SIGBUS.
 *   export    LAB_GPU_EXPORT: a descriptor of a dma-buf, which keeps the memory
 *             until the last descriptor is closed.
 *
 * User space and bindgen also read this header, so no structure has holes.
 */
#ifndef LAB_GPU_H
#define LAB_GPU_H

#include <linux/ioctl.h>
#include <linux/types.h>

enum {
	LAB_GPU_PAGE_SIZE = 0x10000,
};

enum {
	/*
	 * As "where": an allocation of any size up to 128 GiB that has bus
	 * addresses, but no memory behind them. It is for measuring the cost
	 * of a registration: an access causes SIGBUS, and nothing must be
	 * transferred to or from it.
	 */
	LAB_GPU_UNBACKED = 0x80000000000,
};

#define LAB_GPU_ANYWHERE	0x10000000000
#define LAB_GPU_NO_P2P		0x40000000000

/**
 * struct lab_gpu_address - names an allocation
 * @addr: any address inside, in the process that called mmap()
 */
struct lab_gpu_address {
	__u64 addr;
};

/**
 * struct lab_gpu_range - a part of one allocation
 * @addr: its beginning, in the process that called mmap()
 * @size: both are multiples of the CPU's page size
 */
struct lab_gpu_range {
	__u64 addr;
	__u64 size;
};

/* An enum has these constants, because bindgen cannot evaluate macros. */
enum {
	/* 0x40084701. Fails with EINVAL if the memory is not of this process. */
	LAB_GPU_FREE = _IOW('G', 1, struct lab_gpu_address),
	/* 0x40084702. Returns the number of pins, of both kinds. EINVAL as above. */
	LAB_GPU_PINS = _IOW('G', 2, struct lab_gpu_address),
	/* 0x4703. Waits for one free that this thread is to inject, and does it. */
	LAB_GPU_INJECTOR = _IO('G', 3),
	/* 0x40104704. Returns a new descriptor. EINVAL as above, or for a wrong range. */
	LAB_GPU_EXPORT = _IOW('G', 4, struct lab_gpu_range),
};

#endif
