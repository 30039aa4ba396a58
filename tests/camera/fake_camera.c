// SPDX-License-Identifier: Apache-2.0
/*
 * A camera that is not there: /dev/video99. It answers open and ioctl as the kernel's V4L2 does;
 * every other call goes to the C library. Its descriptor is a memfd with the buffers, so that it
 * can be mapped, and is always readable. It shows tests/video/clip.h. A frame is there whenever the
 * camera has a buffer, so nothing depends on time; by their stamps frames come at CLIP_RATE, and
 * the first one a minute ago.
 *
 * FAKE_CAMERA holds what it is and what goes wrong, separated by commas:
 * - formats=YUYV+MJPG: its pixel formats; pad=64: bytes after each row
 * - open=13: it cannot be opened, with this errno; kind=radio: it is no camera
 * - fail=DQBUF:3:5: the third call of VIDIOC_DQBUF fails with errno 5; :0: every call
 * - unplug=10: it is gone after 10 frames; back=3: the third attempt to open it then succeeds;
 *   moves=98: it is /dev/video98 from then on
 * - stall=10: no frame comes after 10, until it is opened again
 * - short=5, error=5, garbage=5: frame 5 has half of its bytes, is marked as damaged, is nonsense
 * - skip=5: two frames are lost before frame 5
 * - length=100: its buffers have 100 bytes
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/videodev2.h>
#include <turbojpeg.h>

#include "../video/clip.h"

#define DEVICE "/dev/video99"
#define BUFFERS 8
#define BUFFER_BYTES (1u << 20)
#define CAMERA_BYTES (BUFFERS * BUFFER_BYTES)
#define GAIN_MAX 100
#define EXPOSURE_MAX 5000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	int fd;
	uint8_t *memory;
	uint32_t pixel_format;
	unsigned int buffers;
	unsigned int queue[BUFFERS], queued;
	bool streams, stalls, has_stalled;
	int delivered; /* frames, over all times it was opened */
	bool gone, was_gone;
	int attempts; /* to open it since it is gone */
	uint32_t sequence;
	int64_t first_us; /* the stamp of frame 0 */
	int calls[64];    /* by the number of the ioctl */
} camera = {.fd = -1};

/* Returns the text after "key=" in FAKE_CAMERA; NULL: it is not there. */
static const char *setting(const char *key)
{
	const char *all = getenv("FAKE_CAMERA");
	size_t length = strlen(key);

	while (all != NULL) {
		if (strncmp(all, key, length) == 0 && all[length] == '=')
			return all + length + 1;
		all = strchr(all, ',');
		all = all != NULL ? all + 1 : NULL;
	}
	return NULL;
}

