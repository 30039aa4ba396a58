/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_CUDA_DRIVER_H
#define FRAGI_CUDA_DRIVER_H

#include <frag/error.h>

#ifdef FRAG_CUDA_TOOLKIT
#include <cuda.h>
#else
#include "driver_abi.h"
#endif
#include "driver_green.h"

/*
 * The functions of libcuda.so.1 that frag calls, by the names that the library exports: those of
 * all drivers from CUDA 12.0 on. X(name, parameters); each returns CUresult.
 */
#define FRAGI_CU_FUNCTIONS(X)                                                                      \
	X(cuInit, (unsigned int flags))                                                            \
	X(cuDriverGetVersion, (int *version))                                                      \
	X(cuGetErrorName, (CUresult error, const char **name))                                     \
	X(cuGetErrorString, (CUresult error, const char **text))                                   \
	X(cuDeviceGetCount, (int *count))                                                          \
	X(cuDeviceGet, (CUdevice * device, int ordinal))                                           \
	X(cuDeviceGetName, (char *name, int size, CUdevice device))                                \
	X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device))                                  \
	X(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device))       \
	X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                        \
	X(cuCtxPushCurrent_v2, (CUcontext context))                                                \
	X(cuCtxPopCurrent_v2, (CUcontext * context))                                               \
	X(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device))                                    \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice other))                      \
	X(cuCtxEnablePeerAccess, (CUcontext other, unsigned int flags))                            \
	X(cuMemGetAllocationGranularity, (size_t * size, const CUmemAllocationProp *properties,    \
					  CUmemAllocationGranularity_flags option))                \
	X(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t size,                        \
			const CUmemAllocationProp *properties, unsigned long long flags))          \
	X(cuMemRelease, (CUmemGenericAllocationHandle handle))                                     \
	X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *memory))      \
	X(cuMemExportToShareableHandle,                                                            \
	  (void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,         \
	   unsigned long long flags))                                                              \
	X(cuMemImportFromShareableHandle,                                                          \
	  (CUmemGenericAllocationHandle * handle, void *shown, CUmemAllocationHandleType type))    \
	X(cuMemAddressReserve, (CUdeviceptr * address, size_t size, size_t alignment,              \
				CUdeviceptr wanted, unsigned long long flags))                     \
	X(cuMemAddressFree, (CUdeviceptr address, size_t size))                                    \
	X(cuMemMap, (CUdeviceptr address, size_t size, size_t offset,                              \
		     CUmemGenericAllocationHandle handle, unsigned long long flags))               \
	X(cuMemUnmap, (CUdeviceptr address, size_t size))                                          \
	X(cuMemSetAccess,                                                                          \
	  (CUdeviceptr address, size_t size, const CUmemAccessDesc *access, size_t count))         \
	X(cuMemAlloc_v2, (CUdeviceptr * memory, size_t size))                                      \
	X(cuMemFree_v2, (CUdeviceptr memory))                                                      \
	X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * size, CUdeviceptr memory))        \
	X(cuMemAllocManaged, (CUdeviceptr * memory, size_t size, unsigned int flags))              \
	X(cuMemHostAlloc, (void **memory, size_t size, unsigned int flags))                        \
	X(cuMemFreeHost, (void *memory))                                                           \
	X(cuMemHostRegister_v2, (void *memory, size_t size, unsigned int flags))                   \
	X(cuMemHostUnregister, (void *memory))                                                     \
	X(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream))         \
	X(cuMemcpyPeerAsync, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,              \
			      CUcontext from_context, size_t size, CUstream stream))               \
	X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *copy, CUstream stream))                        \
	X(cuStreamCreateWithPriority, (CUstream * stream, unsigned int flags, int priority))       \
	X(cuStreamDestroy_v2, (CUstream stream))                                                   \
	X(cuStreamSynchronize, (CUstream stream))                                                  \
	X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags))                 \
	X(cuLaunchHostFunc, (CUstream stream, CUhostFn fn, void *arg))                             \
	X(cuEventCreate, (CUevent * event, unsigned int flags))                                    \
	X(cuEventDestroy_v2, (CUevent event))                                                      \
	X(cuEventRecord, (CUevent event, CUstream stream))                                         \
	X(cuEventQuery, (CUevent event))                                                           \
	X(cuEventSynchronize, (CUevent event))                                                     \
	X(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *properties))                \
	X(cuMemPoolDestroy, (CUmemoryPool pool))                                                   \
	X(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value))  \
	X(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *access, size_t count))    \
	X(cuMemAllocFromPoolAsync,                                                                 \
	  (CUdeviceptr * memory, size_t size, CUmemoryPool pool, CUstream stream))                 \
	X(cuMemFreeAsync, (CUdeviceptr memory, CUstream stream))                                   \
	X(cuModuleLoadData, (CUmodule * module, const void *image))                                \
	X(cuModuleUnload, (CUmodule module))                                                       \
	X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))         \
	X(cuLaunchKernel,                                                                          \
	  (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,     \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z,                       \
	   unsigned int shared_bytes, CUstream stream, void **arguments, void **extra))

/* Of drivers from CUDA 12.5 on: NULL where the driver is older. */
#define FRAGI_CU_GREEN_FUNCTIONS(X)                                                                \
	X(cuDeviceGetDevResource, (CUdevice device, CUdevResource * out, CUdevResourceType type))  \
	X(cuDevSmResourceSplitByCount,                                                             \
	  (CUdevResource * groups, unsigned int *count, const CUdevResource *from,                 \
	   CUdevResource *rest, unsigned int flags, unsigned int sms))                             \
	X(cuDevResourceGenerateDesc,                                                               \
	  (CUdevResourceDesc * out, CUdevResource * resources, unsigned int count))                \
	X(cuGreenCtxCreate,                                                                        \
	  (CUgreenCtx * out, CUdevResourceDesc what, CUdevice device, unsigned int flags))         \
	X(cuGreenCtxDestroy, (CUgreenCtx context))                                                 \
	X(cuGreenCtxStreamCreate,                                                                  \
	  (CUstream * out, CUgreenCtx context, unsigned int flags, int priority))

#define FRAGI_CU_POINTER(name, parameters) CUresult(*name) parameters;
struct cuda_driver {
	FRAGI_CU_FUNCTIONS(FRAGI_CU_POINTER)
	FRAGI_CU_GREEN_FUNCTIONS(FRAGI_CU_POINTER)
};

/* Set by cuda_driver_open, constant afterwards. */
extern struct cuda_driver cu;

/*
 * Opens libcuda.so.1 and initialises it, once; a failure is tried again by the next call. Returns
 * 0; -ENODEV: the sentence says why no GPU can be used. Thread: one at a time.
 */
int cuda_driver_open(struct frag_err *err);
/*
 * Words what the driver answered: "cuMemAlloc_v2 of 16 bytes on GPU 0 (NAME): CUDA_ERROR_..: text".
 * - what: the call, as a text
 * Returns -ENOMEM, -ENODEV or -EIO; 0 when result is CUDA_SUCCESS.
 */
int cuda_check(CUresult result, struct frag_err *err, const char *what, ...) FRAG_PRINTF(3, 4);

#endif
