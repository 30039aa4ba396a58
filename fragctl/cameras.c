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
#include <fragctl/json.h>

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

struct listing {
	bool is_json, has_controls;
	struct ctl_json json; /* begun with the first camera */
	int count;
};

/* Text of a device may hold anything. out: size + 1 bytes */
static const char *text_of(const void *text, size_t size, char *out)
{
	const unsigned char *from = text;
	size_t i = 0;

	for (; i < size && from[i] != '\0'; i++)
		out[i] = isprint(from[i]) ? (char)from[i] : '?';
	out[i] = '\0';
	return out;
}

static const char *fourcc_of(uint32_t format, char out[5])
{
	int count = 0;

	for (int i = 0; i < 4; i++) {
		int c = (int)(format >> (8 * i) & 0xff);

		if (c != ' ')
			out[count++] = (char)(isprint(c) ? c : '?');
	}
	out[count] = '\0';
	return out;
}

/* "White Balance, Automatic" is white_balance_automatic in the parameter controls. */
static const char *control_name_of(const struct v4l2_queryctrl *q, char out[sizeof(q->name) + 1])
{
	size_t count = 0;

	for (size_t i = 0; i < sizeof(q->name) && q->name[i] != '\0'; i++) {
		if (isalnum(q->name[i]))
			out[count++] = (char)tolower(q->name[i]);
		else if (count > 0 && out[count - 1] != '_')
			out[count++] = '_';
	}
	if (count > 0 && out[count - 1] == '_')
		count--;
	out[count] = '\0';
	return out;
}

/* The path that stays when the number changes; there is none without udev. */
static void write_stable_paths(struct listing *l, const char *device)
{
	DIR *folder = opendir(BY_ID);
	const struct dirent *entry;

	if (l->is_json)
		ctl_json_open(&l->json, "stable_paths", '[');
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		char path[PATH_MAX], target[PATH_MAX];

		snprintf(path, sizeof(path), BY_ID "/%s", entry->d_name);
		if (realpath(path, target) == NULL || strcmp(target, device) != 0)
			continue;
		if (l->is_json)
			ctl_json_text(&l->json, NULL, path);
		else
			printf("  device: %s\n", path);
	}
	if (folder != NULL)
		closedir(folder);
	if (l->is_json)
		ctl_json_close(&l->json, ']');
}

static void write_rates(struct listing *l, int fd, uint32_t format, uint32_t width, uint32_t height)
{
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct v4l2_frmivalenum v = {
			.index = i, .pixel_format = format, .width = width, .height = height};

		if (ask(fd, VIDIOC_ENUM_FRAMEINTERVALS, &v) < 0 ||
		    v.type != V4L2_FRMIVAL_TYPE_DISCRETE || v.discrete.numerator == 0)
			break;
		if (!l->is_json)
			printf("%s", i == 0 ? " at " : ", ");
		fprintf(l->is_json ? ctl_json_value(&l->json, NULL) : stdout, "%g",
			(double)v.discrete.denominator / v.discrete.numerator);
	}
}

static void write_size(struct listing *l, int fd, uint32_t format, uint32_t width, uint32_t height)
{
	if (!l->is_json) {
		printf("    %ux%u", width, height);
		write_rates(l, fd, format, width, height);
		putchar('\n');
		return;
	}
	ctl_json_unsigned(&l->json, "width", width);
	ctl_json_unsigned(&l->json, "height", height);
	ctl_json_open(&l->json, "frame_rates", '[');
	write_rates(l, fd, format, width, height);
	ctl_json_close(&l->json, ']');
}

static void write_range(struct listing *l, const struct v4l2_frmsize_stepwise *range)
{
	if (!l->is_json) {
		printf("    %ux%u to %ux%u\n", range->min_width, range->min_height,
		       range->max_width, range->max_height);
		return;
	}
	ctl_json_unsigned(&l->json, "min_width", range->min_width);
	ctl_json_unsigned(&l->json, "min_height", range->min_height);
	ctl_json_unsigned(&l->json, "max_width", range->max_width);
	ctl_json_unsigned(&l->json, "max_height", range->max_height);
}