static int number(const char *key, int otherwise)
{
	const char *text = setting(key);

	return text != NULL ? atoi(text) : otherwise;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

static int open_camera(void)
{
	if (setting("open") != NULL)
		return fail(number("open", ENOENT));
	if (camera.gone) {
		if (setting("back") == NULL || ++camera.attempts < number("back", 0))
			return fail(ENOENT);
		camera.gone = false;
		camera.was_gone = true;
	}
	if (camera.memory != NULL)
		munmap(camera.memory, CAMERA_BYTES);
	camera.fd = memfd_create("camera", MFD_CLOEXEC);
	if (camera.fd < 0 || ftruncate(camera.fd, CAMERA_BYTES) < 0)
		abort();
	camera.memory = mmap(NULL, CAMERA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, camera.fd, 0);
	if (camera.memory == MAP_FAILED)
		abort();
	camera.has_stalled |= camera.stalls;
	camera.streams = camera.stalls = false;
	camera.queued = camera.buffers = 0;
	camera.sequence = 0;
	return camera.fd;
}

static uint32_t format_at(uint32_t index)
{
	const char *formats = setting("formats");

	if (formats == NULL)
		formats = "YUYV";
	for (; index > 0; index--) {
		formats += 4;
		if (*formats++ != '+')
			return 0;
	}
	return v4l2_fourcc((uint32_t)formats[0], (uint32_t)formats[1], (uint32_t)formats[2],
			   (uint32_t)formats[3]);
}

static uint32_t row_bytes(void)
{
	uint32_t pixel = 1;

	switch (camera.pixel_format) {
	case V4L2_PIX_FMT_YUYV:
	case V4L2_PIX_FMT_UYVY:
	case V4L2_PIX_FMT_Y10:
	case V4L2_PIX_FMT_Y16:
	case V4L2_PIX_FMT_SGRBG16:
		pixel = 2;
		break;
	case V4L2_PIX_FMT_RGB24:
	case V4L2_PIX_FMT_BGR24:
		pixel = 3;
		break;
	case V4L2_PIX_FMT_RGBA32:
		pixel = 4;
		break;
	default:
		break;
	}
	return pixel * CLIP_COLUMNS + (uint32_t)number("pad", 0);
}

static int luma_of(const uint8_t *rgb)
{
	return 16 + (66 * rgb[0] + 129 * rgb[1] + 25 * rgb[2] + 128) / 256;
}

/* Draws a frame into a buffer. Returns its bytes. */
static uint32_t draw(int n, uint8_t *to)
{
	static uint8_t rgb[CLIP_BYTES];
	uint32_t row = row_bytes();
	unsigned long size = BUFFER_BYTES;
	tjhandle jpeg;

	clip_draw(rgb, n, 0);
	if (camera.pixel_format == V4L2_PIX_FMT_MJPEG) {
		jpeg = tjInitCompress();
		if (tjCompress2(jpeg, rgb, CLIP_COLUMNS, 0, CLIP_ROWS, TJPF_RGB, &to, &size,
				TJSAMP_422, 95, TJFLAG_NOREALLOC) < 0)
			abort();
		tjDestroy(jpeg);
		return (uint32_t)size;
	}
	for (uint32_t y = 0; y < CLIP_ROWS; y++) {
		for (uint32_t x = 0; x < CLIP_COLUMNS; x++) {
			const uint8_t *p = rgb + ((size_t)y * CLIP_COLUMNS + x) * 3;
			uint8_t *q = to + (size_t)y * row;

			switch (camera.pixel_format) {
			case V4L2_PIX_FMT_YUYV: /* gray has no colour */
				q[2 * x] = (uint8_t)luma_of(p);
				q[2 * x + 1] = 128;
				break;
			case V4L2_PIX_FMT_UYVY:
				q[2 * x] = 128;
				q[2 * x + 1] = (uint8_t)luma_of(p);
				break;
			case V4L2_PIX_FMT_YUV420:
				q[x] = (uint8_t)luma_of(p);
				if (y < CLIP_ROWS / 2)
					memset(to + (size_t)(CLIP_ROWS + y) * row, 128, row);
				break;
			case V4L2_PIX_FMT_GREY:
			case V4L2_PIX_FMT_SRGGB8:
				q[x] = p[0];
				break;
			case V4L2_PIX_FMT_Y10:
				q[2 * x] = (uint8_t)(p[0] * 1023 / 255);
				q[2 * x + 1] = (uint8_t)(p[0] * 1023 / 255 >> 8);
				break;
			case V4L2_PIX_FMT_Y16:
			case V4L2_PIX_FMT_SGRBG16:
				q[2 * x] = (uint8_t)x;
				q[2 * x + 1] = p[0];
				break;
			case V4L2_PIX_FMT_BGR24:
				q[3 * x] = p[2];
				q[3 * x + 1] = p[1];
				q[3 * x + 2] = p[0];
				break;
			case V4L2_PIX_FMT_NV12:
				q[x] = (uint8_t)luma_of(p);
				to[(size_t)(CLIP_ROWS + y / 2) * row + x] = 128;
				break;
			case V4L2_PIX_FMT_RGB24:
				memcpy(q + 3 * (size_t)x, p, 3);
				break;
			default:
				memcpy(q + 4 * (size_t)x, p, 3);
				q[4 * x + 3] = 255;
			}
		}
	}
	return row * (camera.pixel_format == V4L2_PIX_FMT_NV12 ||
				      camera.pixel_format == V4L2_PIX_FMT_YUV420
			      ? CLIP_ROWS * 3 / 2
			      : CLIP_ROWS);
}

static int take_frame(struct v4l2_buffer *b)
{
	struct timespec now;
	int64_t at_us;
	int n = camera.delivered;

	if (camera.streams && camera.queued > 0 && n == number("unplug", -1) && !camera.was_gone) {
		camera.gone = true;
		return fail(ENODEV);
	}
	if (n == number("stall", -1) && !camera.has_stalled)
		camera.stalls = true;
	if (!camera.streams || camera.queued == 0 || camera.stalls)
		return fail(EAGAIN);
	if (camera.first_us == 0) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		camera.first_us = (now.tv_sec - 60) * 1000000 + now.tv_nsec / 1000;
	}
	at_us = camera.first_us + n * (int64_t)1000000 / CLIP_RATE;
	if (n == number("skip", -1))
		camera.sequence += 2;
	b->index = camera.queue[0];
	memmove(camera.queue, camera.queue + 1, --camera.queued * sizeof(camera.queue[0]));
	b->bytesused = draw(n, camera.memory + (size_t)b->index * BUFFER_BYTES);
	if (n == number("short", -1))
		b->bytesused /= 2;
	if (n == number("garbage", -1))
		memset(camera.memory + (size_t)b->index * BUFFER_BYTES, 0xa5, b->bytesused);
	b->flags = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC |
		   (n == number("error", -1) ? V4L2_BUF_FLAG_ERROR : 0);
	b->sequence = camera.sequence++;
	b->timestamp.tv_sec = at_us / 1000000;
	b->timestamp.tv_usec = at_us % 1000000;
	camera.delivered++;
	return 0;
}

