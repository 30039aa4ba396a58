/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_CAMERA_H
#define CAPTURE_CAMERA_H

#include <stdbool.h>
#include <stdint.h>

#include <frag/error.h>
#include <frag/param.h>

#include "picture.h"

/*
 * A camera that streams into buffers which the kernel shares with this process (Linux Media
 * Userspace API, Video for Linux, "Streaming I/O (Memory Mapping)").
 *
 * A buffer that was taken belongs to whoever took it until it is given back. What is still taken
 * keeps the camera's memory mapped: the operator and each buffer that travels in a message hold a
 * reference to the camera.
 */
struct camera;

#define CAMERA_BUFFERS_MAX 32

struct camera_request {
	const char *device;
	uint32_t columns, rows; /* 0: what the camera is set to */
	double frame_rate;      /* 0: likewise */
	uint32_t pixel_format;  /* 0: the first of the camera's that is known here */
	uint32_t buffers;
	int64_t exposure_time, gain;     /* negative: as the camera is set */
	struct frag_string_map controls; /* others by their names */
	bool is_native;                  /* Bayer patterns may be chosen too */
	const char *identity; /* of camera_identity: this camera, under whatever number; "": any */
};

struct camera_frame {
	unsigned int index; /* of the buffer */
	const uint8_t *data;
	uint32_t size_bytes;
	uint32_t sequence; /* the camera's number of the frame; gaps are frames that it lost */
	int64_t time_ns;   /* CLOCK_MONOTONIC, when the frame was taken; 0: unknown */
	bool damaged;
};

/*
 * Opens a camera, sets it as requested and starts it. Returns 0, or a failure with a sentence:
 * -ENOENT, -ENODEV: it is not there; -EBUSY, -EACCES; -ENOTSUP: it cannot do what is requested;
 * -ERANGE: a value is out of its range; -EPROTO: its driver contradicts itself.
 */
int camera_open(const struct camera_request *request, struct camera **out, struct frag_err *err);
/* Stops the stream: no frame comes any more. Buffers that are taken stay readable. */
void camera_stop(struct camera *camera);
/* The last reference frees everything. NULL is accepted. Thread: any. */
void camera_unref(struct camera *camera);

const struct picture_format *camera_format(const struct camera *camera);
#define CAMERA_IDENTITY 80
/* Returns what stays the same when the camera is unplugged and comes back: its name and port. */
const char *camera_identity(const struct camera *camera);
/* Returns the device that was opened: that of the request, or where the camera is now. */
const char *camera_device(const struct camera *camera);
double camera_frame_rate(const struct camera *camera); /* 0: unknown */
/* Returns a descriptor that is readable when a frame is there, or when the camera is gone. */
int camera_fd(const struct camera *camera);

/*
 * Takes the oldest frame. Returns 0; -EAGAIN: none is there; -ENODEV: the camera is gone; or
 * another negative errno.
 */
int camera_take(struct camera *camera, struct camera_frame *out);
/* Gives a buffer back, to be filled again. Thread: any. */
void camera_give_back(struct camera *camera, unsigned int index);
/*
 * Lends a buffer that was taken to a message: the result is the context of
 * camera_end_loan, which gives the buffer back and may be called on any thread, also when the
 * camera has been stopped. The loan holds a reference to the camera.
 */
void *camera_lend(struct camera *camera, unsigned int index);
void camera_end_loan(void *loan);
/* Returns how many buffers the camera has to fill. */
unsigned int camera_buffers_left(const struct camera *camera);

#endif