static void write_sizes(struct listing *l, int fd, uint32_t format)
{
	bool is_discrete = true;

	for (uint32_t i = 0; i < ENTRIES_MAX && is_discrete; i++) {
		struct v4l2_frmsizeenum s = {.index = i, .pixel_format = format};

		if (ask(fd, VIDIOC_ENUM_FRAMESIZES, &s) < 0)
			break;
		is_discrete = s.type == V4L2_FRMSIZE_TYPE_DISCRETE;
		if (l->is_json)
			ctl_json_open(&l->json, NULL, '{');
		if (is_discrete)
			write_size(l, fd, format, s.discrete.width, s.discrete.height);
		else
			write_range(l, &s.stepwise);
		if (l->is_json)
			ctl_json_close(&l->json, '}');
	}
}

static void write_format(struct listing *l, int fd, const struct v4l2_fmtdesc *d)
{
	char name[5], about[sizeof(d->description) + 1];

	fourcc_of(d->pixelformat, name);
	text_of(d->description, sizeof(d->description), about);
	if (!l->is_json) {
		printf("  pixel_format: %s%s%s%s\n", name, about[0] != '\0' ? " (" : "", about,
		       about[0] != '\0' ? ")" : "");
		write_sizes(l, fd, d->pixelformat);
		return;
	}
	ctl_json_open(&l->json, NULL, '{');
	ctl_json_text(&l->json, "pixel_format", name);
	ctl_json_optional(&l->json, "description", about);
	ctl_json_open(&l->json, "sizes", '[');
	write_sizes(l, fd, d->pixelformat);
	ctl_json_close(&l->json, ']');
	ctl_json_close(&l->json, '}');
}

static void write_formats(struct listing *l, int fd)
{
	if (l->is_json)
		ctl_json_open(&l->json, "formats", '[');
	for (uint32_t i = 0; i < ENTRIES_MAX; i++) {
		struct v4l2_fmtdesc d = {.index = i, .type = CAPTURE};

		if (ask(fd, VIDIOC_ENUM_FMT, &d) < 0)
			break;
		write_format(l, fd, &d);
	}
	if (l->is_json)
		ctl_json_close(&l->json, ']');
}

static void write_menu(struct listing *l, int fd, const struct v4l2_queryctrl *q)
{
	for (int32_t i = q->minimum, n = 0; i <= q->maximum && n < ENTRIES_MAX; i++, n++) {
		struct v4l2_querymenu m = {.id = q->id, .index = (uint32_t)i};
		char name[sizeof(m.name) + 1];

		if (ask(fd, VIDIOC_QUERYMENU, &m) < 0)
			continue;
		if (q->type == V4L2_CTRL_TYPE_INTEGER_MENU)
			snprintf(name, sizeof(name), "%lld", (long long)m.value);
		else
			text_of(m.name, sizeof(m.name), name);
		if (!l->is_json) {
			printf(", %d: %s", i, name);
			continue;
		}
		ctl_json_open(&l->json, NULL, '{');
		ctl_json_number(&l->json, "value", i);
		ctl_json_text(&l->json, "name", name);
		ctl_json_close(&l->json, '}');
	}
}

