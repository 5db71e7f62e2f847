/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The CUDA runtime, as far as the lab's libcudart has it. */
#ifndef LAB_CUDA_RUNTIME_H
#define LAB_CUDA_RUNTIME_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Other errors are numbers of the driver (cuda.h). */
typedef enum cudaError {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorMemoryAllocation = 2,
	cudaErrorInitializationError = 3,
	cudaErrorInvalidMemcpyDirection = 21,
	cudaErrorNoDevice = 100,
	cudaErrorInvalidDevice = 101,
	cudaErrorNotSupported = 801,
	cudaErrorUnknown = 999,
} cudaError_t;

enum cudaMemcpyKind {
	cudaMemcpyHostToHost = 0,
	cudaMemcpyHostToDevice = 1,
	cudaMemcpyDeviceToHost = 2,
	cudaMemcpyDeviceToDevice = 3,
	cudaMemcpyDefault = 4,
};

cudaError_t cudaSetDevice(int device);
cudaError_t cudaMalloc(void **address, size_t size);
cudaError_t cudaFree(void *address);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaDeviceSynchronize(void);
const char *cudaGetErrorString(cudaError_t error);

#ifdef __cplusplus
}
#endif

#endif
