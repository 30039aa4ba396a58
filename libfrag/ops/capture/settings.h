/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_SETTINGS_H
#define CAPTURE_SETTINGS_H

#include "camera.h"

/* ioctl that goes on after a signal. Returns as ioctl does. */
int camera_ioctl(int fd, unsigned long request, void *argument);
/* Words the failure of a call that errno describes. Returns the negative errno. */
int camera_failed(struct frag_err *err, const char *device, const char *what);

/*
 * Checks that a device is a camera that can stream, and sets its format, rate and controls. Returns
 * 0 or a failure with a sentence.
 */
int camera_set_up(int fd, const struct camera_request *request, struct picture_format *out_format,
		  double *out_rate, struct frag_err *err);

/*
 * Sets a control by its name, as v4l2-ctl writes it: brightness, white_balance_automatic.
 * - value: a number, true, false, or the name of an entry of a menu
 * Returns 0 or a failure with a sentence.
 */
int camera_set_named(int fd, const char *device, const char *name, const char *value,
		     struct frag_err *err);

#endif
