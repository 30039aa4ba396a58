// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/videodev2.h>

#include "settings.h"

#define SIDE_MAX 32767
#define CAPTURE V4L2_BUF_TYPE_VIDEO_CAPTURE

int camera_ioctl(int fd, unsigned long request, void *argument)
{
	int r;

	do {
		r = ioctl(fd, request, argument);
	} while (r < 0 && errno == EINTR);
	return r;
}

int camera_failed(struct frag_err *err, const char *device, const char *what)
{
	int r = -errno;

	if (r == -ENODEV)
		return frag_err_set(err, r, "the camera %s was unplugged; plug it in again",
				    device);
	return frag_err_set(
		err, r, "the camera %s %s: %s; unplug it and plug it in again, or try another one",
		device, what, frag_strerror(r));
}

static int check_capabilities(int fd, const char *device, struct frag_err *err)
{
	struct v4l2_capability c = {0};
	uint32_t can;

	if (camera_ioctl(fd, VIDIOC_QUERYCAP, &c) < 0)
		return errno == ENOTTY || errno == EINVAL
			       ? frag_err_set(
					 err, -ENOTSUP,
					 "%s is not a camera; v4l2-ctl --list-devices lists cameras",
					 device)
			       : camera_failed(err, device, "does not answer");
	can = c.capabilities & V4L2_CAP_DEVICE_CAPS ? c.device_caps : c.capabilities;
	if (!(can & V4L2_CAP_VIDEO_CAPTURE))
		return frag_err_set(
			err, -ENOTSUP,
			"%s (%.32s) captures no video in one plane; a camera often has several devices, so try the next one",
			device, (const char *)c.card);
	if (!(can & V4L2_CAP_STREAMING))
		return frag_err_set(err, -ENOTSUP, "%s (%.32s) cannot stream; give another device",
				    device, (const char *)c.card);
	return 0;
}

static bool is_known(uint32_t pixel_format)
{
	const struct picture_format f = {
		.pixel_format = pixel_format, .columns = 2, .rows = 2, .row_bytes = 8};

	return picture_bytes(&f) > 0;
}

/* Lists the pixel formats of the camera. Returns the first that is known here; 0: there is none. */
static uint32_t list_formats(int fd, uint32_t wanted, bool is_native, bool *has_wanted, char *list,
			     size_t size)
{
	uint32_t known = 0;

	*has_wanted = false;
	list[0] = '\0';
	for (uint32_t i = 0; i < 64; i++) {
		struct v4l2_fmtdesc d = {.index = i, .type = CAPTURE};
		char text[PICTURE_FOURCC_TEXT];
		size_t used = strlen(list);

		if (camera_ioctl(fd, VIDIOC_ENUM_FMT, &d) < 0)
			break;
		if (known == 0 && is_known(d.pixelformat) &&
		    (is_native || !picture_is_bayer(d.pixelformat)))
			known = d.pixelformat;
		*has_wanted |= d.pixelformat == wanted;
		snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "",
			 picture_fourcc(d.pixelformat, text));
	}
	return known;
}

static int choose_pixel_format(int fd, const struct camera_request *request, uint32_t *out,
			       struct frag_err *err)
{
	char list[256], text[PICTURE_FOURCC_TEXT];
	bool has_wanted;
	uint32_t known = list_formats(fd, request->pixel_format, request->is_native, &has_wanted,
				      list, sizeof(list));

	if (request->pixel_format != 0 && !has_wanted)
		return frag_err_set(err, -ENOTSUP,
				    "the camera %s has no pixel_format %s; it has %s",
				    request->device, picture_fourcc(request->pixel_format, text),
				    list[0] != '\0' ? list : "none");
	if (picture_is_bayer(request->pixel_format) && !request->is_native)
		return frag_err_set(
			err, -ENOTSUP,
			"%s is a Bayer pattern, which is passed on as it is; give format: native, or another pixel_format",
			picture_fourcc(request->pixel_format, text));
	if (known == 0)
		return frag_err_set(
			err, -ENOTSUP,
			"the camera %s has the pixel formats %s, and frag knows YUYV, UYVY, MJPG, NV12, YU12, RGB3, BGR3, AB24, GREY, Y10, Y12 and Y16, and with format: native Bayer patterns of 8 and 16 bits; give another camera",
			request->device, list[0] != '\0' ? list : "(none)");
	*out = request->pixel_format != 0 ? request->pixel_format : known;
	return 0;
}

