// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

/*
 * FFmpeg looks for all functions of the driver that it may ever call, and does without a GPU where
 * one is missing. These are the ones that it does not call for what is tested.
 */
#define UNUSED(name)                                                                               \
	__attribute__((visibility("default"))) int name(void);                                     \
	int name(void)                                                                             \
	{                                                                                          \
		fputs("fake_cuda: " #name " is not there\n", stderr);                              \
		abort();                                                                           \
	}

UNUSED(cuDeviceComputeCapability)
UNUSED(cuDevicePrimaryCtxRelease)
UNUSED(cuDevicePrimaryCtxSetFlags)
UNUSED(cuDevicePrimaryCtxGetState)
UNUSED(cuDevicePrimaryCtxReset)
UNUSED(cuCtxCreate_v2)
UNUSED(cuCtxSetLimit)
UNUSED(cuCtxDestroy_v2)
UNUSED(cuCtxGetDevice)
UNUSED(cuMemAllocPitch_v2)
UNUSED(cuMemcpy)
UNUSED(cuMemcpy2D_v2)
UNUSED(cuMemcpyHtoD_v2)
UNUSED(cuMemcpyHtoDAsync_v2)
UNUSED(cuMemcpyDtoH_v2)
UNUSED(cuMemcpyDtoHAsync_v2)
UNUSED(cuMemcpyDtoD_v2)
UNUSED(cuMemcpyDtoDAsync_v2)
UNUSED(cuStreamCreate)
UNUSED(cuStreamQuery)
UNUSED(cuStreamAddCallback)
UNUSED(cuLinkCreate)
UNUSED(cuLinkAddData)
UNUSED(cuLinkComplete)
UNUSED(cuLinkDestroy)
UNUSED(cuModuleGetGlobal)
UNUSED(cuTexObjectCreate)
UNUSED(cuTexObjectDestroy)
UNUSED(cuGLGetDevices_v2)
UNUSED(cuGraphicsGLRegisterImage)
UNUSED(cuGraphicsUnregisterResource)
UNUSED(cuGraphicsMapResources)
UNUSED(cuGraphicsUnmapResources)
UNUSED(cuGraphicsSubResourceGetMappedArray)
UNUSED(cuGraphicsResourceGetMappedPointer_v2)
UNUSED(cuImportExternalMemory)
UNUSED(cuDestroyExternalMemory)
UNUSED(cuExternalMemoryGetMappedBuffer)
UNUSED(cuExternalMemoryGetMappedMipmappedArray)
UNUSED(cuMipmappedArrayGetLevel)
UNUSED(cuMipmappedArrayDestroy)
UNUSED(cuImportExternalSemaphore)
UNUSED(cuDestroyExternalSemaphore)
UNUSED(cuSignalExternalSemaphoresAsync)
UNUSED(cuWaitExternalSemaphoresAsync)
UNUSED(cuArray3DCreate_v2)
UNUSED(cuArrayDestroy)
