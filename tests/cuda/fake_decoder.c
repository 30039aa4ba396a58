// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_cuda.h"
#include "fake_decoder.h"
#include "modules/cuda/driver.h"

/*
 * A stand-in for NVIDIA's libnvcuvid.so.1, as far as FFmpeg uses it. It does not decode: each
 * picture is a pattern that depends on the bytes of its slices (fake_decoder.h), in memory of the
 * driver of tests, with gaps behind the rows and below the picture.
 *
 * FAKE_DECODER=NAME in the environment: the function NAME of it fails.
 */
#define EXPORT __attribute__((visibility("default")))
#define DECLARE(name, parameters) CUresult name parameters;
FRAGI_CU_FUNCTIONS(DECLARE)

#define SURFACES 32
#define PITCH 512 /* rows begin at multiples of it */
#define NOT_SUPPORTED 801

/* These are laid out as NVIDIA's interface has them, up to the last member that is used. */
struct caps {
	int codec, chroma_format;
	unsigned int bit_depth_minus8, reserved[3];
	unsigned char is_supported, decoders;
	unsigned short output_formats;
	unsigned int max_width, max_height, max_macroblocks;
	unsigned short min_width, min_height;
};

struct create_info {
	unsigned long width, height, decode_surfaces;
	int codec, chroma_format;
	unsigned long flags, bit_depth_minus8, intra_only, max_width, max_height, reserved;
	short left, top, right, bottom;
	int output_format, deinterlace_mode;
	unsigned long target_width, target_height, output_surfaces;
};

struct picture_params {
	int width_in_macroblocks, height_in_macroblocks, index;
	int field, bottom_field, second_field;
	unsigned int bytes;
	const unsigned char *slices;
};

struct decoder {
	size_t width, height, pitch, most_mapped, mapped;
	uint8_t seeds[SURFACES];
};

static int fails(const char *name)
{
	const char *asked = getenv("FAKE_DECODER");

	return asked != NULL && strcmp(asked, name) == 0;
}

EXPORT int cuvidGetDecoderCaps(struct caps *caps);
int cuvidGetDecoderCaps(struct caps *caps)
{
	caps->is_supported = !fails("cuvidGetDecoderCaps");
	caps->output_formats = 3; /* NV12, P016 */
	caps->max_width = caps->max_height = 4096;
	caps->max_macroblocks = 65536;
	caps->min_width = caps->min_height = 16;
	return 0;
}

EXPORT int cuvidCreateDecoder(struct decoder **out, const struct create_info *info);
int cuvidCreateDecoder(struct decoder **out, const struct create_info *info)
{
	if (fails("cuvidCreateDecoder") || info->decode_surfaces > SURFACES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		abort();
	(*out)->width = info->target_width;
	(*out)->height = info->target_height;
	(*out)->pitch = (info->target_width + PITCH - 1) / PITCH * PITCH;
	(*out)->most_mapped = info->output_surfaces;
	return 0;
}

EXPORT int cuvidDestroyDecoder(struct decoder *decoder);
int cuvidDestroyDecoder(struct decoder *decoder)
{
	if (decoder->mapped > 0) {
		fprintf(stderr, "fake_decoder: %zu frames are in use still\n", decoder->mapped);
		abort();
	}
	free(decoder);
	return 0;
}

EXPORT int cuvidDecodePicture(struct decoder *decoder, const struct picture_params *picture);
int cuvidDecodePicture(struct decoder *decoder, const struct picture_params *picture)
{
	uint8_t seed = 0;

	for (unsigned int i = 0; i < picture->bytes; i++)
		seed = (uint8_t)(seed * 31 + picture->slices[i]);
	decoder->seeds[picture->index] = seed;
	return 0;
}

EXPORT int cuvidMapVideoFrame64(struct decoder *decoder, int index, unsigned long long *address,
				unsigned int *pitch, const void *how);
int cuvidMapVideoFrame64(struct decoder *decoder, int index, unsigned long long *address,
			 unsigned int *pitch, const void *how)
{
	const size_t bytes = decoder->pitch * decoder->height * 3 / 2;
	uint8_t *picture = malloc(bytes);
	CUdeviceptr memory;

	if (decoder->mapped == decoder->most_mapped || picture == NULL ||
	    cuMemAlloc_v2(&memory, bytes) != CUDA_SUCCESS) {
		free(picture);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memset(picture, 0xee, bytes);
	for (size_t y = 0; y < decoder->height * 3 / 2; y++)
		for (size_t x = 0; x < decoder->width; x++)
			picture[y * decoder->pitch + x] =
				y < decoder->height ? fake_decoder_luma(decoder->seeds[index], x, y)
						    : fake_decoder_chroma(decoder->seeds[index], x,
									  y - decoder->height);
	if (fake_cuda_poke(memory, picture, bytes) != 0)
		abort();
	free(picture);
	decoder->mapped++;
	*address = memory;
	*pitch = (unsigned int)decoder->pitch;
	return 0;
}

EXPORT int cuvidUnmapVideoFrame64(struct decoder *decoder, unsigned long long address);
int cuvidUnmapVideoFrame64(struct decoder *decoder, unsigned long long address)
{
	decoder->mapped--;
	return (int)cuMemFree_v2(address);
}

/* FFmpeg looks for these too, and does not call them. */
#define UNUSED(name)                                                                               \
	EXPORT int name(void);                                                                     \
	int name(void)                                                                             \
	{                                                                                          \
		fputs("fake_decoder: " #name " is not there\n", stderr);                           \
		abort();                                                                           \
	}
UNUSED(cuvidGetDecodeStatus)
UNUSED(cuvidReconfigureDecoder)
UNUSED(cuvidCtxLockCreate)
UNUSED(cuvidCtxLockDestroy)
UNUSED(cuvidCtxLock)
UNUSED(cuvidCtxUnlock)
UNUSED(cuvidCreateVideoSource)
UNUSED(cuvidCreateVideoSourceW)
UNUSED(cuvidDestroyVideoSource)
UNUSED(cuvidSetVideoSourceState)
UNUSED(cuvidGetVideoSourceState)
UNUSED(cuvidGetSourceVideoFormat)
UNUSED(cuvidGetSourceAudioFormat)
UNUSED(cuvidCreateVideoParser)
UNUSED(cuvidParseVideoData)
UNUSED(cuvidDestroyVideoParser)
