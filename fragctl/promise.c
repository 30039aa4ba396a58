// SPDX-License-Identifier: Apache-2.0
#include <fragctl/promise.h>

#include <inttypes.h>

#include <base/units.h>
#include <fragctl/top_lines.h>

#define TICKS_MIN 10 /* from here on the first and the last period do not distort a rate */
#define DIFFERENCE 0.2

static double measured_hz(const struct fragi_look *look, const struct fragi_look_operator *op)
{
	return (double)op->ticks * 1e9 / (double)look->window_ns;
}

static bool has_promise(const struct fragi_look_operator *op)
{
	return op->promised_mhz > 0 || (op->budget_ns > 0 && op->compute.count > 0);
}

static const char *apart(double promised, double measured)
{
	return measured < promised * (1 - DIFFERENCE)   ? ", more than 20 % less"
	       : measured > promised * (1 + DIFFERENCE) ? ", more than 20 % more"
							: "";
}

static void print_operator(const struct fragi_look *look, const struct fragi_look_operator *op,
			   FILE *out)
{
	const double promised = (double)op->promised_mhz / 1000, measured = measured_hz(look, op);
	const bool is_sure = promised * (double)look->window_ns >= TICKS_MIN * 1e9;
	char a[24], b[24];

	fprintf(out, "  %s:", ctl_top_text(op->name));
	if (op->promised_mhz > 0)
		fprintf(out, " %.4g ticks a second, and it had %.4g%s", promised, measured,
			is_sure ? apart(promised, measured) : "");
	if (op->budget_ns > 0 && op->compute.count > 0)
		fprintf(out, "%s a tick in %s, and half of them took %s%s",
			op->promised_mhz > 0 ? ";" : "",
			fragi_format_duration((int64_t)op->budget_ns, a, sizeof(a)),
			fragi_format_duration((int64_t)op->compute.p50, b, sizeof(b)),
			apart((double)op->budget_ns, (double)op->compute.p50));
	fputc('\n', out);
}

/*
 * Of a flow between hosts: how long a message may take until it is received and its credit is back,
 * before its sender waits or loses messages; 0: nothing is promised.
 */
static uint64_t allowed_ns(const struct fragi_look *look, const struct fragi_look_flow *flow)
{
	const struct fragi_look_operator *from =
		flow->sender < look->operator_count ? &look->operators[flow->sender] : NULL;
	const struct fragi_look_operator *to =
		flow->receiver < look->operator_count ? &look->operators[flow->receiver] : NULL;

	if (from == NULL || to == NULL || from->host == to->host || from->promised_mhz == 0 ||
	    flow->latency.count == 0)
		return 0;
	return fragi_whole((double)flow->capacity * 1e12 / (double)from->promised_mhz);
}

static void print_flow(const struct fragi_look_flow *flow, uint64_t ns, FILE *out)
{
	char a[24], b[24], c[24];

	fprintf(out, "  %s -> %s: %s until a message is received and its credit is back",
		ctl_top_text(flow->from), ctl_top_text(flow->to),
		fragi_format_duration((int64_t)ns, a, sizeof(a)));
	fprintf(out, ", and half of them were received after %s",
		fragi_format_duration((int64_t)flow->latency.p50, b, sizeof(b)));
	if (flow->latency.error_ns > 0)
		fprintf(out, " +/- %s",
			fragi_format_duration((int64_t)flow->latency.error_ns, c, sizeof(c)));
	fprintf(out, "%s\n", flow->latency.p50 > ns ? ", which is too late" : "");
}

void ctl_promises_print(const struct fragi_look *look, FILE *out)
{
	bool is_first = true;
	uint64_t ns;

	for (uint32_t i = 0; look->window_ns > 0 && i < look->operator_count; i++) {
		if (!has_promise(&look->operators[i]))
			continue;
		if (is_first)
			fputs("rates and budgets promise:\n", out);
		is_first = false;
		print_operator(look, &look->operators[i], out);
	}
	for (uint32_t i = 0; !is_first && i < look->flow_count; i++)
		if ((ns = allowed_ns(look, &look->flows[i])) > 0)
			print_flow(&look->flows[i], ns, out);
}

static void json_operator(struct ctl_json *json, const struct fragi_look *look,
			  const struct fragi_look_operator *op)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "operator", op->name);
	ctl_json_unsigned(json, "promised_mhz", op->promised_mhz);
	ctl_json_unsigned(json, "measured_mhz", fragi_whole(measured_hz(look, op) * 1000 + 0.5));
	ctl_json_unsigned(json, "budget_ns", op->budget_ns);
	ctl_json_unsigned(json, "compute_p50_ns", op->compute.p50);
	ctl_json_close(json, '}');
}

static void json_flow(struct ctl_json *json, const struct fragi_look_flow *flow, uint64_t ns)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "from", flow->from);
	ctl_json_text(json, "to", flow->to);
	ctl_json_unsigned(json, "allowed_ns", ns);
	ctl_json_unsigned(json, "latency_p50_ns", flow->latency.p50);
	ctl_json_unsigned(json, "latency_error_ns", flow->latency.error_ns);
	ctl_json_close(json, '}');
}

void ctl_promises_json(struct ctl_json *json, const struct fragi_look *look)
{
	uint64_t ns;

	ctl_json_open(json, "promises", '[');
	for (uint32_t i = 0; look->window_ns > 0 && i < look->operator_count; i++)
		if (has_promise(&look->operators[i]))
			json_operator(json, look, &look->operators[i]);
	ctl_json_close(json, ']');
	ctl_json_open(json, "flow_promises", '[');
	for (uint32_t i = 0; look->window_ns > 0 && i < look->flow_count; i++)
		if ((ns = allowed_ns(look, &look->flows[i])) > 0)
			json_flow(json, &look->flows[i], ns);
	ctl_json_close(json, ']');
}
