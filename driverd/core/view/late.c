// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <string.h>

/* Where messages were late: what hosts count at the places of the paths that end in them. */

/* On which worker an operator runs, "fragment1.detect"; NULL: there are none, or it is not known */
static const char *worker_of(const struct drv_app *app, const char *op)
{
	for (size_t i = 0; !app->core->config.is_local && i < app->spec->fragment_count; i++) {
		const char *name = app->spec->fragments[i].name;
		const size_t length = strlen(name);

		if (strncmp(op, name, length) == 0 && op[length] == '.')
			return app->fragments[i].host != NULL ? app->fragments[i].host->worker
							      : NULL;
	}
	return NULL;
}

/* What all processes of a host have counted at a place. Returns whether that is anything. */
static bool count(const struct drv_host *host, uint32_t place, uint64_t late[FRAGI_BLAME_CAUSES])
{
	const struct fw_host_stats *now =
		host->now.stats != NULL && !host->now.is_doubted ? &host->now.stats->stats : NULL;
	bool is_any = false;

	for (int i = 0; i < FRAGI_BLAME_CAUSES; i++) {
		late[i] = 0;
		if (place < host->past.sums.late_count)
			late[i] += host->past.sums.lates[place].late[i];
		if (now != NULL && place < now->late_count)
			late[i] += now->lates[place].late[i];
		is_any = is_any || late[i] > 0;
	}
	return is_any;
}

int drv_view_late(const struct drv_app *app, const struct drv_view_at *at,
		  struct fragi_arena *arena, struct drv_view_operator *op)
{
	const struct drv_host *host = &app->hosts[at->host];
	const struct fw_host_prepared *tables = &host->tables->prepared;
	struct fragi_late_place *rows, row;
	uint32_t row_count = 0;

	if (op->row.path_misses == 0 || tables->late_place_count == 0)
		return 0;
	rows = fragi_arena_alloc(arena, tables->late_place_count * sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < tables->late_place_count; i++) {
		const struct fw_late_place *place = &tables->late_places[i];

		if (place->fragment != at->in_host || place->op != op->number ||
		    !count(host, i, row.late))
			continue;
		row.from = place->from;
		row.at = place->at;
		row.worker = worker_of(app, place->at);
		rows[row_count++] = row;
	}
	op->row.late_places = rows;
	op->row.late_place_count = row_count;
	return 0;
}
