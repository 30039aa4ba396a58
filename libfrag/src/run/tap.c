// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/stamp.h>
#include <run/state.h>
#include <sched/tap.h>

#define TRACE_CHUNKS_MAX 64 /* at once: most of a ring, and the names of 10,000 operators */

/*
 * The taps of a host. Each is wanted for a while, again and again, so it ends by itself when nobody
 * wants it any more. Its memory stays for the next one.
 */

static struct fragi_run_tap *find(struct fragi_run *run, uint32_t id)
{
	for (size_t i = 0; i < FRAGI_RUN_TAPS_MAX; i++)
		if (run->taps[i].id == id)
			return &run->taps[i];
	return NULL;
}

/* One that nobody uses; NULL: there is none. */
static struct fragi_run_tap *find_free(struct fragi_run *run)
{
	for (size_t i = 0; i < FRAGI_RUN_TAPS_MAX; i++)
		if (run->taps[i].id == 0 &&
		    (run->taps[i].tap == NULL || fragi_tap_is_free(run->taps[i].tap)))
			return &run->taps[i];
	return NULL;
}

static struct frag_op *find_output(struct fragi_run *run, const struct fragi_run_tap_wish *wish)
{
	struct frag_fragment *fragment = wish->fragment < run->fragment_count
						 ? run->fragments[wish->fragment].fragment
						 : NULL;
	struct frag_op *op =
		fragment != NULL && wish->op < fragment->op_count ? fragment->ops[wish->op] : NULL;

	return op != NULL && wish->port < op->port_count && op->ports[wish->port].dir == FRAG_OUT
		       ? op
		       : NULL;
}

static void end(struct fragi_run *run, struct fragi_run_tap *own)
{
	own->id = 0;
	if (own->trace == NULL) {
		fragi_tap_end(own->tap);
		return;
	}
	fragi_run_trace_end(run, own->trace);
	own->trace = NULL;
}

static int begin(struct fragi_run *run, const struct fragi_run_tap_wish *wish)
{
	struct frag_op *op = wish->traces ? NULL : find_output(run, wish);
	struct fragi_run_tap *own = find_free(run);
	int r;

	if (op == NULL && !wish->traces)
		return -EINVAL;
	if (own == NULL)
		return -EBUSY;
	if (wish->traces) {
		own->trace = fragi_run_trace_begin(run, wish->id);
		own->id = own->trace != NULL ? wish->id : 0;
		return own->trace != NULL ? 0 : -ENOMEM;
	}
	if (own->tap == NULL)
		own->tap = fragi_tap_create();
	if (own->tap == NULL)
		return -ENOMEM;
	r = fragi_tap_begin(own->tap, op, wish->port, wish->every_ns, wish->pictures);
	if (r == 0)
		own->id = wish->id;
	return r;
}

int fragi_run_tap(struct fragi_run *run, const struct fragi_run_tap_wish *wish)
{
	struct fragi_run_tap *own = find(run, wish->id);
	int r;

	if (wish->id == 0)
		return -EINVAL;
	if (own == NULL && wish->for_ns > 0) {
		r = begin(run, wish);
		if (r < 0)
			return r;
		own = find(run, wish->id);
	}
	if (own != NULL && wish->for_ns > 0)
		own->until_ns = fragi_now_ns() + wish->for_ns;
	else if (own != NULL)
		end(run, own);
	return 0;
}

bool fragi_run_passed(struct fragi_run *run, fragi_run_passed_fn take, void *arg)
{
	int64_t now_ns = fragi_now_ns();
	bool has_taps = false;

	fragi_run_probe(run);
	for (size_t i = 0; i < FRAGI_RUN_TAPS_MAX; i++) {
		struct fragi_run_tap *own = &run->taps[i];
		const struct fragi_passed *passed;

		if (own->id == 0)
			continue;
		if (now_ns >= own->until_ns) {
			end(run, own);
			continue;
		}
		has_taps = true;
		if (own->trace != NULL)
			continue;
		passed = fragi_tap_passed(own->tap);
		if (passed != NULL && take(arg, own->id, passed))
			fragi_tap_next(own->tap);
	}
	return has_taps;
}

void fragi_run_traced(struct fragi_run *run, bool is_end, fragi_run_traced_fn take, void *arg)
{
	for (size_t i = 0; atomic_load(&run->started) && i < FRAGI_RUN_TAPS_MAX; i++) {
		struct fragi_run_tap *own = &run->taps[i];

		if (own->id == 0 || own->trace == NULL)
			continue;
		for (int chunks = 0; chunks < TRACE_CHUNKS_MAX; chunks++)
			if (!take(arg, own->id, fragi_run_trace_chunk(run, own->trace, is_end)) ||
			    !fragi_run_trace_has_more(own->trace))
				break;
	}
}

void fragi_run_destroy_taps(struct fragi_run *run)
{
	for (size_t i = 0; i < FRAGI_RUN_TAPS_MAX; i++) {
		fragi_tap_destroy(run->taps[i].tap);
		fragi_run_trace_destroy(run, run->taps[i].trace);
	}
}
