// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/transports.h>

static const char *const names[] = {"ucx", "shm"};

const char *fragi_transport_name(size_t i)
{
	return i < FRAG_COUNT_OF(names) ? names[i] : NULL;
}

bool fragi_transport_exists(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}
