// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/videodev2.h>

#include <fragctl/ctl.h>

#define DEVICES_MAX 256 /* the kernel numbers no more */
#define ENTRIES_MAX 64  /* formats, sizes, rates and controls of a camera that are printed */
#define BY_ID "/dev/v4l/by-id"
#define CAPTURE V4L2_BUF_TYPE_VIDEO_CAPTURE

static int ask(int fd, unsigned long request, void *argument)
{
	int r;

	do {
		r = ioctl(fd, request, argument);
	} while (r < 0 && errno == EINTR);
	return r;
}

/* Text of a device may hold anything. */
static void print_text(const void *text, size_t size)
{
	const unsigned char *from = text;

	for (size_t i = 0; i < size && from[i] != '\0'; i++)
		putchar(isprint(from[i]) ? from[i] : '?');
}

static void print_fourcc(uint32_t format)
{
	for (int i = 0; i < 4; i++) {
		int c = (int)(format >> (8 * i) & 0xff);

		if (c != ' ')
			putchar(isprint(c) ? c : '?');
	}
}

/* The path that stays when the number changes; there is none without udev. */
static void print_stable_path(const char *device)
{
	DIR *folder = opendir(BY_ID);
	const struct dirent *entry;

	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		char path[PATH_MAX], target[PATH_MAX];

		snprintf(path, sizeof(path), BY_ID "/%s", entry->d_name);
		if (realpath(path, target) != NULL && strcmp(target, device) == 0)
			printf("  device: %s\n", path);
	}
	if (folder != NULL)
		closedir(folder);
}

static void print_rates(int fd, uint32_t format, uint32_t width, uint32_t height)
{
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct v4l2_frmivalenum v = {
			.index = i, .pixel_format = format, .width = width, .height = height};

		if (ask(fd, VIDIOC_ENUM_FRAMEINTERVALS, &v) < 0 ||
		    v.type != V4L2_FRMIVAL_TYPE_DISCRETE || v.discrete.numerator == 0)
			break;
		printf("%s%g", i == 0 ? " at " : ", ",
		       (double)v.discrete.denominator / v.discrete.numerator);
	}
}

static void print_sizes(int fd, uint32_t format)
{
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct v4l2_frmsizeenum s = {.index = i, .pixel_format = format};

		if (ask(fd, VIDIOC_ENUM_FRAMESIZES, &s) < 0)
			break;
		if (s.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
			printf("    %ux%u", s.discrete.width, s.discrete.height);
			print_rates(fd, format, s.discrete.width, s.discrete.height);
			putchar('\n');
			continue;
		}
		printf("    %ux%u to %ux%u\n", s.stepwise.min_width, s.stepwise.min_height,
		       s.stepwise.max_width, s.stepwise.max_height);
		break;
	}
}

static void print_formats(int fd)
{
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct v4l2_fmtdesc d = {.index = i, .type = CAPTURE};

		if (ask(fd, VIDIOC_ENUM_FMT, &d) < 0)
			break;
		printf("  pixel_format: ");
		print_fourcc(d.pixelformat);
		if (d.description[0] != '\0')
			printf(" (");
		print_text(d.description, sizeof(d.description));
		printf("%s\n", d.description[0] != '\0' ? ")" : "");
		print_sizes(fd, d.pixelformat);
	}
}

static void print_menu(int fd, const struct v4l2_queryctrl *q)
{
	for (int32_t i = q->minimum, n = 0; i <= q->maximum && n < ENTRIES_MAX; i++, n++) {
		struct v4l2_querymenu m = {.id = q->id, .index = (uint32_t)i};

		if (ask(fd, VIDIOC_QUERYMENU, &m) < 0)
			continue;
		printf(", %d: ", i);
		if (q->type == V4L2_CTRL_TYPE_INTEGER_MENU)
			printf("%lld", (long long)m.value);
		else
			print_text(m.name, sizeof(m.name));
	}
}

