// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/videodev2.h>

#include "settings.h"

#define NAME 33 /* the kernel's names have 32 bytes */
#define CONTROLS_MAX 256

/* "White Balance, Automatic" as v4l2-ctl writes it: white_balance_automatic. */
static void plain_name(const void *name, char out[NAME])
{
	const unsigned char *from = name;
	size_t n = 0;

	for (size_t i = 0; i < NAME - 1 && from[i] != '\0'; i++) {
		if (isalnum(from[i]))
			out[n++] = (char)tolower(from[i]);
		else if (n > 0 && out[n - 1] != '_')
			out[n++] = '_';
	}
	while (n > 0 && out[n - 1] == '_')
		n--;
	out[n] = '\0';
}

static bool is_settable(const struct v4l2_queryctrl *q)
{
	return (q->flags & (V4L2_CTRL_FLAG_DISABLED | V4L2_CTRL_FLAG_READ_ONLY)) == 0 &&
	       (q->type == V4L2_CTRL_TYPE_INTEGER || q->type == V4L2_CTRL_TYPE_BOOLEAN ||
		q->type == V4L2_CTRL_TYPE_MENU || q->type == V4L2_CTRL_TYPE_INTEGER_MENU);
}

/* Finds a control that can be set, and lists all of them. Returns 0; -ENOENT: there is none. */
static int find(int fd, const char *name, struct v4l2_queryctrl *out, char *list, size_t size)
{
	struct v4l2_queryctrl q = {.id = V4L2_CTRL_FLAG_NEXT_CTRL};
	int r = -ENOENT;

	list[0] = '\0';
	for (int i = 0; i < CONTROLS_MAX && camera_ioctl(fd, VIDIOC_QUERYCTRL, &q) == 0; i++) {
		size_t used = strlen(list);
		char plain[NAME];

		plain_name(q.name, plain);
		if (is_settable(&q))
			snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", plain);
		if (is_settable(&q) && strcmp(plain, name) == 0) {
			*out = q;
			r = 0;
		}
		q.id |= V4L2_CTRL_FLAG_NEXT_CTRL;
	}
	return r;
}

/* The number of an entry of a menu; -ENOENT: it has none of that name, and *list has them all. */
static int menu_entry(int fd, const struct v4l2_queryctrl *q, const char *value, char *list,
		      size_t size)
{
	int found = -ENOENT;

	list[0] = '\0';
	for (int32_t i = q->minimum; i <= q->maximum && i - q->minimum < CONTROLS_MAX; i++) {
		struct v4l2_querymenu entry = {.id = q->id, .index = (uint32_t)i};
		size_t used = strlen(list);
		char plain[NAME], wanted[NAME];

		if (camera_ioctl(fd, VIDIOC_QUERYMENU, &entry) < 0)
			continue;
		if (q->type == V4L2_CTRL_TYPE_INTEGER_MENU)
			snprintf(plain, sizeof(plain), "%lld", (long long)entry.value);
		else
			plain_name(entry.name, plain);
		plain_name(value, wanted);
		snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", plain);
		if (strcmp(plain, wanted) == 0)
			found = i;
	}
	return found;
}

/* Returns 1: *out is the value; 0: it is none; for a menu *list then has the entries. */
static int read_value(int fd, const struct v4l2_queryctrl *q, const char *value, int32_t *out,
		      char *list, size_t size)
{
	char *end = NULL;
	long long number;
	int entry;

	list[0] = '\0';
	if (q->type == V4L2_CTRL_TYPE_MENU || q->type == V4L2_CTRL_TYPE_INTEGER_MENU) {
		entry = menu_entry(fd, q, value, list, size);
		*out = entry;
		if (entry >= 0 || q->type == V4L2_CTRL_TYPE_INTEGER_MENU)
			return entry >= 0;
	}
	if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) {
		*out = value[0] == 't';
		return q->type == V4L2_CTRL_TYPE_BOOLEAN;
	}
	errno = 0;
	number = strtoll(value, &end, 10);
	*out = (int32_t)number;
	return errno == 0 && end != value && *end == '\0' && number >= q->minimum &&
	       number <= q->maximum;
}

int camera_set_named(int fd, const char *device, const char *name, const char *value,
		     struct frag_err *err)
{
	struct v4l2_queryctrl q = {0};
	struct v4l2_control c = {0};
	char list[400];

	if (find(fd, name, &q, list, sizeof(list)) < 0)
		return errno == ENODEV
			       ? camera_failed(err, device, "does not answer")
			       : frag_err_set(
					 err, -ENOTSUP,
					 "the camera %s has no control %.40s that can be set; it has %s",
					 device, name, list[0] != '\0' ? list : "none");
	c.id = q.id;
	if (!read_value(fd, &q, value, &c.value, list, sizeof(list)) && list[0] != '\0')
		return frag_err_set(err, -ERANGE,
				    "control %s is \"%.40s\", and the camera %s takes %s", name,
				    value, device, list);
	if (!read_value(fd, &q, value, &c.value, list, sizeof(list)))
		return frag_err_set(
			err, -ERANGE,
			"control %s is \"%.40s\", and the camera %s takes %d to %d in steps of %d",
			name, value, device, q.minimum, q.maximum, q.step);
	if (camera_ioctl(fd, VIDIOC_S_CTRL, &c) < 0)
		return frag_err_set(
			err, -errno,
			"the camera %s does not take %s %.40s: %s; an automatic control may have to be switched off before it",
			device, name, value, frag_strerror(-errno));
	return 0;
}
