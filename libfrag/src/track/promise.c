// SPDX-License-Identifier: Apache-2.0
#include <track/promise.h>

#include <inttypes.h>
#include <stdbool.h>

#include <base/units.h>

#define TICKS_MIN 10 /* from here on the first and the last period do not distort a rate */
#define DIFFERENCE 0.2

/* Ticks in 1000 s between its start and its end; 0: there are too few. */
static uint64_t measured_rate_mhz(const struct fragi_summary_operator *op)
{
	double lasted_s = ((double)op->time_ns + (double)op->waiting_ns) / 1e9;

	return op->compute.count >= TICKS_MIN && lasted_s > 0
		       ? fragi_whole((double)op->compute.count / lasted_s * 1000 + 0.5)
		       : 0;
}

static uint64_t measured_compute_ns(const struct fragi_summary_operator *op)
{
	return op->compute.count > 0 ? op->time_ns / op->compute.count : 0;
}

static bool differs(uint64_t predicted, uint64_t measured)
{
	double change = (double)measured - (double)predicted;

	return predicted > 0 && measured > 0 &&
	       (change > 0 ? change : -change) > DIFFERENCE * (double)predicted;
}

static void print_one(const char *fragment, const char *op, const char *what, const char *predicted,
		      const char *measured, bool *printed, FILE *out)
{
	if (!*printed)
		fputs("more than 20 % from what rates and budgets predict:\n", out);
	*printed = true;
	fprintf(out, "  %s.%s: %s predicted %s, measured %s\n", fragment != NULL ? fragment : "",
		op != NULL ? op : "", what, predicted, measured);
}

void fragi_summary_print_promises(const struct fragi_summary *summary, FILE *out)
{
	char a[32], b[32];
	bool printed = false;

	for (size_t f = 0; f < summary->fragment_count; f++)
		for (size_t i = 0; i < summary->fragments[f].operator_count; i++) {
			const struct fragi_summary_fragment *fragment = &summary->fragments[f];
			const struct fragi_summary_operator *op = &fragment->operators[i];
			uint64_t rate = measured_rate_mhz(op), compute = measured_compute_ns(op);

			if (differs(op->predicted_rate_mhz, rate)) {
				snprintf(a, sizeof(a), "%.4g a second",
					 (double)op->predicted_rate_mhz / 1000);
				snprintf(b, sizeof(b), "%.4g a second", (double)rate / 1000);
				print_one(fragment->name, op->name, "ticks", a, b, &printed, out);
			}
			if (differs(op->budget_ns, compute))
				print_one(
					fragment->name, op->name, "compute",
					fragi_format_duration((int64_t)op->budget_ns, a, sizeof(a)),
					fragi_format_duration((int64_t)compute, b, sizeof(b)),
					&printed, out);
		}
}

void fragi_summary_json_promise(const struct fragi_summary_operator *op, FILE *out)
{
	uint64_t rate = measured_rate_mhz(op), compute = measured_compute_ns(op);

	if (op->predicted_rate_mhz == 0 && op->budget_ns == 0)
		return;
	fprintf(out,
		", \"predicted\": {\"rate_mhz\": %" PRIu64 ", \"compute_ns\": %" PRIu64
		", \"measured_rate_mhz\": %" PRIu64 ", \"measured_compute_ns\": %" PRIu64
		", \"differs\": %s}",
		op->predicted_rate_mhz, op->budget_ns, rate, compute,
		differs(op->predicted_rate_mhz, rate) || differs(op->budget_ns, compute) ? "true"
											 : "false");
}