/* "White Balance, Automatic" is white_balance_automatic in the parameter controls. */
static void print_control_name(const unsigned char *name, size_t size)
{
	bool is_pending = false;

	for (size_t i = 0; i < size && name[i] != '\0'; i++) {
		if (!isalnum(name[i])) {
			is_pending = true;
			continue;
		}
		if (is_pending)
			putchar('_');
		is_pending = false;
		putchar(tolower(name[i]));
	}
}

static void print_controls(int fd)
{
	struct v4l2_queryctrl q = {.id = V4L2_CTRL_FLAG_NEXT_CTRL};

	for (int i = 0; i < ENTRIES_MAX && ask(fd, VIDIOC_QUERYCTRL, &q) == 0; i++) {
		struct v4l2_control value = {.id = q.id};

		if (!(q.flags & V4L2_CTRL_FLAG_DISABLED) && ask(fd, VIDIOC_G_CTRL, &value) == 0) {
			printf("  control ");
			print_control_name(q.name, sizeof(q.name));
			printf(": %d, from %d to %d", value.value, q.minimum, q.maximum);
			if (q.type == V4L2_CTRL_TYPE_MENU || q.type == V4L2_CTRL_TYPE_INTEGER_MENU)
				print_menu(fd, &q);
			putchar('\n');
		}
		q.id |= V4L2_CTRL_FLAG_NEXT_CTRL;
	}
}

/* Returns whether the device is a camera; others, such as those for metadata, are left out. */
static bool print_camera(const char *device, int fd, bool is_long)
{
	struct v4l2_capability c = {0};
	uint32_t can;

	if (ask(fd, VIDIOC_QUERYCAP, &c) < 0)
		return false;
	can = c.capabilities & V4L2_CAP_DEVICE_CAPS ? c.device_caps : c.capabilities;
	if (!(can & V4L2_CAP_VIDEO_CAPTURE))
		return false;
	printf("%s: ", device);
	print_text(c.card, sizeof(c.card));
	printf(" (");
	print_text(c.driver, sizeof(c.driver));
	printf(", ");
	print_text(c.bus_info, sizeof(c.bus_info));
	printf(")\n");
	print_stable_path(device);
	print_formats(fd);
	if (is_long)
		print_controls(fd);
	return true;
}

static int list(const char *only, bool is_long)
{
	int cameras = 0, refused = 0, error = 0;

	for (int i = 0; i < DEVICES_MAX; i++) {
		char device[PATH_MAX];
		int fd;

		snprintf(device, sizeof(device), "/dev/video%d", i);
		if (only != NULL && i > 0)
			break;
		if (only != NULL)
			snprintf(device, sizeof(device), "%s", only);
		fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT) {
			refused++;
			error = errno;
		}
		if (fd < 0)
			continue;
		cameras += print_camera(device, fd, is_long);
		close(fd);
	}
	if (cameras > 0)
		return CTL_OK;
	if (refused > 0)
		return ctl_fail(
			CTL_MISSING,
			"cannot open %s: %s; is the user in the group video, and is the camera free?",
			only != NULL ? only : "any camera", strerror(error));
	if (only != NULL)
		return ctl_fail(CTL_MISSING, "%.200s is no camera; fragctl cameras lists them",
				only);
	return ctl_fail(CTL_MISSING, "no /dev/video0 to /dev/video255 is a camera; plug one in");
}

int ctl_cameras(int argc, char **argv)
{
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	bool is_long = false;
	const struct fragi_flag table[] = {
		{.name = "controls",
		 .no_env = true,
		 .help = "also lists the controls, with their values and ranges",
		 .on = &is_long},
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl cameras",
		.usage = "[DEVICE] [flags]",
		.headline =
			"Lists the cameras of this machine, or one, with their pixel formats, sizes and frame rates, as the operator v4l2_video_capture takes them.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = operands.count > 1
			       ? ctl_fail(CTL_USAGE, "give one device, or none")
			       : list(operands.count > 0 ? operands.items[0] : NULL, is_long);
	}
	fragi_texts_fini(&operands);
	return code;
}
