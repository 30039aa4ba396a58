// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/alloc.h>
#include <text/spec.h>

/* A packed source, as a workerd gets it from its driver and a fraghost from its workerd. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = fuzz_copy(bytes, size);
	struct fragi_source source;
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	void *packed = NULL;
	size_t packed_size = 0;
	int r = fragi_source_unpack(copy, size, &source);

	free(copy);
	fuzz_check(r == 0 || r == -EBADMSG);
	if (r < 0)
		return 0;
	fuzz_check(fragi_source_pack(&source.source, &packed, &packed_size) == 0);
	fuzz_check(packed_size == size && memcmp(packed, bytes, size) == 0);
	fragi_free(packed);
	r = fragi_spec_parse(&source.source, &diag, &spec);
	fragi_source_fini(&source); /* the spec holds copies */
	fuzz_check((r == 0) == (spec != NULL));
	if (spec != NULL)
		(void)fragi_spec_arguments_help(spec);
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	return 0;
}