static void list_sizes(int fd, uint32_t pixel_format, char *list, size_t size)
{
	list[0] = '\0';
	for (uint32_t i = 0; i < 32; i++) {
		struct v4l2_frmsizeenum s = {.index = i, .pixel_format = pixel_format};
		size_t used = strlen(list);

		if (camera_ioctl(fd, VIDIOC_ENUM_FRAMESIZES, &s) < 0)
			break;
		if (s.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
			snprintf(list + used, size - used, "%s%ux%u", used > 0 ? ", " : "",
				 s.discrete.width, s.discrete.height);
			continue;
		}
		snprintf(list, size, "%ux%u to %ux%u", s.stepwise.min_width, s.stepwise.min_height,
			 s.stepwise.max_width, s.stepwise.max_height);
		break;
	}
}

static int set_format(int fd, const struct camera_request *request, struct picture_format *out,
		      struct frag_err *err)
{
	struct v4l2_format f = {.type = CAPTURE};
	struct v4l2_pix_format *pix = &f.fmt.pix;
	char sizes[256], text[PICTURE_FOURCC_TEXT];
	uint32_t pixel_format = 0;
	int r = choose_pixel_format(fd, request, &pixel_format, err);

	if (r < 0)
		return r;
	if (camera_ioctl(fd, VIDIOC_G_FMT, &f) < 0)
		return camera_failed(err, request->device, "does not say its format");
	pix->pixelformat = pixel_format;
	pix->bytesperline = 0;
	pix->sizeimage = 0;
	pix->field = V4L2_FIELD_ANY;
	if (request->columns != 0) {
		pix->width = request->columns;
		pix->height = request->rows;
	}
	if (camera_ioctl(fd, VIDIOC_S_FMT, &f) < 0)
		return errno == EBUSY
			       ? frag_err_set(
					 err, -EBUSY,
					 "the camera %s is used by another program; end that program, or give another device",
					 request->device)
			       : camera_failed(err, request->device, "takes no format");
	list_sizes(fd, pixel_format, sizes, sizeof(sizes));
	if (pix->pixelformat != pixel_format ||
	    (request->columns != 0 &&
	     (pix->width != request->columns || pix->height != request->rows)))
		return frag_err_set(
			err, -ERANGE,
			"the camera %s gives no pictures of %ux%u in %s; it offers %s; correct width and height",
			request->device, request->columns, request->rows,
			picture_fourcc(pixel_format, text),
			sizes[0] != '\0' ? sizes : "other sizes");
	*out = (struct picture_format){
		.pixel_format = pixel_format,
		.columns = pix->width,
		.rows = pix->height,
		.row_bytes = pixel_format == V4L2_PIX_FMT_MJPEG ? 0 : pix->bytesperline,
	};
	if (pix->width < 1 || pix->height < 1 || pix->width > SIDE_MAX || pix->height > SIDE_MAX ||
	    picture_bytes(out) == 0)
		return frag_err_set(
			err, -EPROTO,
			"the driver of %s describes pictures of %ux%u with rows of %u bytes, which cannot be; try another pixel_format",
			request->device, pix->width, pix->height, pix->bytesperline);
	return 0;
}

static double rate_of(const struct v4l2_fract *interval)
{
	return interval->numerator > 0 && interval->denominator > 0
		       ? (double)interval->denominator / interval->numerator
		       : 0.0;
}

