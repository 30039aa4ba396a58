/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that take a stated time a tick, by sleeping and by computing: `slow` passes messages
 * on, `slow_rx` takes them. `crash_at` ends the process in that tick.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include <frag/frag.h>

struct slow {
	int64_t sleep_ms, spin_ms, crash_at;
	int64_t ticks;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct slow, sleep_ms, 0, .headline = "Sleeps so long",
		       .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_I64(struct slow, spin_ms, 0, .headline = "Computes so long on a CPU"),
	FRAG_PARAM_I64(struct slow, crash_at, 0, .headline = "Crashes in this tick; 0: in none"),
};

enum { IN, OUT };
static const struct frag_port ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN},
	[OUT] = {.name = "out", .dir = FRAG_OUT},
};

static void spin(int64_t ms)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

static int take(struct slow *s, struct frag_tick *tick, const struct frag_message **message)
{
	const struct timespec pause = {s->sleep_ms / 1000, s->sleep_ms % 1000 * 1000000};
	int r = frag_tick_receive(tick, IN, message);

	if (r < 0)
		return r;
	if (++s->ticks == s->crash_at)
		raise(SIGSEGV);
	nanosleep(&pause, NULL);
	spin(s->spin_ms);
	return 0;
}

static int slow_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = take(state, tick, &message);

	return r < 0 ? r : frag_tick_emit(tick, OUT, frag_message_ref(message));
}

static int slow_rx_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;

	return take(state, tick, &message);
}

static const struct frag_op_type slow = {
	FRAG_OP_TYPE_INIT, .name = "slow",      .state_size = sizeof(struct slow),
	FRAG_PORTS(ports), FRAG_PARAMS(params), .compute = slow_compute,
};
static const struct frag_op_type slow_rx = {
	FRAG_OP_TYPE_INIT,
	.name = "slow_rx",
	.state_size = sizeof(struct slow),
	.ports = ports,
	.port_count = 1,
	.port_size = sizeof(ports[0]),
	FRAG_PARAMS(params),
	.compute = slow_rx_compute,
};
static const struct frag_op_type *const ops[] = {&slow, &slow_rx};
FRAG_PLUGIN(.name = "slow", .version = "1.0.0", FRAG_OPS(ops));
