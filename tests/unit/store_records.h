/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_STORE_RECORDS_H
#define TESTS_UNIT_STORE_RECORDS_H

#include <stdio.h>

#include <driverd/core/record.h>

#include "draw.h"

/* Drawn records of a driver's state, and their text. */
static inline void show_record(FILE *out, const struct drv_record *r)
{
	static const char *const names[] = {
		[DRV_RECORD_NUMBERS] = "numbers",
		[DRV_RECORD_RUN] = "run",
		[DRV_RECORD_SOURCE] = "source",
		[DRV_RECORD_WANTED] = "wanted",
		[DRV_RECORD_END] = "end",
		[DRV_RECORD_SOURCELESS] = "sourceless",
		[DRV_RECORD_FORGOTTEN] = "forgotten",
		[DRV_RECORD_NOTICE] = "notice",
		[DRV_RECORD_PLACED] = "placed",
		[DRV_RECORD_DRAINED] = "drained",
		[DRV_RECORD_UNDRAINED] = "undrained",
		[DRV_RECORD_RESERVED] = "reserved",
		[DRV_RECORD_RELEASED] = "released",
	};

	fprintf(out, " %s%s", r->is_attempt ? "?" : "", names[r->kind]);
	if (r->run != 0)
		fprintf(out, " of %d", (int)r->run);
	if (r->epoch != 0)
		fprintf(out, " epoch %d", (int)r->epoch);
	if (r->notice != 0)
		fprintf(out, " %d from %d", (int)r->notice, (int)r->first_notice);
	if (r->bytes != 0)
		fprintf(out, " %zu", r->bytes);
	for (int i = 0; i < 3; i++) {
		const char *value = i == 0 ? r->name : i == 1 ? r->who : r->text;

		if (value != NULL)
			fprintf(out, " %s", value[0] != '\0' ? value : "''");
	}
	if (r->source_bytes != 0)
		fprintf(out, " [%.*s]", (int)r->source_bytes, (const char *)r->source);
	if (r->outcome_bytes != 0)
		fprintf(out, " (%.*s)", (int)r->outcome_bytes, (const char *)r->outcome);
	if (r->is_wanted)
		fprintf(out, " wanted");
	if (r->start_timeout_ns != 0 || r->ended_unix_ns != 0 || r->unix_ns != 0)
		fprintf(out, " times %d %d %d", (int)r->start_timeout_ns, (int)r->ended_unix_ns,
			(int)r->unix_ns);
	if (r->notice_kind != 0)
		fprintf(out, " kind %u", r->notice_kind);
}

static inline struct drv_record some_record(void)
{
	static const char *const workers[] = {"a", "b"};
	struct drv_record r = {.kind = (enum drv_record_kind)draw(DRV_RECORD_RELEASED + 1)};
	static uint64_t number;

	r.is_attempt = r.kind == DRV_RECORD_NUMBERS || r.kind == DRV_RECORD_RUN ||
		       r.kind >= DRV_RECORD_RESERVED || draw_percent(10);
	r.run = 1 + draw(2);
	if (r.kind == DRV_RECORD_NUMBERS)
		r.epoch = ++number;
	if (r.kind == DRV_RECORD_RUN || r.kind == DRV_RECORD_NOTICE) {
		r.name = "app";
		r.who = draw_percent(50) ? "alice" : "";
		r.is_wanted = draw_percent(50);
	}
	if (r.kind == DRV_RECORD_RUN) {
		r.epoch = ++number;
		r.start_timeout_ns = 5 + draw(3);
	}
	if (r.kind == DRV_RECORD_RUN || r.kind == DRV_RECORD_SOURCE) {
		r.source = "graph";
		r.source_bytes = 1 + draw(5);
	}
	if (r.kind == DRV_RECORD_WANTED || r.kind == DRV_RECORD_END)
		r.is_wanted = draw_percent(50);
	if (r.kind == DRV_RECORD_END) {
		r.outcome = "outcome";
		r.outcome_bytes = 1 + draw(7);
		r.ended_unix_ns = 11 + draw(3);
	}
	if (r.kind == DRV_RECORD_NOTICE) {
		r.notice = ++number;
		r.first_notice = draw((uint32_t)number) + 1;
		r.text = "what happened";
		r.unix_ns = 21 + draw(3);
		r.notice_kind = 1 + draw(3);
	}
	if (r.kind == DRV_RECORD_PLACED)
		r.text = draw_percent(50) ? "a\tb" : "b";
	if (r.kind == DRV_RECORD_DRAINED || r.kind == DRV_RECORD_UNDRAINED) {
		r.run = 0;
		r.name = DRAW_OF(workers);
	}
	if (r.kind >= DRV_RECORD_RESERVED) {
		r.run = 0;
		r.bytes = 1000 * (1 + draw(3));
	}
	return r;
}

#endif
