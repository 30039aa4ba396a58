// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <modules/cuda/driver.h>

#include "../expected.h"

/* What the module cuda says of each answer of NVIDIA's driver, which is played here. */
static CUresult names_fail;

static CUresult name_of(CUresult error, const char **out_name)
{
	*out_name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
	return names_fail;
}

static CUresult text_of(CUresult error, const char **out_text)
{
	*out_text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : NULL;
	return names_fail;
}

Test(cuda_check, each_answer_has_its_code)
{
	static const CUresult results[] = {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY,
					   CUDA_ERROR_NO_DEVICE, CUDA_ERROR_INVALID_DEVICE,
					   (CUresult)999};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	cu.cuGetErrorName = name_of;
	cu.cuGetErrorString = text_of;
	for (int i = 0; i < 2; i++, names_fail = (CUresult)1)
		for (size_t k = 0; k < sizeof(results) / sizeof(results[0]); k++) {
			struct frag_err err = FRAG_ERR_INIT;
			int r = cuda_check(results[k], &err, "cuInit of %d", 7);

			cr_expect_eq(cuda_check(results[k], NULL, "cuInit"), r);
			fprintf(out, "%d: %d, %s\n", (int)results[k], r, err.text);
		}
	fclose(out);
	expected_compare("cuda/answers", text);
	free(text);
}
