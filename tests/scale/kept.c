// SPDX-License-Identifier: Apache-2.0
#include "kept.h"

#include <stdlib.h>
#include <string.h>

static void *copy(const void *bytes, size_t size)
{
	void *made = malloc(size);

	if (made == NULL)
		abort();
	return memcpy(made, bytes, size);
}

static char *copy_text(const char *text)
{
	return text != NULL ? copy(text, strlen(text) + 1) : NULL;
}

static void run_fini(struct kept_run *run)
{
	free((void *)(uintptr_t)run->record.name);
	free((void *)(uintptr_t)run->record.who);
	free((void *)(uintptr_t)run->record.source);
	free(run->placed);
}

/* NULL: it has ended, or was never written. */
static struct kept_run *find(const struct kept *kept, uint64_t run)
{
	for (size_t i = kept->count; i-- > 0;)
		if (kept->runs[i].record.run == run)
			return &kept->runs[i];
	return NULL;
}

static void add(struct kept *kept, const struct drv_record *record)
{
	struct kept_run *run;

	if (kept->count == kept->capacity) {
		kept->capacity = kept->capacity == 0 ? 64 : kept->capacity * 2;
		kept->runs = realloc(kept->runs, kept->capacity * sizeof(*kept->runs));
		if (kept->runs == NULL)
			abort();
	}
	run = &kept->runs[kept->count++];
	*run = (struct kept_run){.record = *record};
	run->record.name = copy_text(record->name);
	run->record.who = copy_text(record->who);
	run->record.source = copy(record->source, record->source_bytes);
}

void kept_take(struct kept *kept, const struct drv_record *record)
{
	struct kept_run *run = find(kept, record->run);

	switch (record->kind) {
	case DRV_RECORD_NUMBERS:
		kept->epoch = record->epoch;
		kept->run = record->run;
		break;
	case DRV_RECORD_RUN:
		add(kept, record);
		break;
	case DRV_RECORD_PLACED:
		if (run == NULL)
			break;
		free(run->placed);
		run->placed = copy_text(record->text);
		break;
	case DRV_RECORD_END:
	case DRV_RECORD_FORGOTTEN:
		if (run == NULL)
			break;
		run_fini(run);
		*run = kept->runs[--kept->count];
		break;
	default: /* nothing of a fleet needs the others */
		break;
	}
}

void kept_restore(const struct kept *kept, struct drv_core *core)
{
	int r = drv_core_restore(core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
							    .epoch = kept->epoch,
							    .run = kept->run});

	for (size_t i = 0; i < kept->count && r == 0; i++)
		if (kept->runs[i].placed != NULL)
			r = drv_core_restore(core,
					     &(struct drv_record){.kind = DRV_RECORD_PLACED,
								  .run = kept->runs[i].record.run,
								  .text = kept->runs[i].placed});
	for (size_t i = 0; i < kept->count && r == 0; i++)
		r = drv_core_restore(core, &kept->runs[i].record);
	if (r < 0)
		abort();
}

void kept_fini(struct kept *kept)
{
	for (size_t i = 0; i < kept->count; i++)
		run_fini(&kept->runs[i]);
	free(kept->runs);
	*kept = (struct kept){0};
}
