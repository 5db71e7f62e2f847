/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program says to /dev/cpumap (cpumap.c).
 */
#ifndef CPUMAP_H
#define CPUMAP_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct cpumap_range - GPU memory of this process
 * @addr: its GPU virtual address
 * @size: its size in bytes; both are multiples of 64 KiB
 */
struct cpumap_range {
	__u64 addr;
	__u64 size;
};

/*
 * 0x40104d01. EBUSY: this descriptor has pinned something before. Otherwise what
 * the driver answers; EINVAL if the range is not memory of this process.
 */
#define CPUMAP_PIN	_IOW('M', 1, struct cpumap_range)

#endif
