/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_MEMORY_H
#define FRAGI_DATA_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>
#include <data/work.h>
#include <frag/tensor.h>

#define FRAGI_GPU_NAME_BYTES 16 /* of a GPU, the same in all processes */

/*
 * Memory of a device that other processes of the machine can map. Every function may be called on
 * any thread.
 */
struct fragi_shared_memory {
	/*
	 * As alloc of struct fragi_memory; -ENOTSUP: the device has no such memory. bytes: at least
	 * size, because the device gives whole pages; what free and others need to know.
	 */
	int (*alloc)(struct frag_device device, size_t size, void **out_memory, size_t *out_bytes,
		     struct frag_err *err);
	/* Waits until the device has done with the memory. */
	void (*free)(struct frag_device device, void *memory, size_t bytes);
	/* What another process needs to map it: a descriptor, the caller's, and the GPU. */
	int (*show)(struct frag_device device, void *memory, int *out_fd,
		    uint8_t out_gpu[FRAGI_GPU_NAME_BYTES], struct frag_err *err);
	/*
	 * Maps what another process has shown, for reading alone; the descriptor stays the
	 * caller's. The memory lasts as long as anybody maps it. Returns 0; -ENODEV: this process
	 * has not opened that GPU; -ENOMEM; -EIO: it is no such memory, or not of so many bytes.
	 */
	int (*map)(int fd, const uint8_t gpu[FRAGI_GPU_NAME_BYTES], size_t bytes,
		   struct frag_device *out_device, void **out_memory, struct frag_err *err);
	/* As free. */
	void (*unmap)(struct frag_device device, void *memory, size_t bytes);
};

/*
 * What frag does with the memory of a device, as one table. That of host memory is part of libfrag;
 * the module cuda installs the one of the kinds of CUDA when something first needs them
 * (type/cuda.h). Whoever moves or frees memory asks for its table, and for nothing else about the
 * device.
 *
 * `device` is always one whose table this is. Every function may be called on any thread.
 */
struct fragi_memory {
	/*
	 * size: more than 0; the memory is aligned to 64 bytes. Returns 0; -ENOMEM; -ENODEV: there
	 * is no such device; -EIO: the device refuses.
	 */
	int (*alloc)(struct frag_device device, size_t size, void **out_memory,
		     struct frag_err *err);
	/* Waits until the device has done with the memory. */
	void (*free)(struct frag_device device, void *memory);
	/*
	 * Pins memory of the host, whole pages of the caller's: devices then copy to and from it as
	 * fast as memory of CUDA_HOST, and nobody waits for that, but kernels may not use its
	 * address, and a copy lies within what was pinned at once. unpin: they have done with it.
	 * Returns 0; -ENODEV; -ENOMEM; -EIO: the driver refuses. NULL: needs no pinning.
	 */
	int (*pin)(void *memory, size_t size, struct frag_err *err);
	void (*unpin)(void *memory);
	/*
	 * The same for device memory, out of a pool that keeps what was given back: without calls
	 * that wait for the whole device. The work that uses the memory is done when it is freed.
	 */
	int (*pool_alloc)(struct frag_device device, size_t size, void **out_memory,
			  struct frag_err *err);
	void (*pool_free)(struct frag_device device, void *memory);
	/*
	 * Begins to copy; one side is memory of this table, the other that or host memory. Both
	 * stay as they are until wait has returned. Returns 0; -EIO: the device refuses.
	 */
	int (*copy)(struct frag_device device, void *to, const void *from, size_t size,
		    struct frag_err *err);
	/* The same from one GPU to another, both opened; `wait` is of the first one. */
	int (*copy_across)(struct frag_device from_device, const void *from,
			   struct frag_device device, void *to, size_t size, struct frag_err *err);
	/*
	 * The same, from the elements of a tensor with strides to elements without gaps, in
	 * row-major order, on the same device or in host memory.
	 */
	int (*pack)(const struct frag_dltensor *from, size_t element_bytes, void *to,
		    struct frag_err *err);
	/* Waits for what this process has begun on the device. Returns 0; -EIO: it failed. */
	int (*wait)(struct frag_device device, struct frag_err *err);
	/* NULL: the device has no streams */
	const struct fragi_stream_ops *streams;
	/* NULL: nobody else can map it */
	const struct fragi_shared_memory *shared;
};

/* Whether the CPU can read and write the memory. */
static inline bool fragi_device_is_host(struct frag_device device)
{
	return device.type != FRAG_DEVICE_CUDA;
}

/* Whether frag knows the kind of device. */
static inline bool fragi_device_is_known(struct frag_device device)
{
	return (device.type >= FRAG_DEVICE_CPU && device.type <= FRAG_DEVICE_CUDA_HOST) ||
	       device.type == FRAG_DEVICE_CUDA_MANAGED;
}

/* The table of host memory. */
extern const struct fragi_memory fragi_memory_host;
/* The table of a device's memory; NULL: nothing has opened the module that brings it. */
FRAGI_API const struct fragi_memory *fragi_memory_of(struct frag_device device);
/*
 * Sets the table of all kinds of CUDA, when a GPU was opened. Thread: one at a time; it is never
 * taken back, and what it points to stays.
 */
FRAGI_API void fragi_memory_install(const struct fragi_memory *cuda, struct frag_device gpu);
/*
 * Where received tensors go that lay on a GPU at their sender: the GPU that this process opened
 * first. Returns false where it has opened none.
 */
bool fragi_memory_gpu(struct frag_device *out_device);
/* Whether elements there can be copied to the host, to be sent. */
static inline bool fragi_memory_can_be_sent(struct frag_device device)
{
	return fragi_device_is_host(device) || fragi_memory_of(device) != NULL;
}

/*
 * The stream of that GPU in a list; opened, and put first, if there is none. Returns 0; -ENODEV:
 * nothing has opened the GPU; -ENOMEM; -EIO.
 */
int fragi_stream_on(struct fragi_stream **streams, struct frag_device gpu,
		    struct fragi_stream **out, struct frag_err *err);
/*
 * Waits for what the streams of a list were given, and for what is called after it (work.h). NULL:
 * there are none.
 */
FRAGI_API void fragi_streams_settle(struct fragi_stream *streams);
/* The same, and closes them. */
FRAGI_API void fragi_streams_free(struct fragi_stream *streams);

/*
 * Copies the elements of a tensor without gaps, in row-major order, to memory of any device, and
 * waits for it. Returns 0; -ENODEV: nothing has opened the device; -ENOMEM; -EIO: it refuses.
 */
int fragi_memory_transfer(const struct frag_tensor *from, struct frag_device device, void *to,
			  struct frag_err *err);

#endif
