// SPDX-License-Identifier: Apache-2.0
#include <sched/tap.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>
#include <base/json.h>
#include <data/message.h>
#include <data/metadata.h>
#include <data/print.h>
#include <sched/around.h>
#include <sched/kind.h>

/*
 * The control thread puts a tap into the exec's list of wanted ones, and the thread that works on
 * the exec takes it from there between two ticks, as changes of parameters (dynamic.c). From then
 * on emit() below goes around the operator's emits. A tap that ends is given back the same way.
 *
 * Its copy belongs to the operator's thread while is_full is false, and else to the control thread.
 */
#define TEXTS_BYTES 16384
#define TEXT_MAX 4000 /* of one text; what is longer is said to be long */
#define ELEMENTS_MAX 8
#define METADATA_MAX 32
#define VALUE_BYTES_MAX 65536 /* larger values are their size */
#define SIDE_MIN 8
#define SIDE_MAX 16384 /* rows and columns of what is taken for a picture */

enum phase {
	FREE,
	WANTED, /* the exec has it, or is to take it */
};

struct fragi_tap {
	_Atomic(enum phase) phase;
	_Atomic bool ends;
	struct fragi_tap *next; /* of the exec: of those that are wanted, or that it has */
	/* constant while it is wanted */
	struct fragi_exec *exec;
	uint32_t port;
	int64_t every_ns;
	bool pictures;
	/* the operator's thread */
	int64_t due_ns;
	uint64_t seen, number;
	FILE *out; /* writes texts */
	/* the copy */
	_Atomic bool is_full;
	struct fragi_passed passed;
	struct fragi_passed_tensor tensors[FRAGI_PASSED_TENSORS_MAX];
	char texts[TEXTS_BYTES];
	uint8_t pixels[FRAGI_PASSED_PIXELS_MAX];
};

struct fragi_tap *fragi_tap_create(void)
{
	struct fragi_tap *tap = fragi_calloc(1, sizeof(*tap));

	if (tap == NULL)
		return NULL;
	tap->out = fmemopen(tap->texts, sizeof(tap->texts), "w");
	if (tap->out != NULL)
		return tap;
	fragi_free(tap);
	return NULL;
}

void fragi_tap_destroy(struct fragi_tap *tap)
{
	if (tap == NULL)
		return;
	fclose(tap->out);
	fragi_free(tap);
}

/* The operator's thread. */

/* What is printed from now on is a text. */
static long text_begin(struct fragi_tap *tap)
{
	return ftell(tap->out);
}

/* Ends the text that began there, and returns it. */
static const char *text_end(struct fragi_tap *tap, long begin)
{
	long end = ftell(tap->out);

	if (begin < 0 || end < 0 || end >= TEXTS_BYTES || ferror(tap->out))
		return "\"...\"";
	if (end - begin > TEXT_MAX) {
		fseek(tap->out, begin, SEEK_SET);
		fprintf(tap->out, "\"%ld characters\"", end - begin);
	}
	fputc('\0', tap->out);
	return tap->texts + begin;
}

static void print_value(const struct frag_type *type, const void *value, size_t size, FILE *out)
{
	if (size > VALUE_BYTES_MAX)
		fprintf(out, "\"%zu bytes\"", size);
	else
		fragi_value_print(type, value, size, ELEMENTS_MAX, out);
}

/* Whether its data is there, and the CPU can read it. */
static bool is_readable(const struct frag_tensor *tensor)
{
	return (tensor->dl.device.type == FRAG_DEVICE_CPU ||
		tensor->dl.device.type == FRAG_DEVICE_CUDA_HOST) &&
	       fragi_work_is_over(tensor->written);
}

static void print_metadata(const struct frag_metadata *metadata, FILE *out)
{
	uint32_t count = frag_metadata_count(metadata);
	const struct frag_type *type;
	const void *value;
	const char *key;
	size_t size;

	fputc('{', out);
	for (uint32_t i = 0; i < count && i < METADATA_MAX; i++) {
		key = fragi_metadata_at(metadata, i, &type, &value, &size);
		fputs(i > 0 ? ", " : "", out);
		fragi_json_text(key, out);
		fputs(": ", out);
		if (type == &frag_type_tensor)
			fragi_tensor_print(*(struct frag_tensor *const *)value, false, 0, out);
		else
			print_value(type, value, size, out);
	}
	if (count > METADATA_MAX)
		fprintf(out, ", \"...\": %u", count);
	fputc('}', out);
}

