// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that write down what really happened: one little-endian u64 a message into a file, by
 * write(2), so that it survives a kill. The sender writes after emit returned, the receiver before
 * it does anything else; what frag counts is compared with these files and never only with itself.
 * Both fail on request, in every way that matters.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <frag/frag.h>

enum { PORT };

struct truth {
	const char *file;
	int64_t count;
	int64_t size;
	int64_t pause;
	const char *fail;
	int64_t fail_at;
	const char *mark;
	int64_t seen;
	int fd;
};

static const char *const failures[] = {"never", "error", "crash",     "exit",
				       "hang",  "abort", "hang_stop", NULL};
#define MARK FRAG_PARAM_PATH(struct truth, mark, NULL, .headline = "Where stop writes its number")

static const struct frag_param tx_params[] = {
	FRAG_PARAM_PATH(struct truth, file, NULL, .headline = "Where the sent numbers go",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(struct truth, count, 0, .headline = "Messages to send; 0: for ever"),
	FRAG_PARAM_I64(struct truth, size, 8,
		       .headline = "Bytes of each message's tensor; up to 8: a plain number"),
	FRAG_PARAM_DURATION(struct truth, pause, 0, .headline = "Time each compute takes"),
	FRAG_PARAM_STRING(struct truth, fail, "never", .headline = "How to fail",
			  .choices = failures),
	FRAG_PARAM_I64(struct truth, fail_at, 10, .headline = "At which message"),
	MARK,
};
static const struct frag_param rx_params[] = {
	FRAG_PARAM_PATH(struct truth, file, NULL, .headline = "Where the received numbers go",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(struct truth, count, 0,
		       .headline = "Done after that many; 0: when the sender closes"),
	FRAG_PARAM_DURATION(struct truth, pause, 0, .headline = "Time each compute takes"),
	FRAG_PARAM_STRING(struct truth, fail, "never", .headline = "How to fail",
			  .choices = failures),
	FRAG_PARAM_I64(struct truth, fail_at, 10, .headline = "At which message"),
	MARK,
};
static const char *const sides[] = {"sent", "received", NULL};

struct tap {
	const char *file;
	const char *side;
	int64_t pause;
	uint64_t seen;
	int fd;
};

static const struct frag_param tap_params[] = {
	FRAG_PARAM_PATH(struct tap, file, NULL, .headline = "Where the numbers go",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_STRING(struct tap, side, "received",
			  .headline = "Written before or after it is passed on", .choices = sides),
	FRAG_PARAM_DURATION(struct tap, pause, 0, .headline = "Time each compute takes"),
};
enum { TAP_IN, TAP_OUT };
static const struct frag_port tap_ports[] = {
	[TAP_IN] = {.name = "in", .dir = FRAG_IN},
	[TAP_OUT] = {.name = "out", .dir = FRAG_OUT},
};
static const struct frag_port tx_ports[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_port rx_ports[] = {{.name = "in", .dir = FRAG_IN}};

static int open_truth(struct frag_op *op, const char *file, int *out_fd)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	if (fd < 0)
		return frag_op_fail(op, -errno, "cannot write %s: %s", file, strerror(errno));
	*out_fd = fd;
	return 0;
}

static int truth_start(void *state, struct frag_op *op)
{
	struct truth *s = state;

	return open_truth(op, s->file, &s->fd);
}

static int truth_stop(void *state, struct frag_op *op)
{
	struct truth *s = state;
	FILE *mark;

	close(s->fd);
	while (!strcmp(s->fail, "hang_stop"))
		pause();
	if (s->mark == NULL || s->mark[0] == '\0')
		return 0;
	mark = fopen(s->mark, "w");
	if (mark == NULL)
		return frag_op_fail(op, -errno, "cannot write %s: %s", s->mark, strerror(errno));
	fprintf(mark, "%lld", (long long)s->seen);
	fclose(mark);
	return 0;
}

static int write_number(struct frag_tick *tick, int fd, const char *file, uint64_t number)
{
	if (write(fd, &number, sizeof(number)) != (ssize_t)sizeof(number))
		return frag_op_fail(frag_tick_op(tick), -EIO, "cannot write %s: %s", file,
				    strerror(errno));
	return 0;
}

static int write_down(struct truth *s, struct frag_tick *tick, uint64_t number)
{
	return write_number(tick, s->fd, s->file, number);
}

static void take_time(int64_t pause_ns)
{
	struct timespec t = {pause_ns / 1000000000, pause_ns % 1000000000};

	if (pause_ns > 0)
		nanosleep(&t, NULL);
}

static int fail_if_due(struct truth *s, struct frag_tick *tick)
{
	if (s->fail[0] == 'n' || s->seen != s->fail_at || !strcmp(s->fail, "hang_stop"))
		return 0;
	if (!strcmp(s->fail, "error"))
		return frag_op_fail(frag_tick_op(tick), -EIO,
				    "the test asked for an error at message %lld",
				    (long long)s->seen);
	if (!strcmp(s->fail, "crash"))
		raise(SIGSEGV);
	if (!strcmp(s->fail, "exit"))
		exit(3);
	if (!strcmp(s->fail, "abort"))
		abort();
	for (;;) /* hang */
		pause();
}

static int tx_compute(void *state, struct frag_tick *tick)
{
	struct truth *s = state;
	int r;

	if (s->count && s->seen == s->count)
		return FRAG_DONE;
	s->seen++;
	r = fail_if_due(s, tick);
	if (r < 0)
		return r;
	take_time(s->pause);
	if (s->size <= 8) {
		r = frag_tick_emit_i64(tick, PORT, s->seen);
	} else {
		struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
		struct frag_tensor *tensor;

		r = frag_tensor_create(NULL, u8, 1, &s->size, &tensor);
		if (r < 0)
			return r;
		memcpy(frag_tensor_writable(tensor), &s->seen, sizeof(s->seen));
		r = frag_tick_emit_tensor(tick, PORT, "number", tensor);
	}
	if (r < 0)
		return r;
	r = write_down(s, tick, (uint64_t)s->seen);
	if (r < 0)
		return r;
	return s->count && s->seen == s->count ? FRAG_DONE : 0;
}

static int rx_compute(void *state, struct frag_tick *tick)
{
	struct truth *s = state;
	const struct frag_message *m;
	const struct frag_tensor *tensor;
	const void *value;
	uint64_t number;
	int r = frag_tick_receive(tick, PORT, &m);

	if (r < 0)
		return r;
	tensor = frag_message_tensor(m, NULL);
	if (tensor)
		memcpy(&number, frag_tensor_data(tensor), sizeof(number));
	else if (frag_message_value(m, &value, NULL) == &frag_type_i64)
		memcpy(&number, value, sizeof(number));
	else
		return frag_op_fail(frag_tick_op(tick), -EBADMSG,
				    "neither a number nor a tensor arrived");
	s->seen++;
	r = write_down(s, tick, number);
	if (r < 0)
		return r;
	r = fail_if_due(s, tick);
	if (r < 0)
		return r;
	take_time(s->pause);
	return s->count && s->seen == s->count ? FRAG_DONE : 0;
}

static int tap_start(void *state, struct frag_op *op)
{
	struct tap *s = state;

	return open_truth(op, s->file, &s->fd);
}

static int tap_stop(void *state, struct frag_op *op)
{
	struct tap *s = state;

	close(s->fd);
	return 0;
}

static int tap_compute(void *state, struct frag_tick *tick)
{
	struct tap *s = state;
	bool is_receiver = s->side[0] == 'r';
	const struct frag_message *m;
	int r = frag_tick_receive(tick, TAP_IN, &m);

	if (r < 0)
		return r;
	s->seen++;
	r = is_receiver ? write_number(tick, s->fd, s->file, s->seen) : 0;
	if (r < 0)
		return r;
	take_time(s->pause);
	r = frag_tick_emit(tick, TAP_OUT, frag_message_ref(m));
	if (r < 0 || is_receiver)
		return r;
	return write_number(tick, s->fd, s->file, s->seen);
}

static const struct frag_op_type truth_tx = {
	FRAG_OP_TYPE_INIT,
	.name = "truth_tx",
	.headline = "Sends 1, 2, 3 ... and writes down what it sent",
	.state_size = sizeof(struct truth),
	FRAG_PORTS(tx_ports),
	FRAG_PARAMS(tx_params),
	.start = truth_start,
	.compute = tx_compute,
	.stop = truth_stop,
};
static int saving_save(void *state, struct frag_op *op, void *out_bytes, size_t size)
{
	const struct truth *s = state;

	memcpy(out_bytes, &s->seen, size);
	return (int)size;
}

static int saving_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	struct truth *s = state;

	if (size != sizeof(s->seen))
		return frag_op_fail(op, -EBADMSG, "%zu bytes were saved", size);
	memcpy(&s->seen, bytes, size);
	return 0;
}

static const struct frag_op_type truth_saving_tx = {
	FRAG_OP_TYPE_INIT,
	.name = "truth_saving_tx",
	.headline = "The same, and goes on from there when its host is started again",
	.state_size = sizeof(struct truth),
	FRAG_PORTS(tx_ports),
	FRAG_PARAMS(tx_params),
	.start = truth_start,
	.compute = tx_compute,
	.stop = truth_stop,
	.save = saving_save,
	.restore = saving_restore,
	.save_size = sizeof(int64_t),
};
static const struct frag_op_type truth_rx = {
	FRAG_OP_TYPE_INIT,
	.name = "truth_rx",
	.headline = "Writes down what it received",
	.state_size = sizeof(struct truth),
	FRAG_PORTS(rx_ports),
	FRAG_PARAMS(rx_params),
	.start = truth_start,
	.compute = rx_compute,
	.stop = truth_stop,
};

static const struct frag_op_type truth_tap = {
	FRAG_OP_TYPE_INIT,
	.name = "truth_tap",
	.headline = "Passes messages on and writes down their numbers",
	.state_size = sizeof(struct tap),
	FRAG_PORTS(tap_ports),
	FRAG_PARAMS(tap_params),
	.start = tap_start,
	.compute = tap_compute,
	.stop = tap_stop,
};

/* A plain struct whose layout a second build of this plugin changes, and a type without a codec. */
struct pose {
	double x, y;
#ifdef OTHER_POSE
	double z;
#endif
};
static const struct frag_field pose_fields[] = {
	FRAG_FIELD(struct pose, x, "f64"),
	FRAG_FIELD(struct pose, y, "f64"),
#ifdef OTHER_POSE
	FRAG_FIELD(struct pose, z, "f64"),
#endif
};
static const struct frag_type pose_type = {FRAG_TYPE_INIT, .name = "pose",
					   .size = sizeof(struct pose), FRAG_FIELDS(pose_fields)};
static const struct frag_type secret_type = {FRAG_TYPE_INIT, .name = "secret", .size = 16};
static const struct frag_type *const types[] = {&pose_type, &secret_type};

static const struct frag_port pose_out[] = {{.name = "out", .dir = FRAG_OUT, .type = "pose"}};
static const struct frag_port pose_in[] = {{.name = "in", .dir = FRAG_IN, .type = "pose"}};
static const struct frag_port secret_out[] = {{.name = "out", .dir = FRAG_OUT, .type = "secret"}};
static const struct frag_port secret_in[] = {{.name = "in", .dir = FRAG_IN, .type = "secret"}};

static int pose_tx_compute(void *state, struct frag_tick *tick)
{
	struct pose p = {.x = 1.5, .y = -2.5};
	int r = frag_tick_emit_value(tick, PORT, &pose_type, &p, sizeof(p));

	return r < 0 ? r : FRAG_DONE;
}

static int pose_rx_compute(void *state, struct frag_tick *tick)
{
	const void *value;
	const struct pose *p;
	int r = frag_tick_receive_value(tick, PORT, &pose_type, &value, NULL);

	if (r < 0)
		return r;
	p = value;
	printf("pose %g %g\n", p->x, p->y);
	return 0;
}

static int nothing_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static int stdin_compute(void *state, struct frag_tick *tick)
{
	char bytes[256];
	ssize_t n, sum = 0;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0)
		sum += n;
	printf("stdin has %zd bytes\n", sum);
	return n < 0 ? -errno : FRAG_DONE;
}

static const struct frag_op_type truth_stdin = {FRAG_OP_TYPE_INIT, .name = "truth_stdin",
						.compute = stdin_compute};
static const struct frag_op_type pose_tx = {FRAG_OP_TYPE_INIT, .name = "pose_tx",
					    FRAG_PORTS(pose_out), .compute = pose_tx_compute};
static const struct frag_op_type pose_rx = {FRAG_OP_TYPE_INIT, .name = "pose_rx",
					    FRAG_PORTS(pose_in), .compute = pose_rx_compute};
static const struct frag_op_type secret_tx = {FRAG_OP_TYPE_INIT, .name = "secret_tx",
					      FRAG_PORTS(secret_out), .compute = nothing_compute};
static const struct frag_op_type secret_rx = {FRAG_OP_TYPE_INIT, .name = "secret_rx",
					      FRAG_PORTS(secret_in), .compute = nothing_compute};

static const struct frag_op_type *const ops[] = {&truth_tx,  &truth_saving_tx, &truth_rx,
						 &truth_tap, &truth_stdin,     &pose_tx,
						 &pose_rx,   &secret_tx,       &secret_rx};
FRAG_PLUGIN(.name = "truth", .version = "1.0.0", FRAG_OPS(ops), FRAG_TYPES(types));
