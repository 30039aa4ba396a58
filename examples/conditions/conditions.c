// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include <frag/frag.h>

/* Sends several numbers a tick. */
struct burst_tx {
	int64_t burst, sent;
};

enum { OUT };
static const struct frag_port tx_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param burst_tx_params[] = {
	FRAG_PARAM_I64(struct burst_tx, burst, 1, .headline = "Numbers a tick", .min = 1,
		       .max = 1000),
};

static int burst_tx_compute(void *state, struct frag_tick *tick)
{
	struct burst_tx *tx = state;
	int r = 0;

	for (int64_t i = 0; r == 0 && i < tx->burst; i++)
		r = frag_tick_emit_i64(tick, OUT, ++tx->sent);
	return r;
}

static int burst_tx_setup(void *state, struct frag_op *op)
{
	const struct burst_tx *tx = state;
	char room[24];

	snprintf(room, sizeof(room), "%" PRId64, tx->burst);
	return frag_make_condition(op, NULL, "downstream_affordable",
				   FRAG_ARGS({"min_size", room})) != NULL
		       ? 0
		       : -EINVAL;
}

static const struct frag_op_type burst_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "burst_tx",
	.headline = "Sends several numbers a tick, when there is room for them all",
	.state_size = sizeof(struct burst_tx),
	FRAG_PORTS(tx_ports),
	FRAG_PARAMS(burst_tx_params),
	.setup = burst_tx_setup,
	.compute = burst_tx_compute,
};

/* Prints all numbers that wait at its inputs, in one line a tick. */
struct gather_rx {
	int64_t most;
};

enum { LEFT, RIGHT };
static const struct frag_port gather_rx_ports[] = {
	[LEFT] = {.name = "left", .dir = FRAG_IN, .type = "i64"},
	[RIGHT] = {.name = "right", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
};
static const struct frag_param gather_rx_params[] = {
	FRAG_PARAM_I64(struct gather_rx, most, 8, .headline = "Numbers of an input in a tick",
		       .min = 1, .max = 8),
};

static int gather_rx_compute(void *state, struct frag_tick *tick)
{
	const struct gather_rx *rx = state;
	char text[512] = "";
	int length = 0;

	for (uint32_t port = LEFT; port <= RIGHT; port++) {
		for (int64_t i = 0; i < rx->most; i++) {
			int64_t value;
			int r = frag_tick_receive_i64(tick, port, &value);

			if (r == -ENOMSG)
				break;
			if (r < 0)
				return r;
			if (i == 0)
				length += sprintf(text + length, port == LEFT ? " left" : " right");
			length += sprintf(text + length, " %" PRId64, value);
		}
	}
	frag_op_log(frag_tick_op(tick), "received%s", text);
	return 0;
}

static const struct frag_op_type gather_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "gather_rx",
	.headline = "Prints all numbers that wait at its inputs",
	.state_size = sizeof(struct gather_rx),
	FRAG_PORTS(gather_rx_ports),
	FRAG_PARAMS(gather_rx_params),
	.compute = gather_rx_compute,
};

/* Sends what a thread of its own computes. Meanwhile the operator is not ticked. */
struct async_tx {
	int64_t count, sent, result;
	struct frag_condition *event;
	pthread_t worker;
	bool works;
};

static const struct frag_param async_tx_params[] = {
	FRAG_PARAM_I64(struct async_tx, count, 3, .headline = "Numbers to send", .min = 1,
		       .max = 1e6),
	FRAG_PARAM_CONDITION(struct async_tx, event, NULL,
			     .headline = "Asynchronous condition of this operator",
			     .flags = FRAG_PARAM_REQUIRED),
};

static void *work(void *state)
{
	static const struct timespec ten_ms = {0, 10000000};
	struct async_tx *tx = state;

	nanosleep(&ten_ms, NULL); /* what takes long */
	tx->result = tx->sent + 1;
	frag_condition_set_event_state(tx->event, FRAG_EVENT_DONE);
	return NULL;
}

static int async_tx_compute(void *state, struct frag_tick *tick)
{
	struct async_tx *tx = state;
	int r = 0;

	if (tx->works) { /* this tick is the event's */
		pthread_join(tx->worker, NULL);
		tx->works = false;
		tx->sent++;
		r = frag_tick_emit_i64(tick, OUT, tx->result);
	}
	if (r < 0 || tx->sent == tx->count)
		return r < 0 ? r : FRAG_DONE;
	frag_condition_set_event_state(tx->event, FRAG_EVENT_WAITING);
	r = -pthread_create(&tx->worker, NULL, work, tx);
	tx->works = r == 0;
	return r;
}

static int async_tx_stop(void *state, struct frag_op *op)
{
	struct async_tx *tx = state;

	(void)op;
	if (tx->works)
		pthread_join(tx->worker, NULL);
	return 0;
}

static const struct frag_op_type async_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "async_tx",
	.headline = "Sends what a thread of its own computes",
	.state_size = sizeof(struct async_tx),
	FRAG_PORTS(tx_ports),
	FRAG_PARAMS(async_tx_params),
	.compute = async_tx_compute,
	.stop = async_tx_stop,
};

/* A native condition: so many ticks in each period. */
struct quota {
	int64_t ticks, period;
	int64_t left, end_ns;
};

static const struct frag_param quota_params[] = {
	FRAG_PARAM_I64(struct quota, ticks, 1, .headline = "Ticks in a period", .min = 1,
		       .max = 1e6),
	FRAG_PARAM_DURATION(struct quota, period, 0, .headline = "Length of a period", .min = 1,
			    .max = 1e18, .flags = FRAG_PARAM_REQUIRED),
};

static enum frag_ready quota_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	struct quota *q = state;

	if (now_ns >= q->end_ns) {
		q->left = q->ticks;
		q->end_ns = now_ns + q->period;
	}
	*out_until_ns = q->end_ns;
	return q->left > 0 ? FRAG_READY : FRAG_WAIT_TIME;
}

static void quota_ticked(void *state, int64_t now_ns)
{
	struct quota *q = state;

	(void)now_ns;
	q->left--;
}

static const struct frag_condition_type quota_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "quota",
	.headline = "A number of ticks in each period",
	.state_size = sizeof(struct quota),
	FRAG_PARAMS(quota_params),
	.flags = FRAG_CONDITION_TIMED,
	.check = quota_check,
	.ticked = quota_ticked,
};

static const struct frag_op_type *const ops[] = {&burst_tx_type, &gather_rx_type, &async_tx_type};
static const struct frag_condition_type *const conditions[] = {&quota_type};
FRAG_PLUGIN(.name = "conditions", .version = "1.0.0", FRAG_OPS(ops), FRAG_CONDITIONS(conditions));
