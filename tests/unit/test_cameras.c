// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <linux/videodev2.h>

#include "ctl_shown.h"
#include "expected.h"
#include "scratch.h"

#include <fragctl/ctl.h>

/*
 * What `fragctl cameras` prints of devices that are made here, compared with a recorded text:
 * functions of this file take the place of libc's. Each question is interrupted once.
 */
#define MANY 70 /* more than are printed */

struct frames {
	uint32_t format;
	const char *description;
	uint32_t sizes[3][2]; /* width, height; 0: no more */
	uint32_t rates[3][3]; /* of the first size, as fractions; then the type, 0: discrete */
	uint32_t range[4];    /* instead of sizes: least and most width, least and most height */
	enum v4l2_frmsizetypes range_type;
};

struct control {
	const char *name;
	enum v4l2_ctrl_type type;
	int32_t value, least, most;
	uint32_t flags;
	bool cannot_be_read;
	const char *menu[4]; /* from 1; NULL: there is none */
};

struct device {
	const char *path;
	int error;    /* of open */
	bool is_none; /* asked what it is, it does not know */
	const char *card, *driver, *bus;
	uint32_t capabilities, device_capabilities;
	const struct frames *frames;
	const struct control *controls;
	bool has_many; /* formats, sizes, rates, controls and entries of menus */
};

#define FOURCC(a, b, c, d) v4l2_fourcc(a, b, c, d)

static const struct frames formats[] = {
	{FOURCC('Y', 'U', 'Y', 'V'),
	 "YUYV 4:2:2",
	 {{640, 480}, {320, 240}},
	 {{1, 30}, {2, 15}, {1001, 30000}}},
	{FOURCC('M', 'J', 'P', 'G'),
	 "",
	 {{0}},
	 {{0}},
	 {32, 1920, 16, 1080},
	 V4L2_FRMSIZE_TYPE_STEPWISE},
	{FOURCC('Y', '8', ' ', ' '),
	 "a \001 grey\xff",
	 {{0}},
	 {{0}},
	 {1, 2, 3, 4},
	 V4L2_FRMSIZE_TYPE_CONTINUOUS},
	{FOURCC('R', '\001', 'G', 'B'), "as long as it may be, and one ++", {{10, 11}}, {{0, 25}}},
	{FOURCC('N', 'O', 'N', 'E'), "without sizes", {{0}}, {{0}}},
	{FOURCC('S', 'T', 'E', 'P'),
	 "rates in steps",
	 {{12, 13}},
	 {{1, 5}, {1, 6, V4L2_FRMIVAL_TYPE_STEPWISE}, {1, 7}}},
	{0},
};

static const struct control controls[] = {
	{"White Balance, Automatic", V4L2_CTRL_TYPE_BOOLEAN, 1, 0, 2},
	{"  Gain!", V4L2_CTRL_TYPE_INTEGER, -7, -64, 64},
	{"1 is long, and -+ not  double_ _", V4L2_CTRL_TYPE_INTEGER, 3, 2, 4},
	{"all of it is letters and no end1", V4L2_CTRL_TYPE_INTEGER, 3, 2, 4},
	{"Disabled", V4L2_CTRL_TYPE_INTEGER, 5, 4, 6, V4L2_CTRL_FLAG_DISABLED},
	{"Inactive", V4L2_CTRL_TYPE_INTEGER, 5, 4, 6, V4L2_CTRL_FLAG_INACTIVE},
	{"Unread", V4L2_CTRL_TYPE_INTEGER, 8, 7, 9, .cannot_be_read = true},
	{"Power", V4L2_CTRL_TYPE_MENU, 2, 1, 3, .menu = {"Off", NULL, "60 Hz\n"}},
	{"Rates", V4L2_CTRL_TYPE_INTEGER_MENU, 1, 1, 2, .menu = {"100", "200"}},
	{0},
};

#define CAMERA V4L2_CAP_VIDEO_CAPTURE
#define OWN V4L2_CAP_DEVICE_CAPS

static const struct device devices[] = {
	{"/dev/video0", 0, false, "Camera \002 two", "uvcvideo", "usb-1", CAMERA | OWN, CAMERA,
	 formats, controls},
	{"/dev/video1", 0, false, "of metadata", "uvcvideo", "usb-1", CAMERA | OWN,
	 V4L2_CAP_META_CAPTURE, formats, controls},
	{"/dev/video2", 0, false, "a card of thirty-two characters.", "sixteen of them.",
	 "a bus of thirty-two characters..", CAMERA, 0, &formats[4], &controls[9]},
	{"/dev/video3", 0, true, "", "", ""},
	{"/dev/video4", EACCES},
	{"/dev/video5", 0, false, "out", "d", "b", V4L2_CAP_VIDEO_OUTPUT, CAMERA, formats,
	 controls},
	{"/dev/video255", 0, false, "the last one", "many", "bus", CAMERA, 0, .has_many = true},
	{"/dev/video256", 0, false, "beyond", "many", "bus", CAMERA, 0, formats, controls},
	{"/dev/other", 0, false, "by its path", "other", "bus", CAMERA, 0, formats, controls},
	{"/dev/held", EBUSY},
};