static int set_format(struct v4l2_pix_format *pix)
{
	camera.pixel_format = pix->pixelformat;
	pix->width = CLIP_COLUMNS;
	pix->height = CLIP_ROWS;
	pix->bytesperline = camera.pixel_format == V4L2_PIX_FMT_MJPEG ? 0 : row_bytes();
	pix->sizeimage = BUFFER_BYTES;
	return 0;
}

static struct {
	uint32_t id, type;
	int32_t minimum, maximum;
	const char *name;
	int32_t value;
} controls[] = {
	{V4L2_CID_BRIGHTNESS, V4L2_CTRL_TYPE_INTEGER, -64, 64, "Brightness", 0},
	{V4L2_CID_AUTO_WHITE_BALANCE, V4L2_CTRL_TYPE_BOOLEAN, 0, 1, "White Balance, Automatic", 1},
	{V4L2_CID_GAIN, V4L2_CTRL_TYPE_INTEGER, 1, GAIN_MAX, "Gain", 1},
	{V4L2_CID_POWER_LINE_FREQUENCY, V4L2_CTRL_TYPE_MENU, 0, 2, "Power Line Frequency", 0},
	{V4L2_CID_EXPOSURE_ABSOLUTE, V4L2_CTRL_TYPE_INTEGER, 1, EXPOSURE_MAX,
	 "Exposure Time, Absolute", 1},
};
#define CONTROLS (sizeof(controls) / sizeof(controls[0]))

static int query_control(struct v4l2_queryctrl *q)
{
	uint32_t id = q->id & ~(uint32_t)V4L2_CTRL_FLAG_NEXT_CTRL;
	size_t i = 0;

	while (i < CONTROLS &&
	       (q->id & V4L2_CTRL_FLAG_NEXT_CTRL ? controls[i].id <= id : controls[i].id != id))
		i++;
	if (i == CONTROLS)
		return fail(EINVAL);
	*q = (struct v4l2_queryctrl){.id = controls[i].id,
				     .type = controls[i].type,
				     .minimum = controls[i].minimum,
				     .maximum = controls[i].maximum,
				     .step = 1,
				     .default_value = controls[i].value};
	memcpy(q->name, controls[i].name, strlen(controls[i].name));
	return 0;
}

