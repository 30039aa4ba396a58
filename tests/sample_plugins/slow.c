// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that take a stated time a tick, by sleeping and by computing: `slow` passes messages
 * on, `slow_rx` takes them. `crash_at` ends the process in that tick. `stamps` gives what is passed
 * on the present time as its acquisition. `yields_to` binds the thread to that CPU, and lets
 * whatever else can run there have more of it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <frag/frag.h>

struct slow {
	int64_t sleep_ms, spin_ms, crash_at, yields_to;
	bool stamps;
	int64_t ticks;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct slow, sleep_ms, 0, .headline = "Sleeps so long",
		       .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_I64(struct slow, spin_ms, 0, .headline = "Computes so long on a CPU"),
	FRAG_PARAM_I64(struct slow, crash_at, 0, .headline = "Crashes in this tick; 0: in none"),
	FRAG_PARAM_BOOL(struct slow, stamps, false, .headline = "Passes on with the present time"),
	FRAG_PARAM_I64(struct slow, yields_to, -1,
		       .headline = "Is preempted on this CPU; -1: on none"),
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

/* Only this thread, so that whatever else is in the process runs as before. */
static int yield_to(int64_t cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	errno = 0;
	return sched_setaffinity(0, sizeof(set), &set) < 0 || (nice(5) == -1 && errno != 0) ? -errno
											    : 0;
}

static int take(struct slow *s, struct frag_tick *tick, const struct frag_message **message)
{
	const struct timespec pause = {s->sleep_ms / 1000, s->sleep_ms % 1000 * 1000000};
	int r = frag_tick_receive(tick, IN, message);

	if (r < 0)
		return r;
	if (++s->ticks == s->crash_at)
		raise(SIGSEGV);
	if (s->ticks == 1 && s->yields_to >= 0)
		r = yield_to(s->yields_to);
	nanosleep(&pause, NULL);
	spin(s->spin_ms);
	return r;
}

static int slow_compute(void *state, struct frag_tick *tick)
{
	const struct slow *s = state;
	const struct frag_message *received;
	struct frag_message *message;
	struct timespec now;
	int r = take(state, tick, &received);

	if (r < 0)
		return r;
	message = frag_message_ref(received);
	if (s->stamps) {
		clock_gettime(CLOCK_REALTIME, &now);
		message = frag_message_writable(message);
		frag_message_set_acquisition_ns(message, now.tv_sec * 1000000000 + now.tv_nsec);
	}
	return frag_tick_emit(tick, OUT, message);
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