static void copy_value(struct fragi_tap *tap, const struct frag_message *message)
{
	const void *value;
	size_t size;
	const struct frag_type *type = frag_message_value(message, &value, &size);
	long begin = text_begin(tap);

	if (type == NULL)
		return;
	fputs(type->name, tap->out);
	tap->passed.type = text_end(tap, begin);
	begin = text_begin(tap);
	if (type == &frag_type_tensor)
		fragi_tensor_print(*(struct frag_tensor *const *)value,
				   is_readable(*(struct frag_tensor *const *)value), ELEMENTS_MAX,
				   tap->out);
	else
		print_value(type, value, size, tap->out);
	tap->passed.value = text_end(tap, begin);
}

/* Height, width and, if there are any, channels of bytes. */
static bool is_picture(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = &tensor->dl;

	return dl->dtype.code == FRAG_DTYPE_UINT && dl->dtype.bits == 8 && dl->dtype.lanes == 1 &&
	       (dl->ndim == 2 ||
		(dl->ndim == 3 && (dl->shape[2] == 1 || dl->shape[2] == 3 || dl->shape[2] == 4))) &&
	       dl->shape[0] >= SIDE_MIN && dl->shape[0] <= SIDE_MAX && dl->shape[1] >= SIDE_MIN &&
	       dl->shape[1] <= SIDE_MAX && is_readable(tensor);
}

static void copy_picture(struct fragi_tap *tap, const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = &tensor->dl;
	const uint8_t *data = frag_tensor_data(tensor), *row;
	const uint32_t channels = dl->ndim == 3 ? (uint32_t)dl->shape[2] : 1;
	const int64_t next = dl->ndim == 3 ? dl->strides[2] : 1;
	int64_t step = 1, height = dl->shape[0], width = dl->shape[1];
	uint8_t *to = tap->pixels;

	while (height * width * channels > FRAGI_PASSED_PIXELS_MAX) {
		step++;
		height = (dl->shape[0] + step - 1) / step;
		width = (dl->shape[1] + step - 1) / step;
	}
	for (int64_t y = 0; y < height; y++) {
		row = data + y * step * dl->strides[0];
		for (int64_t x = 0; x < width; x++)
			for (uint32_t c = 0; c < channels; c++)
				*to++ = row[x * step * dl->strides[1] + c * next];
	}
	tap->passed.width = (uint32_t)width;
	tap->passed.height = (uint32_t)height;
	tap->passed.channels = channels;
	tap->passed.step = (uint32_t)step;
	tap->passed.pixels = tap->pixels;
	tap->passed.pixel_bytes = (uint32_t)(to - tap->pixels);
}

static void copy_tensors(struct fragi_tap *tap, const struct frag_message *message)
{
	struct fragi_passed *passed = &tap->passed;
	uint32_t count = frag_message_tensor_count(message);

	for (uint32_t i = 0; i < count; i++) {
		const char *name;
		const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
		long begin = text_begin(tap);

		if (passed->tensor_count == FRAGI_PASSED_TENSORS_MAX) {
			passed->tensors_left_out++;
			continue;
		}
		fputs(name, tap->out);
		tap->tensors[passed->tensor_count].name = text_end(tap, begin);
		begin = text_begin(tap);
		fragi_tensor_print(tensor, is_readable(tensor), ELEMENTS_MAX, tap->out);
		tap->tensors[passed->tensor_count++].text = text_end(tap, begin);
		if (tap->pictures && passed->pixel_bytes == 0 && is_picture(tensor)) {
			passed->picture_of = tap->tensors[passed->tensor_count - 1].name;
			copy_picture(tap, tensor);
		}
	}
}

