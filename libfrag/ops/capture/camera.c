// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/videodev2.h>

#include "camera.h"
#include "settings.h"

#define DEVICES_MAX 256 /* the kernel numbers no more */

struct buffer {
	struct camera *camera;
	void *memory;
	size_t size;
};

struct camera {
	int fd;
	char device[PATH_MAX];
	char identity[CAMERA_IDENTITY];
	struct picture_format format;
	double frame_rate;
	unsigned int buffers;
	struct buffer buffer[CAMERA_BUFFERS_MAX];
	atomic_bool streams;
	atomic_uint left; /* buffers that the camera may fill */
	atomic_uint references;
};

/* Reading is enough for what is done here, and all that a confined host may do. */
static int open_to_read(const char *device)
{
	int fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = open(device, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd;
}

static int open_device(const char *device, struct frag_err *err)
{
	int fd = open_to_read(device);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
		return frag_err_set(
			err, -errno,
			"there is no camera %s; plug it in, or give the parameter device (v4l2-ctl --list-devices lists cameras)",
			device);
	if (errno == EACCES || errno == EPERM)
		return frag_err_set(
			err, -errno,
			"cannot open the camera %s: %s; add the user of the hosts to the group video",
			device, frag_strerror(-errno));
	return frag_err_set(err, -errno, "cannot open the camera %s: %s", device,
			    frag_strerror(-errno));
}

static void identify(int fd, char identity[CAMERA_IDENTITY])
{
	struct v4l2_capability c = {0};

	identity[0] = '\0';
	if (camera_ioctl(fd, VIDIOC_QUERYCAP, &c) == 0)
		snprintf(identity, CAMERA_IDENTITY, "%.31s|%.31s", (const char *)c.card,
			 (const char *)c.bus_info);
}

/*
 * Opens the device, or, if a camera that was there before is looked for and another one is there
 * now or none, the device that it has got instead. Returns the descriptor or a failure.
 */
static int find_device(struct camera *c, const struct camera_request *request, struct frag_err *err)
{
	const char *identity = request->identity != NULL ? request->identity : "";
	int fd = open_device(request->device, err);

	snprintf(c->device, sizeof(c->device), "%s", request->device);
	if (fd >= 0)
		identify(fd, c->identity);
	if (identity[0] == '\0' || (fd >= 0 && strcmp(c->identity, identity) == 0))
		return fd;
	if (fd >= 0)
		close(fd);
	for (int number = 0; number < DEVICES_MAX; number++) {
		snprintf(c->device, sizeof(c->device), "/dev/video%d", number);
		fd = open_to_read(c->device);
		if (fd < 0)
			continue;
		identify(fd, c->identity);
		if (strcmp(c->identity, identity) == 0)
			return fd;
		close(fd);
	}
	return frag_err_set(err, -ENODEV,
			    "the camera %s is not there, under no number; plug it in again",
			    request->device);
}

/* Maps a buffer and hands it to the camera. */
static int add_buffer(struct camera *c, const char *device, unsigned int index,
		      struct frag_err *err)
{
	struct v4l2_buffer b = {
		.index = index, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};
	void *memory;

	if (camera_ioctl(c->fd, VIDIOC_QUERYBUF, &b) < 0)
		return camera_failed(err, device, "describes no buffer");
	if (b.length < picture_bytes(&c->format))
		return frag_err_set(
			err, -EPROTO,
			"the driver of %s offers buffers of %u bytes for pictures of %llu; its pictures cannot be used",
			device, b.length, (unsigned long long)picture_bytes(&c->format));
	memory = mmap(NULL, b.length, PROT_READ, MAP_SHARED, c->fd, b.m.offset);
	if (memory == MAP_FAILED)
		return camera_failed(err, device, "shares no buffer");
	c->buffer[index] = (struct buffer){.camera = c, .memory = memory, .size = b.length};
	c->buffers = index + 1;
	if (camera_ioctl(c->fd, VIDIOC_QBUF, &b) < 0)
		return camera_failed(err, device, "takes no buffer");
	atomic_fetch_add(&c->left, 1);
	return 0;
}

static int start(struct camera *c, const struct camera_request *request, struct frag_err *err)
{
	struct v4l2_requestbuffers wanted = {.count = request->buffers,
					     .type = V4L2_BUF_TYPE_VIDEO_CAPTURE,
					     .memory = V4L2_MEMORY_MMAP};
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE, r = 0;

	if (camera_ioctl(c->fd, VIDIOC_REQBUFS, &wanted) < 0)
		return errno == EBUSY
			       ? frag_err_set(
					 err, -EBUSY,
					 "the camera %s is used by another program; end that program, or give another device",
					 request->device)
			       : camera_failed(err, request->device, "makes no buffers");
	if (wanted.count < 2)
		return frag_err_set(err, -ENOMEM,
				    "the camera %s makes %u buffers, and 2 are needed at least",
				    request->device, wanted.count);
	for (unsigned int i = 0; r == 0 && i < wanted.count && i < CAMERA_BUFFERS_MAX; i++)
		r = add_buffer(c, request->device, i, err);
	if (r < 0)
		return r;
	if (camera_ioctl(c->fd, VIDIOC_STREAMON, &type) < 0)
		return errno == EBUSY || errno == ENOSPC
			       ? frag_err_set(
					 err, -errno,
					 "the camera %s cannot start: %s; end other programs that use it, or cameras at the same USB controller",
					 request->device, frag_strerror(-errno))
			       : camera_failed(err, request->device, "does not start");
	atomic_store(&c->streams, true);
	return 0;
}

int camera_open(const struct camera_request *request, struct camera **out, struct frag_err *err)
{
	struct camera *c = calloc(1, sizeof(*c));
	int r;

	if (c == NULL)
		return frag_err_set(err, -ENOMEM, "no memory to open the camera %s",
				    request->device);
	atomic_store(&c->references, 1);
	c->fd = find_device(c, request, err);
	r = c->fd < 0 ? c->fd : camera_set_up(c->fd, request, &c->format, &c->frame_rate, err);
	if (r == 0)
		r = start(c, request, err);
	if (r < 0) {
		camera_unref(c);
		return r;
	}
	*out = c;
	return 0;
}

void camera_stop(struct camera *c)
{
	int type = V4L2_BUF_TYPE_VIDEO_CAPTURE;

	if (atomic_exchange(&c->streams, false))
		camera_ioctl(c->fd, VIDIOC_STREAMOFF, &type);
}

void camera_unref(struct camera *c)
{
	if (c == NULL || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) > 1)
		return;
	camera_stop(c);
	for (unsigned int i = 0; i < c->buffers; i++)
		munmap(c->buffer[i].memory, c->buffer[i].size);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

const struct picture_format *camera_format(const struct camera *c)
{
	return &c->format;
}

const char *camera_identity(const struct camera *c)
{
	return c->identity;
}

const char *camera_device(const struct camera *c)
{
	return c->device;
}

double camera_frame_rate(const struct camera *c)
{
	return c->frame_rate;
}

int camera_fd(const struct camera *c)
{
	return c->fd;
}

int camera_take(struct camera *c, struct camera_frame *out)
{
	struct v4l2_buffer b = {.type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};

	if (camera_ioctl(c->fd, VIDIOC_DQBUF, &b) < 0)
		return -errno;
	if (b.index >= c->buffers || b.bytesused > c->buffer[b.index].size)
		return -EPROTO;
	atomic_fetch_sub(&c->left, 1);
	*out = (struct camera_frame){
		.index = b.index,
		.data = c->buffer[b.index].memory,
		.size_bytes = b.bytesused,
		.sequence = b.sequence,
		.damaged = (b.flags & V4L2_BUF_FLAG_ERROR) != 0,
	};
	if ((b.flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
		out->time_ns = b.timestamp.tv_sec * 1000000000LL + b.timestamp.tv_usec * 1000LL;
	return 0;
}

void camera_give_back(struct camera *c, unsigned int index)
{
	struct v4l2_buffer b = {
		.index = index, .type = V4L2_BUF_TYPE_VIDEO_CAPTURE, .memory = V4L2_MEMORY_MMAP};

	/* A camera that stopped or is gone needs no buffer. */
	if (atomic_load(&c->streams) && camera_ioctl(c->fd, VIDIOC_QBUF, &b) == 0)
		atomic_fetch_add(&c->left, 1);
}

void *camera_lend(struct camera *c, unsigned int index)
{
	atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
	return &c->buffer[index];
}

void camera_end_loan(void *loan)
{
	struct buffer *buffer = loan;
	struct camera *c = buffer->camera;

	camera_give_back(c, (unsigned int)(buffer - c->buffer));
	camera_unref(c);
}

unsigned int camera_buffers_left(const struct camera *c)
{
	return atomic_load(&c->left);
}
