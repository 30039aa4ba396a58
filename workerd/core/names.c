// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/names.h>

void wrk_host_name_fragments(struct wrk_host *host, const struct fw_host_create *create)
{
	struct fragi_names names = {.text = host->fragments, .size = sizeof(host->fragments)};

	for (uint32_t i = 0; i < create->fragment_count; i++)
		fragi_names_add(&names, "%s", create->fragments[i]);
}

void wrk_host_name_operators(struct wrk_host *host, const struct fw_host_prepared *prepared,
			     struct wrk_actions *actions)
{
	uint32_t count = 0;

	if (host->names != NULL)
		return;
	for (uint32_t i = 0; i < prepared->fragment_count; i++)
		count += prepared->fragments[i].op_count;
	host->names = fragi_calloc(count == 0 ? 1 : count, sizeof(*host->names));
	if (host->names == NULL) {
		actions->out_of_memory = true;
		return;
	}
	for (uint32_t i = 0; i < prepared->fragment_count; i++) {
		for (uint32_t k = 0; k < prepared->fragments[i].op_count; k++) {
			char name[2 * FRAG_NAME_MAX + 2];

			snprintf(name, sizeof(name), "%.63s.%.63s", prepared->fragments[i].name,
				 prepared->fragments[i].ops[k].name);
			host->names[host->name_count] = fragi_strdup(name);
			if (host->names[host->name_count] == NULL) {
				actions->out_of_memory = true;
				return;
			}
			host->name_count++;
		}
	}
}
