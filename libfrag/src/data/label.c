// SPDX-License-Identifier: Apache-2.0
#include <data/label.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/stamp.h>

static struct fragi_label *create(size_t step_count, size_t text_bytes)
{
	struct fragi_label *label =
		fragi_malloc(sizeof(*label) + step_count * sizeof(label->steps[0]) + text_bytes);

	if (label == NULL)
		return NULL;
	atomic_init(&label->refs, 1);
	label->step_count = (uint32_t)step_count;
	label->maker = NULL;
	label->tick = 0;
	label->names = NULL;
	label->error_ns = label->arrived = label->held_ns = 0;
	return label;
}

struct fragi_label *fragi_label_create(size_t step_count)
{
	return create(step_count, 0);
}

void fragi_label_unref(struct fragi_label *label)
{
	if (atomic_fetch_sub_explicit(&label->refs, 1, memory_order_acq_rel) == 1)
		fragi_free(label);
}

/* They stand behind the steps, whatever becomes of the count of these. */
static const char *name_of(const struct fragi_label_names *names, uint32_t op)
{
	return (const char *)names - offsetof(struct fragi_label, own) + op;
}

const char *fragi_label_name(const struct fragi_label *label, const struct fragi_step *step)
{
	return label->names->name_of(label->names, step->op);
}

static bool convert(const struct fragi_moment *moment, const struct fragi_timeline *peer,
		    uint64_t *stamp, uint64_t *error_ns)
{
	struct fragi_time time;

	if (!fragi_timeline_convert(peer, fragi_moment_ns_at(moment, *stamp), &time))
		return false;
	*stamp = fragi_moment_stamp_at(moment, time.ns);
	if (*error_ns < (uint64_t)time.error_ns)
		*error_ns = (uint64_t)time.error_ns;
	return true;
}

void fragi_label_convert_times(struct fragi_label *label, const struct fragi_timeline *peer)
{
	const struct fragi_moment moment = fragi_moment_now();
	uint64_t error_ns = 0;

	for (uint32_t i = 0; i < label->step_count; i++)
		if (!convert(&moment, peer, &label->steps[i].received, &error_ns) ||
		    !convert(&moment, peer, &label->steps[i].published, &error_ns)) {
			label->step_count = 0;
			return;
		}
	label->error_ns += error_ns;
}

/*
 * u32 number of steps and HAS_WAYS, u64 error, then each: u16 left, u16 bytes of the name,
 * i64 received, i64 published, u64 held, u64 network, the name.
 */
#define HEAD_BYTES 12u
#define STEP_BYTES 36u
#define HAS_WAYS 0x80000000u /* always set: hosts that do not know these two refuse it */

static void put_step(const struct fragi_label *label, const struct fragi_step *step,
		     const struct fragi_moment *moment, struct frag_writer *writer)
{
	const char *name = fragi_label_name(label, step);
	const uint16_t head[] = {(uint16_t)step->left, (uint16_t)strlen(name)};

	frag_writer_put(writer, head, sizeof(head));
	frag_writer_put_u64(writer, (uint64_t)fragi_moment_ns_at(moment, step->received));
	frag_writer_put_u64(writer, (uint64_t)fragi_moment_ns_at(moment, step->published));
	frag_writer_put_u64(writer, step->held_ns);
	frag_writer_put_u64(writer, step->network_ns);
	frag_writer_put(writer, name, head[1]);
}

void fragi_label_encode(const struct fragi_label *label, struct frag_writer *writer)
{
	const struct fragi_moment moment = fragi_moment_now();
	const uint32_t count = label->step_count <= FRAGI_LABEL_STEPS_MAX ? label->step_count : 0;

	frag_writer_put_u32(writer, count | HAS_WAYS);
	frag_writer_put_u64(writer, label->error_ns);
	for (uint32_t i = 0; i < count; i++)
		put_step(label, &label->steps[i], &moment, writer);
}

/* A name is printed and written into logs as it is. */
static bool is_name(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bytes[i] <= ' ' || bytes[i] == 0x7f || bytes[i] == ',')
			return false;
	return size > 0 && size <= FRAGI_LABEL_NAME_MAX;
}

struct wire_step {
	uint16_t left, name_bytes;
	int64_t received_ns, published_ns;
	uint64_t held_ns, network_ns;
	const uint8_t *name;
};

static bool get_step(struct frag_reader *reader, struct wire_step *out)
{
	const uint8_t *bytes = fragi_reader_skip(reader, STEP_BYTES);

	if (bytes == NULL)
		return false;
	memcpy(&out->left, bytes, sizeof(out->left));
	memcpy(&out->name_bytes, bytes + 2, sizeof(out->name_bytes));
	memcpy(&out->received_ns, bytes + 4, sizeof(out->received_ns));
	memcpy(&out->published_ns, bytes + 12, sizeof(out->published_ns));
	memcpy(&out->held_ns, bytes + 20, sizeof(out->held_ns));
	memcpy(&out->network_ns, bytes + 28, sizeof(out->network_ns));
	out->name = fragi_reader_skip(reader, out->name_bytes);
	return out->name != NULL && is_name(out->name, out->name_bytes);
}

/* Paths are whole: each counts down to 1. Returns the bytes of all names, or -EBADMSG. */
static int64_t check_steps(struct frag_reader reader, uint32_t count)
{
	int64_t text_bytes = 0;
	struct wire_step step;
	uint32_t left = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!get_step(&reader, &step) || step.left == 0 || (left != 0 && step.left != left))
			return -EBADMSG;
		left = step.left - 1u;
		text_bytes += step.name_bytes + 1;
	}
	return left == 0 ? text_bytes : -EBADMSG;
}

int fragi_label_decode(struct frag_reader *reader, struct fragi_label **out_label)
{
	const uint8_t *head = fragi_reader_skip(reader, HEAD_BYTES);
	const struct fragi_moment moment = fragi_moment_now();
	struct fragi_label *label;
	struct wire_step step;
	int64_t text_bytes;
	uint64_t error_ns;
	uint32_t count;
	char *text;

	if (head == NULL)
		return -EBADMSG;
	memcpy(&count, head, sizeof(count));
	memcpy(&error_ns, head + sizeof(count), sizeof(error_ns));
	if ((count & HAS_WAYS) == 0)
		return -EBADMSG;
	count &= ~HAS_WAYS;
	if (count > FRAGI_LABEL_STEPS_MAX || error_ns > INT64_MAX / 2)
		return -EBADMSG;
	text_bytes = check_steps(*reader, count);
	if (text_bytes < 0)
		return (int)text_bytes;
	label = create(count, (size_t)text_bytes);
	if (label == NULL)
		return -ENOMEM;
	label->error_ns = error_ns;
	label->arrived = moment.stamp;
	label->own.name_of = name_of;
	label->names = &label->own;
	text = (char *)&label->steps[count];
	for (uint32_t i = 0; i < count && get_step(reader, &step); i++) {
		label->steps[i] = (struct fragi_step){
			.op = (uint32_t)(text - (const char *)label),
			.left = step.left,
			.received = fragi_moment_stamp_at(&moment, step.received_ns),
			.published = fragi_moment_stamp_at(&moment, step.published_ns),
			.held_ns = step.held_ns,
			.network_ns = step.network_ns,
		};
		memcpy(text, step.name, step.name_bytes);
		text[step.name_bytes] = '\0';
		text += step.name_bytes + 1;
	}
	*out_label = label;
	return 0;
}
