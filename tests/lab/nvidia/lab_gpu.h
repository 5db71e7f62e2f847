/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a test program says to the simulated GPU through /dev/nvidia-lab.
 *
 * It stands for the few calls of the CUDA driver API that matter here:
 *
 *   allocate  mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, where)
 *             "where" is the offset in the GPU's memory at which the allocation
 *             starts; a multiple of LAB_GPU_PAGE_SIZE. The address that comes
 *             back is the GPU virtual address. The descriptor may be closed.
 *             With PROT_NONE only the GPU knows the address: each access of the CPU
 *             is SIGSEGV. /proc/self/mem is the copy engine.
 *             Instead of an offset: LAB_GPU_ANYWHERE, where there is room.
 *             Added to either: LAB_GPU_NO_P2P, which cannot be pinned.
 *   free      munmap() of the whole mapping, exit, or LAB_GPU_FREE, which
 *             frees the memory under a mapping that stays: touching it after
 *             that is SIGBUS.
 *   export    LAB_GPU_EXPORT: a descriptor of a dma-buf, which keeps the memory
 *             until the last descriptor is closed.
 *
 * Usable from user space and by bindgen; no structure has holes.
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
	 * addresses, but no memory behind them. For measuring what a
	 * registration costs; whoever touches it gets SIGBUS, and nothing must
	 * be transferred to or from it.
	 */
	LAB_GPU_UNBACKED = 0x80000000000,
};

#define LAB_GPU_ANYWHERE	0x10000000000
#define LAB_GPU_NO_P2P		0x40000000000

/**
 * struct lab_gpu_address - which allocation is meant
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
	/* 0x40084701. EINVAL: not memory of this process. */
	LAB_GPU_FREE = _IOW('G', 1, struct lab_gpu_address),
	/* 0x40084702. How many there are, of either kind. EINVAL: as above. */
	LAB_GPU_PINS = _IOW('G', 2, struct lab_gpu_address),
	/* 0x4703. Waits for one free that this thread is to inject, and does it. */
	LAB_GPU_INJECTOR = _IO('G', 3),
	/* 0x40104704. A new descriptor. EINVAL: not such memory of this process. */
	LAB_GPU_EXPORT = _IOW('G', 4, struct lab_gpu_range),
};

#endif