struct row {
	const char *words;
	size_t first, count; /* of the devices that are there */
};

static const struct row rows[] = {
	{"cameras", 0, 8},
	{"cameras --controls", 0, 6},
	{"cameras -o json", 0, 6},
	{"cameras --controls -o json", 0, 6},
	{"cameras --controls", 6, 1},
	{"cameras /dev/other", 0, 10},
	{"cameras /dev/other -o json", 0, 10},
	{"cameras /dev/held", 0, 10},
	{"cameras /dev/held -o json", 0, 10},
	{"cameras /dev/none", 0, 10},
	{"cameras /dev/video1", 0, 10},
	{"cameras /dev/video256", 0, 10},
	{"cameras", 1, 1},
	{"cameras", 4, 1},
	{"cameras -o json", 3, 2},
	{"cameras", 7, 1},
	{"cameras", 7, 0},
	{"cameras a b", 0, 0},
	{"cameras -o yaml", 0, 0},
};

static const struct row *row;
static const struct device *open_device;
static int open_fd = -1;
static bool interrupted;

/* --- in place of libc --- */

int open(const char *path, int flags, ...)
{
	cr_expect_eq(flags, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	for (size_t i = row->first; i < row->first + row->count; i++) {
		if (strcmp(devices[i].path, path) != 0)
			continue;
		errno = devices[i].error;
		open_device = &devices[i];
		open_fd = errno != 0 ? -1 : dup(STDIN_FILENO);
		return open_fd;
	}
	errno = ENOENT;
	return -1;
}

int close(int fd)
{
	if (fd == open_fd)
		open_fd = -1;
	return (int)syscall(SYS_close, fd);
}

/* Files without content: what they lead to is said by their names. */
DIR *opendir(const char *path)
{
	cr_expect_str_eq(path, "/dev/v4l/by-id");
	return fdopendir(openat(AT_FDCWD, at("by-id"), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

char *realpath(const char *path, char *out)
{
	const char *name = strrchr(path, '/') + 1;

	cr_expect_eq(strncmp(path, "/dev/v4l/by-id/", 15), 0);
	if (name[0] == '.')
		return NULL;
	snprintf(out, PATH_MAX, "/dev/%s", strchr(name, '-') + 1);
	return out;
}

static void put_text(void *out, size_t size, const char *text)
{
	memcpy(out, text, strnlen(text, size)); /* without an end, where it fills its place */
}

static int with_many(unsigned long request, void *argument)
{
	struct v4l2_fmtdesc *format = argument;
	struct v4l2_frmsizeenum *size = argument;
	struct v4l2_frmivalenum *rate = argument;
	struct v4l2_queryctrl *control = argument;
	struct v4l2_querymenu *menu = argument;
	uint32_t id;

	switch (request) {
	case VIDIOC_ENUM_FMT:
		format->pixelformat = FOURCC('A', '0', '0', '0' + format->index);
		return format->index < MANY ? 0 : -1;
	case VIDIOC_ENUM_FRAMESIZES:
		size->type = V4L2_FRMSIZE_TYPE_DISCRETE;
		size->discrete.width = size->discrete.height = size->index + 1;
		return size->index < (size->pixel_format == FOURCC('A', '0', '0', '1') ? MANY : 1)
			       ? 0
			       : -1;
	case VIDIOC_ENUM_FRAMEINTERVALS:
		rate->type = V4L2_FRMIVAL_TYPE_DISCRETE;
		rate->discrete = (struct v4l2_fract){1, rate->index + 1};
		return rate->index < (rate->width == 2 ? MANY : 1) ? 0 : -1;
	case VIDIOC_QUERYCTRL:
		id = control->id & 0xff;
		*control = (struct v4l2_queryctrl){.id = id + 1, .minimum = -2, .maximum = MANY};
		control->type = id == 1 ? V4L2_CTRL_TYPE_MENU : V4L2_CTRL_TYPE_INTEGER;
		snprintf((char *)control->name, sizeof(control->name), "c%u", id);
		return id < MANY ? 0 : -1;
	case VIDIOC_QUERYMENU:
		snprintf((char *)menu->name, sizeof(menu->name), "m%d", (int)menu->index);
		return 0;
	default:
		return 0;
	}
}

static int answer(const struct device *d, unsigned long request, void *argument)
{
	const struct frames *f = d->frames;
	const struct control *c = d->controls;
	struct v4l2_capability *about = argument;
	struct v4l2_fmtdesc *format = argument;
	struct v4l2_frmsizeenum *size = argument;
	struct v4l2_frmivalenum *rate = argument;
	struct v4l2_queryctrl *control = argument;
	struct v4l2_control *value = argument;
	struct v4l2_querymenu *menu = argument;
	uint32_t at;

	if (request == VIDIOC_QUERYCAP) {
		about->capabilities = d->capabilities;
		about->device_caps = d->device_capabilities;
		put_text(about->card, sizeof(about->card), d->card);
		put_text(about->driver, sizeof(about->driver), d->driver);
		put_text(about->bus_info, sizeof(about->bus_info), d->bus);
		return d->is_none ? -1 : 0;
	}
	if (d->has_many)
		return with_many(request, argument);
	switch (request) {
	case VIDIOC_ENUM_FMT:
		cr_expect_eq(format->type, V4L2_BUF_TYPE_VIDEO_CAPTURE);
		for (at = 0; at < format->index && f->format != 0; at++)
			f++;
		format->pixelformat = f->format;
		if (f->format != 0)
			put_text(format->description, sizeof(format->description), f->description);
		return f->format != 0 ? 0 : -1;
	case VIDIOC_ENUM_FRAMESIZES:
		while (f->format != size->pixel_format)
			f++;
		size->type = f->range[0] > 0 ? f->range_type : V4L2_FRMSIZE_TYPE_DISCRETE;
		size->discrete.width = f->sizes[size->index][0];
		size->discrete.height = f->sizes[size->index][1];
		if (f->range[0] > 0)
			size->stepwise = (struct v4l2_frmsize_stepwise){
				f->range[0], f->range[1], 1, f->range[2], f->range[3], 1};
		return f->range[0] > 0 || f->sizes[size->index][0] > 0 ? 0 : -1;
	case VIDIOC_ENUM_FRAMEINTERVALS:
		while (f->format != rate->pixel_format)
			f++;
		if (rate->width != f->sizes[0][0] || rate->height != f->sizes[0][1] ||
		    rate->index > 2 || f->rates[rate->index][1] == 0)
			return -1;
		rate->type = f->rates[rate->index][2] > 0 ? f->rates[rate->index][2]
							  : V4L2_FRMIVAL_TYPE_DISCRETE;
		rate->discrete =
			(struct v4l2_fract){f->rates[rate->index][0], f->rates[rate->index][1]};
		return 0;
	case VIDIOC_QUERYCTRL: /* numbered from 1; the next one was asked for */
		cr_expect((control->id & V4L2_CTRL_FLAG_NEXT_CTRL) != 0);
		at = control->id & 0xff;
		if (c[at].name == NULL)
			return -1;
		*control = (struct v4l2_queryctrl){.id = at + 1,
						   .type = c[at].type,
						   .minimum = c[at].least,
						   .maximum = c[at].most,
						   .flags = c[at].flags};
		put_text(control->name, sizeof(control->name), c[at].name);
		return 0;
	case VIDIOC_G_CTRL:
		value->value = c[value->id - 1].value;
		return c[value->id - 1].cannot_be_read ? -1 : 0;
	case VIDIOC_QUERYMENU:
		c += menu->id - 1;
		if (c->menu[menu->index - 1] == NULL)
			return -1;
		if (c->type == V4L2_CTRL_TYPE_INTEGER_MENU)
			menu->value = atoi(c->menu[menu->index - 1]);
		else
			put_text(menu->name, sizeof(menu->name), c->menu[menu->index - 1]);
		return 0;
	default:
		return -1;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *argument;

	va_start(args, request);
	argument = va_arg(args, void *);
	va_end(args);
	cr_assert_eq(fd, open_fd);
	interrupted = !interrupted;
	errno = interrupted ? EINTR : EINVAL;
	return interrupted ? -1 : answer(open_device, request, argument);
}

Test(cameras, are_as_recorded, .init = scratch_make, .fini = scratch_remove)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that the verb knows */
	put("by-id/first-video0", "");
	put("by-id/second-video2", "");
	put("by-id/third-video20", "");
	for (row = rows; row < rows + FRAG_COUNT_OF(rows); row++) {
		char copy[64], *argv[8] = {NULL}, *rest = copy;
		int argc = 0, code;

		snprintf(copy, sizeof(copy), "%s", row->words);
		while ((argv[argc] = strsep(&rest, " ")) != NULL)
			argc++;
		fprintf(out, "fragctl %s (devices %zu to %zu)\n", row->words, row->first,
			row->first + row->count);
		shown_begin();
		ctl_fail_as_documents(false);
		code = ctl_cameras(argc, argv);
		shown_end(out);
		fprintf(out, "  exit code %d\n", code);
		cr_expect_eq(open_fd, -1, "%s: it is closed", row->words);
	}
	fclose(out);
	expected_compare("fragctl/cameras", text);
	free(text);
}
