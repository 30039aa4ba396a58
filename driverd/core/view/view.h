/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_VIEW_H
#define DRV_VIEW_H

#include <base/arena.h>
#include <base/summary.h>
#include <text/spec.h>
#include <wire/message.h>

/*
 * A part of state.h: what is known of an application and its parts in this step, as rows: for the
 * summary and for clients. They can be asked for in every step, also when the application has
 * ended, and each costs the same whatever the size of the application. Nothing else reads what
 * hosts have counted.
 *
 * A row is what the present process of a host has last reported, and the sum of all processes
 * before it. While a host runs, the counts are those of its last report: `exact` says that the
 * counts of all processes are known, `lost` is what is lost for certain, and all that is missing
 * beside that is in flight (track/account.h). Sent = delivered + dropped + lost + in flight in
 * every row.
 *
 * Texts are borrowed until the next step.
 */
struct drv_app;
struct drv_host;

/* Fills in the row of an application, without its hosts and parameters. O(hosts) */
void drv_view_application(const struct drv_app *app, struct fw_application_row *out);
uint64_t drv_view_delivered(const struct drv_app *app); /* messages of all flows */
/*
 * Returns the time from the start to the first message, if the driver and hosts share a clock; 0:
 * none.
 */
int64_t drv_view_first_message_ns(const struct drv_app *app);
void drv_view_host(const struct drv_host *host, struct fw_host_row *out);
/* index: in the spec. Its operators are counted and not shown. */
void drv_view_fragment(const struct drv_app *app, uint32_t index,
		       struct fragi_summary_fragment *out);

/* The position of a visitor of operators, host by host; zeroed: before the first one. */
struct drv_view_at {
	uint32_t host, in_host; /* a fragment of that host */
	uint32_t op, row;       /* its number in the fragment, and in the ledger of the host */
};
struct drv_view_operator {
	uint32_t fragment, number; /* index in the spec; number in the fragment */
	bool is_running;           /* it was in a callback when the host counted */
	bool has_ended;            /* and will not tick again */
	const char *pools;         /* whose memory its conditions wait for; NULL: none */
	struct fragi_summary_operator row;
};
/* The next operator. Returns false when there is none. Those of a host appear when it is prepared.
 */
bool drv_view_operator(const struct drv_app *app, struct drv_view_at *at,
		       struct drv_view_operator *out);
/*
 * Fills in at which places messages were late whose paths end in the operator.
 * - at: behind it
 * Returns 0 or -ENOMEM.
 */
int drv_view_late(const struct drv_app *app, const struct drv_view_at *at,
		  struct fragi_arena *arena, struct drv_view_operator *op);
size_t drv_view_operator_count(const struct drv_app *app); /* how many it would return */
/* "fragment1.tx", which was in a callback when the host sent its last stats; NULL: none was. */
const char *drv_view_busy(const struct drv_host *host);

size_t drv_view_flow_count(const struct drv_app *app); /* 0 until they are resolved */
/* What is counted of a flow, with its capacity and policy, and without other texts. */
void drv_view_counts(const struct drv_app *app, size_t index, struct fragi_summary_flow *out);
/* New texts are put into the arena. Returns 0 or -ENOMEM. */
int drv_view_flow(const struct drv_app *app, size_t index, struct fragi_arena *arena,
		  struct fragi_summary_flow *out);

/* How a flow of the graph travels to one of its ends, and why, also before anything runs. */
void drv_view_route(const struct drv_app *app, const struct fragi_spec_flow *flow,
		    const struct fragi_spec_end *to, struct fw_route_row *out);

/* report.c: fills app->summary. Returns 0, -EAGAIN (call it again in the next step), -ENOMEM. */
int drv_report(struct drv_app *app);

#endif
