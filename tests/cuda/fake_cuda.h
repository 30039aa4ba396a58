/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A stand-in for NVIDIA's libcuda.so.1, so that all of frag above the driver runs without a GPU.
 * - Memory of a GPU is a memfd. Its address can be neither read nor written by the CPU: a device
 *   pointer that reaches code for host memory ends the process.
 * - Streams are threads that do what they were given in order, and late: see fake_cuda_hold.
 * - Memory that processes share is a memfd too, "fake_cuda-DEVICE", which lasts as long as one of
 *   them has it. A stream that writes where it is mapped for reading breaks the context: all calls
 *   fail from then on with CUDA_ERROR_ILLEGAL_ADDRESS.
 * - A copy from a GPU to memory of the host that is not pinned is waited for within the call.
 * - Calls without a current context, and handles that do not exist, are refused.
 *
 * In the environment: FAKE_CUDA_DEVICES: GPUs (default 1); FAKE_CUDA_MEMORY: bytes of each (default
 * 256 MiB); FAKE_CUDA_VERSION (default 13000); FAKE_CUDA_WITHOUT="managed pools shared
 * peers": kinds of memory that no GPU has, and that no GPU reaches that of another;
 * FAKE_CUDA_KERNEL_MS: each kernel takes so long (default 0);
 * FAKE_CUDA_SMS: SMs of a GPU (default 132, which are divided by 8);
 * FAKE_CUDA_FAIL=NAME:N:RESULT: the N-th call of the function from now on, counted from 1, returns
 * RESULT; FAKE_CUDA_REPORT: a file that gets a line when the process exits, "left BYTES", of memory
 * that was not freed.
 *
 * A test finds these functions with dlsym.
 */

/* The nth call of a function from now on, counted from 1, returns result; 0: none. */
void fake_cuda_fail(const char *name, int nth, int result);
/* While held, streams do nothing. */
void fake_cuda_hold(bool hold);
/* The same of one stream, a CUstream. */
void fake_cuda_hold_stream(void *stream, bool hold);
/* While held, no function is called that cuLaunchHostFunc was given. */
void fake_cuda_hold_calls(bool hold);
/* A kernel that writes a byte to memory of a GPU, in the order of a stream. Returns 0 or -1. */
int fake_cuda_write(void *stream, unsigned long long address, unsigned char byte, size_t size);
/* The same, that copies. */
int fake_cuda_copy(void *stream, unsigned long long to, unsigned long long from, size_t size);
/* SMs of the green context that a stream was made in; 0: in none. */
unsigned int fake_cuda_sms(void *stream);
/* Copies between GPUs of which one has no access to the memory of the other. */
int fake_cuda_by_host(void);
/* Bytes of memory of all kinds that are in use. */
size_t fake_cuda_used(void);
/* Streams, pools, events, green contexts and ranges of addresses that were not destroyed, and the
 * contexts that this thread has entered. */
size_t fake_cuda_left(void);
/* Calls of a function so far. */
int fake_cuda_calls(const char *name);
/* Reads memory of a GPU, as a debugger would. Returns 0; -1: the range is not allocated. */
int fake_cuda_peek(unsigned long long address, void *out, size_t size);
/* Where the CPU reaches memory of a GPU at that address; NULL: there is none. */
void *fake_cuda_reach(const void *address);
/* Writes it, without a stream: also where those were left behind by a fork. As peek. */
int fake_cuda_poke(unsigned long long address, const void *from, size_t size);

#endif
