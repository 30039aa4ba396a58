// SPDX-License-Identifier: Apache-2.0
#include <fragctl/samples.h>

#include <stdlib.h>
#include <string.h>

#include <base/printable.h>

#define SAMPLE_BYTES 160 /* of a sample, beside its name, the labels of its row and its value */

/* --- texts --- */

/* Room for `more` bytes; NULL: there is no memory. */
static char *room(struct ctl_text *text, size_t more)
{
	size_t capacity = text->capacity != 0 ? text->capacity : 65536;
	char *at;

	if (text->size + more <= text->capacity)
		return text->at + text->size;
	while (capacity < text->size + more)
		capacity *= 2;
	at = text->is_short ? NULL : realloc(text->at, capacity);
	if (at == NULL) {
		text->is_short = true;
		return NULL;
	}
	text->at = at;
	text->capacity = capacity;
	return at + text->size;
}

static void add(struct ctl_text *text, const char *more, size_t size)
{
	char *at = room(text, size);

	if (at == NULL)
		return;
	memcpy(at, more, size);
	text->size += size;
}

static void add_text(struct ctl_text *text, const char *more)
{
	add(text, more, strlen(more));
}

struct ctl_labels ctl_labels_begin(struct ctl_samples *samples, const struct ctl_labels *first)
{
	struct ctl_labels labels = {samples->labels.size, 0};

	if (first != NULL && room(&samples->labels, first->size) != NULL) { /* it may move them */
		add(&samples->labels, samples->labels.at + first->at, first->size);
		labels.size = first->size;
	}
	return labels;
}

void ctl_labels_add(struct ctl_samples *samples, struct ctl_labels *labels, const char *name,
		    const char *value)
{
	struct ctl_text *text = &samples->labels;

	if (labels->size > 0)
		add_text(text, ",");
	add_text(text, name);
	add_text(text, "=\"");
	for (const char *c = value != NULL ? value : ""; *c != '\0';) {
		size_t length = fragi_printable(c);

		if (*c == '\n')
			add_text(text, "\\n");
		else if (*c == '\\' || *c == '"')
			add(text, (char[]){'\\', *c}, 2);
		else
			add(text, length > 0 ? c : "?", length > 0 ? length : 1);
		c += length > 0 ? length : 1;
	}
	add_text(text, "\"");
	labels->size = text->size - labels->at;
}

static char *put_bytes(char *at, const char *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

static char *put_number(char *at, uint64_t number)
{
	char digits[20];
	size_t first = sizeof(digits);

	do {
		digits[--first] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	return put_bytes(at, digits + first, sizeof(digits) - first);
}

/* Nanoseconds as seconds, exactly. */
static char *put_seconds(char *at, uint64_t ns)
{
	uint32_t rest = (uint32_t)(ns % 1000000000);
	int digits = 9;

	at = put_number(at, ns / 1000000000);
	if (rest == 0)
		return at;
	while (rest % 10 == 0) {
		rest /= 10;
		digits--;
	}
	*at++ = '.';
	for (int i = digits; i-- > 0; rest /= 10)
		at[i] = (char)('0' + rest % 10);
	return at + digits;
}

/* --- samples --- */

/* Everything of a sample but its number. Room for that is there; NULL: there is no memory. */
static char *begin(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		   const char *label, const char *value)
{
	size_t suffix_size = strlen(suffix), value_size = value != NULL ? strlen(value) : 0;
	char *at = room(&samples->out, samples->name_size + labels->size + suffix_size +
					       value_size + SAMPLE_BYTES);

	if (at == NULL)
		return NULL;
	at = put_bytes(at, samples->name, samples->name_size);
	at = put_bytes(at, suffix, suffix_size);
	if (labels->size > 0 || label != NULL)
		*at++ = '{';
	if (labels->size > 0)
		at = put_bytes(at, samples->labels.at + labels->at, labels->size);
	if (label != NULL) {
		if (labels->size > 0)
			*at++ = ',';
		at = put_bytes(at, label, strlen(label));
		at = put_bytes(at, "=\"", 2);
		at = put_bytes(at, value, value_size);
		*at++ = '"';
	}
	if (labels->size > 0 || label != NULL)
		*at++ = '}';
	*at++ = ' ';
	return at;
}

static void end(struct ctl_samples *samples, char *at)
{
	*at++ = '\n';
	samples->out.size = (size_t)(at - samples->out.at);
}

void ctl_sample(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		const char *label, const char *value, uint64_t number)
{
	char *at = begin(samples, suffix, labels, label, value);

	if (at != NULL)
		end(samples, put_number(at, number));
}

void ctl_sample_seconds(struct ctl_samples *samples, const char *suffix,
			const struct ctl_labels *labels, const char *label, const char *value,
			uint64_t ns)
{
	char *at = begin(samples, suffix, labels, label, value);

	if (at != NULL)
		end(samples, put_seconds(at, ns));
}

void ctl_samples_begin(struct ctl_samples *samples, const char *name, const char *type,
		       const char *help)
{
	samples->name = name;
	samples->name_size = strlen(name);
	add_text(&samples->out, "# HELP ");
	add_text(&samples->out, name);
	add_text(&samples->out, " ");
	add_text(&samples->out, help);
	add_text(&samples->out, "\n# TYPE ");
	add_text(&samples->out, name);
	add_text(&samples->out, " ");
	add_text(&samples->out, type);
	add_text(&samples->out, "\n");
}