static int query_menu(struct v4l2_querymenu *m)
{
	static const char *const entries[] = {"Disabled", "50 Hz", "60 Hz"};

	if (m->id != V4L2_CID_POWER_LINE_FREQUENCY || m->index > 2)
		return fail(EINVAL);
	memcpy(m->name, entries[m->index], strlen(entries[m->index]) + 1);
	return 0;
}

static int set_control(const struct v4l2_control *c)
{
	for (size_t i = 0; i < CONTROLS; i++) {
		if (controls[i].id != c->id)
			continue;
		controls[i].value = c->value;
		return 0;
	}
	return fail(EINVAL);
}

static int get_control(struct v4l2_control *c)
{
	for (size_t i = 0; i < CONTROLS; i++) {
		if (controls[i].id != c->id)
			continue;
		c->value = controls[i].value;
		return 0;
	}
	return fail(EINVAL);
}

/* For a test that this is linked into: the value of a control. */
int fake_camera_control(uint32_t id);
int fake_camera_control(uint32_t id)
{
	for (size_t i = 0; i < CONTROLS; i++) {
		if (controls[i].id == id)
			return controls[i].value;
	}
	return -1;
}

static int queue_buffer(unsigned int index)
{
	if (index >= camera.buffers || camera.queued == camera.buffers)
		return fail(EINVAL);
	camera.queue[camera.queued++] = index;
	return 0;
}

static int describe_buffer(struct v4l2_buffer *b)
{
	b->length = (uint32_t)number("length", BUFFER_BYTES);
	b->m.offset = b->index * BUFFER_BYTES;
	return 0;
}

static int describe_size(struct v4l2_frmsizeenum *s)
{
	if (s->index > 0)
		return fail(EINVAL);
	s->type = V4L2_FRMSIZE_TYPE_DISCRETE;
	s->discrete.width = CLIP_COLUMNS;
	s->discrete.height = CLIP_ROWS;
	return 0;
}

static int describe_camera(struct v4l2_capability *c)
{
	memcpy(c->card, "a camera that is not there", 27);
	memcpy(c->bus_info, "usb-7", 6);
	memcpy(c->driver, "fake", 5);
	c->capabilities = V4L2_CAP_STREAMING |
			  (setting("kind") == NULL ? V4L2_CAP_VIDEO_CAPTURE : V4L2_CAP_RADIO);
	return 0;
}

static int describe_format(struct v4l2_fmtdesc *d)
{
	d->pixelformat = format_at(d->index);
	return d->pixelformat == 0 ? fail(EINVAL) : 0;
}

static int describe_interval(struct v4l2_frmivalenum *i)
{
	if (i->index > 0)
		return fail(EINVAL);
	i->type = V4L2_FRMIVAL_TYPE_DISCRETE;
	i->discrete = (struct v4l2_fract){1, CLIP_RATE};
	return 0;
}

static int rate(struct v4l2_streamparm *p)
{
	p->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
	p->parm.capture.timeperframe = (struct v4l2_fract){1, CLIP_RATE};
	return 0;
}

static int stream(bool on)
{
	camera.streams = on;
	if (!on)
		camera.queued = 0;
	return 0;
}

static int request_buffers(struct v4l2_requestbuffers *r)
{
	if (r->count > BUFFERS)
		r->count = BUFFERS;
	camera.buffers = r->count;
	return 0;
}

