/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_DRIVER_GREEN_H
#define FRAGI_CUDA_DRIVER_GREEN_H

/*
 * The types of green contexts, as in driver_abi.h, also for builds with a toolkit that is older
 * than they are.
 */
#if !defined(CUDA_VERSION) || CUDA_VERSION < 12040
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

typedef enum {
	CU_DEV_RESOURCE_TYPE_INVALID = 0,
	CU_DEV_RESOURCE_TYPE_SM = 1,
} CUdevResourceType;

#define CU_GREEN_CTX_DEFAULT_STREAM 1

typedef struct {
	unsigned int smCount;
} CUdevSmResource;

typedef struct {
	CUdevResourceType type;
	unsigned char padding[92];
	union {
		CUdevSmResource sm;
		unsigned long long oversize[6];
	};
} CUdevResource;
#endif

#endif