static int set_rate(int fd, const struct camera_request *request, double *out, struct frag_err *err)
{
	struct v4l2_streamparm p = {.type = CAPTURE};
	const struct v4l2_fract *interval = &p.parm.capture.timeperframe;
	bool known = camera_ioctl(fd, VIDIOC_G_PARM, &p) == 0;

	*out = known ? rate_of(interval) : 0.0;
	if (request->frame_rate <= 0.0)
		return 0;
	if (known && p.parm.capture.capability & V4L2_CAP_TIMEPERFRAME) {
		p.parm.capture.timeperframe = (struct v4l2_fract){
			.numerator = 1000,
			.denominator = (uint32_t)lround(request->frame_rate * 1000.0)};
		if (camera_ioctl(fd, VIDIOC_S_PARM, &p) < 0)
			return camera_failed(err, request->device, "takes no frame rate");
		*out = rate_of(interval);
	}
	if (fabs(*out - request->frame_rate) > 0.01 * request->frame_rate)
		return frag_err_set(
			err, -ERANGE,
			"frame_rate is %g, and the camera %s gives %g pictures a second at this size; give that, or 0",
			request->frame_rate, request->device, *out);
	return 0;
}

/* Sets a control where the camera has it, and leaves it where not. */
static void set_if_there(int fd, uint32_t id, int32_t value)
{
	struct v4l2_control c = {.id = id, .value = value};

	camera_ioctl(fd, VIDIOC_S_CTRL, &c);
}

static int set_control(int fd, const char *device, const char *name, uint32_t id, int64_t value,
		       struct frag_err *err)
{
	struct v4l2_queryctrl q = {.id = id};
	struct v4l2_control c = {.id = id, .value = (int32_t)value};

	if (camera_ioctl(fd, VIDIOC_QUERYCTRL, &q) < 0 || q.flags & V4L2_CTRL_FLAG_DISABLED)
		return errno == ENODEV
			       ? camera_failed(err, device, "does not answer")
			       : frag_err_set(err, -ENOTSUP,
					      "the camera %s has no control for %s; leave %s out",
					      device, name, name);
	if (value < q.minimum || value > q.maximum)
		return frag_err_set(err, -ERANGE,
				    "%s is %lld, and the camera %s takes %d to %d in steps of %d",
				    name, (long long)value, device, q.minimum, q.maximum, q.step);
	if (camera_ioctl(fd, VIDIOC_S_CTRL, &c) < 0)
		return frag_err_set(err, -errno, "the camera %s does not take %s %lld: %s", device,
				    name, (long long)value, frag_strerror(-errno));
	return 0;
}

/* What is set by hand is switched from automatic first: cameras refuse it otherwise. */
static int set_controls(int fd, const struct camera_request *request, struct frag_err *err)
{
	int r = 0;

	if (request->exposure_time >= 0) {
		set_if_there(fd, V4L2_CID_EXPOSURE_AUTO, V4L2_EXPOSURE_MANUAL);
		r = set_control(fd, request->device, "exposure_time", V4L2_CID_EXPOSURE_ABSOLUTE,
				request->exposure_time, err);
	}
	if (r == 0 && request->gain >= 0) {
		set_if_there(fd, V4L2_CID_AUTOGAIN, 0);
		r = set_control(fd, request->device, "gain", V4L2_CID_GAIN, request->gain, err);
	}
	return r;
}

int camera_set_up(int fd, const struct camera_request *request, struct picture_format *out_format,
		  double *out_rate, struct frag_err *err)
{
	int r = check_capabilities(fd, request->device, err);

	if (r == 0)
		r = set_format(fd, request, out_format, err);
	if (r == 0)
		r = set_rate(fd, request, out_rate, err);
	if (r == 0)
		r = set_controls(fd, request, err);
	for (size_t i = 0; r == 0 && i < request->controls.count; i++)
		r = camera_set_named(fd, request->device, request->controls.items[i].key,
				     request->controls.items[i].text, err);
	return r;
}
