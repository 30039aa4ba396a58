// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/transports.h>

static const struct transport_row {
	const char *name;
	bool shares_memory;
} rows[] = {
	{"ucx", false},
	{"shm", true},
};

static const struct transport_row *find(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

const char *fragi_transport_name(size_t i)
{
	return i < FRAG_COUNT_OF(rows) ? rows[i].name : NULL;
}

bool fragi_transport_exists(const char *name)
{
	return find(name) != NULL;
}

bool fragi_transport_shares_memory(const char *name)
{
	const struct transport_row *row = find(name);

	return row != NULL && row->shares_memory;
}

const char *fragi_transport_of_shared_memory(void)
{
	size_t i = 0;

	while (!rows[i].shares_memory)
		i++;
	return rows[i].name;
}
