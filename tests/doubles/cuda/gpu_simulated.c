// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The simulated GPU of a guest. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "gpu.h"
#include "lab_gpu.h"

/* Some programs take the number of a GPU for its device, as both are equal in NVIDIA's library. */
const CUdevice gpu_first;

static int driver = -1;

int gpu_find(unsigned int pci[GPUS][4])
{
	glob_t found;

	if (glob("/sys/bus/pci/drivers/nvidia/*:*:*.*", 0, NULL, &found))
		return 0;
	if (sscanf(strrchr(found.gl_pathv[0], '/'), "/%x:%x:%x.%x", pci[0], pci[0] + 1, pci[0] + 2,
		   pci[0] + 3) == 4)
		driver = open("/dev/nvidia-lab", O_RDWR | O_CLOEXEC);
	globfree(&found);
	return driver >= 0;
}

void *gpu_map(void *address, size_t size, int properties)
{
	int access = properties & GPU_CPU ? PROT_READ | PROT_WRITE : PROT_NONE;
	off_t where = LAB_GPU_ANYWHERE + (properties & GPU_NO_P2P ? LAB_GPU_NO_P2P : 0);

	return mmap(address, size, access, MAP_SHARED | MAP_FIXED_NOREPLACE, driver, where);
}

int gpu_export(CUdeviceptr address, size_t size)
{
	struct lab_gpu_range range = { address, size };

	return ioctl(driver, LAB_GPU_EXPORT, &range);
}