static void write_control(struct listing *l, int fd, const struct v4l2_queryctrl *q, int32_t value)
{
	bool is_menu = q->type == V4L2_CTRL_TYPE_MENU || q->type == V4L2_CTRL_TYPE_INTEGER_MENU;
	char name[sizeof(q->name) + 1];

	control_name_of(q, name);
	if (!l->is_json) {
		printf("  control %s: %d, from %d to %d", name, value, q->minimum, q->maximum);
		if (is_menu)
			write_menu(l, fd, q);
		putchar('\n');
		return;
	}
	ctl_json_open(&l->json, NULL, '{');
	ctl_json_text(&l->json, "name", name);
	ctl_json_number(&l->json, "value", value);
	ctl_json_number(&l->json, "min", q->minimum);
	ctl_json_number(&l->json, "max", q->maximum);
	ctl_json_open(&l->json, "menu", '[');
	if (is_menu)
		write_menu(l, fd, q);
	ctl_json_close(&l->json, ']');
	ctl_json_close(&l->json, '}');
}

static void write_controls(struct listing *l, int fd)
{
	struct v4l2_queryctrl q = {.id = V4L2_CTRL_FLAG_NEXT_CTRL};

	if (l->is_json)
		ctl_json_open(&l->json, "controls", '[');
	for (int i = 0; i < ENTRIES_MAX && ask(fd, VIDIOC_QUERYCTRL, &q) == 0; i++) {
		struct v4l2_control value = {.id = q.id};

		if (!(q.flags & V4L2_CTRL_FLAG_DISABLED) && ask(fd, VIDIOC_G_CTRL, &value) == 0)
			write_control(l, fd, &q, value.value);
		q.id |= V4L2_CTRL_FLAG_NEXT_CTRL;
	}
	if (l->is_json)
		ctl_json_close(&l->json, ']');
}

static void write_head(struct listing *l, const char *device, const struct v4l2_capability *c)
{
	char card[sizeof(c->card) + 1], driver[sizeof(c->driver) + 1], bus[sizeof(c->bus_info) + 1];

	text_of(c->card, sizeof(c->card), card);
	text_of(c->driver, sizeof(c->driver), driver);
	text_of(c->bus_info, sizeof(c->bus_info), bus);
	if (!l->is_json) {
		printf("%s: %s (%s, %s)\n", device, card, driver, bus);
		return;
	}
	if (l->count == 0) {
		l->json = ctl_json_begin(stdout);
		ctl_json_open(&l->json, "cameras", '[');
	}
	ctl_json_open(&l->json, NULL, '{');
	ctl_json_text(&l->json, "device", device);
	ctl_json_text(&l->json, "name", card);
	ctl_json_text(&l->json, "driver", driver);
	ctl_json_text(&l->json, "bus", bus);
}

/* A device that is no camera, such as one for metadata, is left out. */
static void write_camera(struct listing *l, const char *device, int fd)
{
	struct v4l2_capability c = {0};
	uint32_t can;

	if (ask(fd, VIDIOC_QUERYCAP, &c) < 0)
		return;
	can = c.capabilities & V4L2_CAP_DEVICE_CAPS ? c.device_caps : c.capabilities;
	if (!(can & V4L2_CAP_VIDEO_CAPTURE))
		return;
	write_head(l, device, &c);
	write_stable_paths(l, device);
	write_formats(l, fd);
	if (l->has_controls)
		write_controls(l, fd);
	if (l->is_json)
		ctl_json_close(&l->json, '}');
	l->count++;
}

static int list(const char *only, struct listing *l)
{
	int refused = 0, error = 0;

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
		write_camera(l, device, fd);
		close(fd);
	}
	if (l->count > 0 && l->is_json) {
		ctl_json_close(&l->json, ']');
		ctl_json_end(&l->json);
	}
	if (l->count > 0)
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
	struct listing listing = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "controls",
		 .no_env = true,
		 .help = "also lists the controls, with their values and ranges",
		 .on = &listing.has_controls},
		CTL_OUTPUT_FLAG(output),
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
		code = CTL_USAGE;
		if (operands.count > 1)
			ctl_fail(CTL_USAGE, "give one device, or none");
		else if (ctl_output(output, &listing.is_json))
			code = list(operands.count > 0 ? operands.items[0] : NULL, &listing);
	}
	fragi_texts_fini(&operands);
	return code;
}