static int64_t unix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void copy(struct fragi_tap *tap, const struct frag_message *message)
{
	rewind(tap->out);
	tap->passed = (struct fragi_passed){.number = tap->number,
					    .seen = tap->seen,
					    .unix_ns = unix_now_ns(),
					    .value = "",
					    .metadata = "",
					    .tensors = tap->tensors};
	copy_value(tap, message);
	if (message->metadata != NULL && frag_metadata_count(message->metadata) > 0) {
		long begin = text_begin(tap);

		print_metadata(message->metadata, tap->out);
		tap->passed.metadata = text_end(tap, begin);
	}
	copy_tensors(tap, message);
	fflush(tap->out);
	tap->texts[sizeof(tap->texts) - 1] = '\0';
}

static void pass(struct fragi_tap *tap, const struct frag_message *message)
{
	int64_t now_ns = fragi_now_ns();

	tap->seen++;
	if (now_ns < tap->due_ns)
		return;
	tap->due_ns = now_ns + tap->every_ns;
	tap->number++;
	if (atomic_load_explicit(&tap->is_full, memory_order_acquire))
		return;
	copy(tap, message);
	atomic_store_explicit(&tap->is_full, true, memory_order_release);
}

static struct frag_message *emit(struct frag_tick *tick, uint32_t port,
				 struct frag_message *message)
{
	message = fragi_inside_emit(FRAGI_AROUND_TAP, tick, port, message);
	for (struct fragi_tap *tap = ((struct fragi_exec *)tick)->taps;
	     message != NULL && tap != NULL; tap = tap->next)
		if (tap->port == port)
			pass(tap, message);
	return message;
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->taps != NULL;
}

const struct fragi_around fragi_around_tap = {
	.is_wanted = is_wanted,
	.emit = emit,
};

void fragi_exec_apply_taps(struct fragi_exec *exec)
{
	struct fragi_tap *wanted = atomic_exchange(&exec->taps_wanted, NULL), *tap,
			 **link = &exec->taps;

	atomic_store(&exec->taps_change, false);
	while ((tap = wanted) != NULL) {
		wanted = tap->next;
		tap->next = exec->taps;
		exec->taps = tap;
	}
	while ((tap = *link) != NULL) {
		if (!atomic_load(&tap->ends)) {
			link = &tap->next;
			continue;
		}
		*link = tap->next;
		atomic_store(&tap->phase, FREE);
	}
	fragi_around_bind(exec);
}

/* The control thread. */

void fragi_exec_change_taps(struct fragi_exec *exec)
{
	atomic_store(&exec->taps_change, true);
	atomic_store(&exec->needs_full_check, true);
	exec->sched->kind->notify(exec);
}

static bool has_ended(const struct fragi_exec *exec)
{
	return atomic_load(&exec->row->state) >= FRAGI_OP_DONE;
}

int fragi_tap_begin(struct fragi_tap *tap, struct frag_op *op, uint32_t port, int64_t every_ns,
		    bool pictures)
{
	struct fragi_exec *exec = op->exec;
	struct fragi_tap *first;

	if (exec == NULL || exec->sched == NULL)
		return -EAGAIN;
	if (has_ended(exec))
		return -ESRCH;
	tap->exec = exec;
	tap->port = port;
	tap->every_ns = every_ns;
	tap->pictures = pictures;
	tap->due_ns = 0;
	tap->seen = tap->number = 0;
	atomic_store(&tap->ends, false);
	atomic_store(&tap->is_full, false);
	atomic_store(&tap->phase, WANTED);
	first = atomic_load(&exec->taps_wanted);
	do
		tap->next = first;
	while (!atomic_compare_exchange_weak(&exec->taps_wanted, &first, tap));
	fragi_exec_change_taps(exec);
	return 0;
}

void fragi_tap_end(struct fragi_tap *tap)
{
	atomic_store(&tap->ends, true);
	if (!has_ended(tap->exec))
		fragi_exec_change_taps(tap->exec);
}

bool fragi_tap_is_free(const struct fragi_tap *tap)
{
	return atomic_load(&tap->phase) == FREE || has_ended(tap->exec);
}

const struct fragi_passed *fragi_tap_passed(const struct fragi_tap *tap)
{
	return atomic_load_explicit(&tap->is_full, memory_order_acquire) ? &tap->passed : NULL;
}

void fragi_tap_next(struct fragi_tap *tap)
{
	atomic_store_explicit(&tap->is_full, false, memory_order_release);
}