static int answer(unsigned long request, void *argument)
{
	switch (request) {
	case VIDIOC_QUERYCAP:
		return describe_camera(argument);
	case VIDIOC_ENUM_FMT:
		return describe_format(argument);
	case VIDIOC_ENUM_FRAMESIZES:
		return describe_size(argument);
	case VIDIOC_G_FMT:
	case VIDIOC_S_FMT:
		return set_format(&((struct v4l2_format *)argument)->fmt.pix);
	case VIDIOC_G_PARM:
	case VIDIOC_S_PARM:
		return rate(argument);
	case VIDIOC_ENUM_FRAMEINTERVALS:
		return describe_interval(argument);
	case VIDIOC_QUERYMENU:
		return query_menu(argument);
	case VIDIOC_QUERYCTRL:
		return query_control(argument);
	case VIDIOC_G_CTRL:
		return get_control(argument);
	case VIDIOC_S_CTRL:
		return set_control(argument);
	case VIDIOC_REQBUFS:
		return request_buffers(argument);
	case VIDIOC_QUERYBUF:
		return describe_buffer(argument);
	case VIDIOC_QBUF:
		return queue_buffer(((struct v4l2_buffer *)argument)->index);
	case VIDIOC_DQBUF:
		return take_frame(argument);
	case VIDIOC_STREAMON:
		return stream(true);
	case VIDIOC_STREAMOFF:
		return stream(false);
	default:
		return fail(ENOTTY);
	}
}

/* Returns the errno with which the settings let this call fail; 0: it goes on. */
static int fault_of(unsigned long request)
{
	static const struct {
		const char *name;
		unsigned long request;
	} names[] = {
		{"QUERYCAP", VIDIOC_QUERYCAP}, {"ENUM_FMT", VIDIOC_ENUM_FMT},
		{"G_FMT", VIDIOC_G_FMT},       {"S_FMT", VIDIOC_S_FMT},
		{"S_PARM", VIDIOC_S_PARM},     {"QUERYCTRL", VIDIOC_QUERYCTRL},
		{"S_CTRL", VIDIOC_S_CTRL},     {"REQBUFS", VIDIOC_REQBUFS},
		{"QUERYBUF", VIDIOC_QUERYBUF}, {"QBUF", VIDIOC_QBUF},
		{"DQBUF", VIDIOC_DQBUF},       {"STREAMON", VIDIOC_STREAMON},
	};
	const char *fault = setting("fail");
	char name[16];
	int call, error;

	if (fault == NULL || sscanf(fault, "%15[^:]:%d:%d", name, &call, &error) != 3)
		return 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, name) == 0 && names[i].request == request &&
		    (++camera.calls[i] == call || call == 0))
			return error;
	}
	return 0;
}

static int call(unsigned long request, void *argument)
{
	int r, error;

	pthread_mutex_lock(&lock);
	error = camera.gone ? ENODEV : fault_of(request);
	r = error != 0 ? fail(error) : answer(request, argument);
	error = errno;
	pthread_mutex_unlock(&lock);
	errno = error;
	return r;
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*real)(int, unsigned long, ...);
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (fd >= 0 && fd == camera.fd && _IOC_TYPE(request) == 'V')
		return call(request, argument);
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	return real(fd, request, argument);
}

static const char *where_it_is(void)
{
	static char device[32];

	if ((!camera.gone && !camera.was_gone) || setting("moves") == NULL)
		return DEVICE;
	snprintf(device, sizeof(device), "/dev/video%d", number("moves", 0));
	return device;
}

static int open_real(const char *path, int flags, unsigned int mode)
{
	static int (*real)(const char *, int, ...);

	if (strcmp(path, where_it_is()) == 0) {
		int fd;

		pthread_mutex_lock(&lock);
		fd = open_camera();
		pthread_mutex_unlock(&lock);
		return fd;
	}
	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "open");
	return real(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list arguments;
	unsigned int mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, unsigned int);
	va_end(arguments);
	return open_real(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list arguments;
	unsigned int mode;

	va_start(arguments, flags);
	mode = va_arg(arguments, unsigned int);
	va_end(arguments);
	return open_real(path, flags, mode);
}
