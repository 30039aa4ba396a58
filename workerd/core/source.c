// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <string.h>

#include <base/alloc.h>

/*
 * The source of an application, from which its hosts are made, is as large as its graph. The driver
 * sends it with the first of the hosts that it creates here one after the other; the others have
 * the same. It is there once, for the hosts to come and for what report.c keeps.
 */
struct wrk_source {
	uint32_t users, keepers; /* keepers: those of users that are in report.c */
	uint32_t bytes;
	uint8_t data[];
};

static void release(struct wrk_source *source)
{
	if (source != NULL && --source->users == 0)
		fragi_free(source);
}

void wrk_source_forget(struct wrk_core *core)
{
	release(core->source);
	core->source = NULL;
}

static void take(struct wrk_core *core, const struct fw_host_create *create,
		 struct wrk_actions *actions)
{
	struct wrk_source *source = fragi_malloc(sizeof(*source) + create->source_bytes);

	wrk_source_forget(core);
	if (source == NULL) {
		actions->out_of_memory = true;
		return;
	}
	*source = (struct wrk_source){.users = 1, .bytes = create->source_bytes};
	memcpy(source->data, create->source, create->source_bytes);
	core->source = source;
}

const struct fw_message *wrk_source_complete(struct wrk_core *core, const struct fw_message *create,
					     struct wrk_actions *actions)
{
	struct fw_message *completed = &actions->completed;

	if (!create->create.has_last_source) {
		if (create->create.source_bytes != 0)
			take(core, &create->create, actions);
		return create;
	}
	if (core->source == NULL)
		return NULL;
	*completed = *create;
	completed->create.source = core->source->data;
	completed->create.source_bytes = core->source->bytes;
	completed->create.has_last_source = false;
	return completed;
}

void wrk_source_keep(struct wrk_core *core, struct wrk_kept *kept)
{
	wrk_source_drop(core, kept);
	if (core->source == NULL)
		return;
	kept->source = core->source;
	kept->source->users++;
	if (kept->source->keepers++ == 0)
		core->kept_bytes += kept->source->bytes;
}

void wrk_source_drop(struct wrk_core *core, struct wrk_kept *kept)
{
	if (kept->source != NULL && --kept->source->keepers == 0)
		core->kept_bytes -= kept->source->bytes;
	release(kept->source);
	kept->source = NULL;
}

void wrk_source_report(const struct wrk_kept *kept, uint32_t most, struct fw_host_create *out)
{
	if (kept->source == NULL || kept->source->bytes > most)
		return;
	out->source = kept->source->data;
	out->source_bytes = kept->source->bytes;
}
