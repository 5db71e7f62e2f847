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
 *             With PROT_NONE only the GPU knows the address: whatever the CPU
 *             does there is SIGSEGV.
 *             Instead of an offset: LAB_GPU_ANYWHERE, where there is room.
 *             Added to an offset: LAB_GPU_AGAIN, a further address of the
 *             memory of this process that starts there; the memory goes with
 *             the last address. Added to either: LAB_GPU_NO_P2P, which nobody
 *             may pin.
 *   free      munmap() of the whole mapping, exit, or LAB_GPU_FREE, which
 *             frees the memory under a mapping that stays: touching it after
 *             that is SIGBUS.
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
#define LAB_GPU_AGAIN		0x20000000000
#define LAB_GPU_NO_P2P		0x40000000000

/**
 * struct lab_gpu_free - free an allocation
 * @addr: the address that mmap() returned, in the process that called it
 */
struct lab_gpu_free {
	__u64 addr;
};

/**
 * struct lab_gpu_query - what lies behind an address
 * @addr: in: any address inside an allocation of this process
 * @index: in: which 64 KiB page of the allocation is meant, from 0
 * @start: out: first address of the allocation
 * @size: out: its size in bytes, a multiple of LAB_GPU_PAGE_SIZE
 * @bar_offset: out: where page @index lies in the GPU's memory
 * @pins: out: revocable pins of the allocation
 * @persistent_pins: out: persistent pins of the allocation
 */
struct lab_gpu_query {
	__u64 addr;
	__u64 index;
	__u64 start;
	__u64 size;
	__u64 bar_offset;
	__u32 pins;
	__u32 persistent_pins;
};

/**
 * struct lab_gpu_copy - what the copy engine of a GPU does
 * @to: where to, GPU memory of this process or memory of the CPU
 * @from: where from, likewise
 * @size: how many bytes; 4 or 8 that are aligned are moved as one
 */
struct lab_gpu_copy {
	__u64 to;
	__u64 from;
	__u64 size;
};

/* Constants of an enum, so that bindgen can see their values. */
enum {
	/* 0x40084701. EINVAL: no allocation of this process starts there. */
	LAB_GPU_FREE = _IOW('G', 1, struct lab_gpu_free),
	/* 0xc0304702. EINVAL: not memory of this process; ERANGE: index. */
	LAB_GPU_QUERY = _IOWR('G', 2, struct lab_gpu_query),
	/* 0x4703. Waits for one free that this thread is to inject, and does it. */
	LAB_GPU_INJECTOR = _IO('G', 3),
	/* 0x40184704. EFAULT: not all of it is memory that is there. */
	LAB_GPU_COPY = _IOW('G', 4, struct lab_gpu_copy),
};

#endif
