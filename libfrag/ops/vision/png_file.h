/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_PNG_FILE_H
#define VISION_PNG_FILE_H

#include "../frame.h"

/*
 * Writes a frame of u8 as a PNG file. The file appears under its name when it is complete, in place
 * of one that was there. Returns 0 or negative errno (-EIO for what libpng refuses). Thread: any.
 * Blocks: on the disk.
 */
int vision_png_write(const char *path, const struct frame *frame);

#endif
