/* SPDX-License-Identifier: Apache-2.0 */
#ifndef IMAGE_PNG_FILE_H
#define IMAGE_PNG_FILE_H

#include "../frame.h"

/*
 * Writes a frame of u8 or u16 as a PNG file. The file gets its name when it is complete, and
 * replaces an older one. Returns 0 or a negative errno; -EIO: libpng refused the frame.
 * Thread: any. Blocks: on the disk.
 */
int image_png_write(const char *path, const struct frame *frame);

#endif
