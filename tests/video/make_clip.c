// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include "clip.h"

/* make_clip moving|still FRAMES: the clip as raw RGB on stdout, for `ffmpeg -f rawvideo`. */
int main(int argc, char **argv)
{
	static uint8_t rgb[CLIP_BYTES];
	int frames = argc == 3 ? atoi(argv[2]) : 0;

	if (frames < 1 || frames >= 1 << CLIP_BITS) {
		fprintf(stderr, "usage: make_clip moving|still FRAMES (1 to %d)\n",
			(1 << CLIP_BITS) - 1);
		return 2;
	}
	for (int n = 0; n < frames; n++) {
		clip_draw(rgb, n, strcmp(argv[1], "still") == 0);
		if (fwrite(rgb, CLIP_BYTES, 1, stdout) != 1) {
			perror("make_clip");
			return 1;
		}
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
