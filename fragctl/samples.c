// SPDX-License-Identifier: Apache-2.0
#include <fragctl/samples.h>

#include <stdlib.h>
#include <string.h>

#include <base/printable.h>

#define SAMPLE_BYTES 160 /* of a sample, beside the name, the row's labels and a value */

/* --- texts --- */

static char *grow(struct ctl_text *text, size_t more)
{
	size_t capacity = text->capacity != 0 ? text->capacity : 65536;
	char *at;

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

/* Room for `more` bytes; NULL: there is no memory. */
static inline char *room(struct ctl_text *text, size_t more)
{
	return text->size + more <= text->capacity ? text->at + text->size : grow(text, more);
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

/* How many characters stand for themselves in every label. */
static size_t plain_length(const char *text)
{
	size_t length = 0;

	while (text[length] >= ' ' && text[length] < 0x7F && text[length] != '"' &&
	       text[length] != '\\')
		length++;
	return length;
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
		size_t plain = plain_length(c), length;

		add(text, c, plain);
		c += plain;
		if (*c == '\0')
			break;
		length = fragi_printable(c);
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
	char *end = at + 1;

	for (uint64_t rest = number; rest > 9; rest /= 10)
		end++;
	for (char *digit = end; digit > at; number /= 10)
		*--digit = (char)('0' + number % 10);
	return end;
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

/* Writes NAME SUFFIX{LABELS,LABEL=" or, without a label, all of a sample but its number. */
static char *put_head(const struct ctl_samples *samples, char *at, const char *suffix,
		      const struct ctl_labels *labels, const char *label)
{
	at = put_bytes(at, samples->name, samples->name_size);
	at = put_bytes(at, suffix, strlen(suffix));
	if (labels->size == 0 && label == NULL) {
		*at++ = ' ';
		return at;
	}
	*at++ = '{';
	if (labels->size > 0)
		at = put_bytes(at, samples->labels.at + labels->at, labels->size);
	if (label == NULL)
		return put_bytes(at, "} ", 2);
	if (labels->size > 0)
		*at++ = ',';
	at = put_bytes(at, label, strlen(label));
	return put_bytes(at, "=\"", 2);
}

/*
 * Everything of a sample but its number. Room for that is there; NULL: there is no memory. The head
 * of a sample with a label is that of the one before, when that differs in the label's value alone:
 * most samples of a page are such ones.
 */
static char *begin(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		   const char *label, const char *value)
{
	size_t value_size = value != NULL ? strlen(value) : 0;
	struct ctl_sample_head *head = &samples->head;
	char *at =
		room(&samples->out, samples->name_size + labels->size + value_size + SAMPLE_BYTES);

	if (at == NULL)
		return NULL;
	if (label == NULL)
		return put_head(samples, at, suffix, labels, NULL);
	if (head->suffix == suffix && head->label == label && head->labels_at == labels->at) {
		at = put_bytes(at, samples->out.at + head->at, head->size);
	} else {
		*head = (struct ctl_sample_head){suffix, label, labels->at, samples->out.size, 0};
		at = put_head(samples, at, suffix, labels, label);
		head->size = (size_t)(at - samples->out.at) - head->at;
	}
	at = put_bytes(at, value, value_size);
	return put_bytes(at, "\"} ", 3);
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
	samples->head = (struct ctl_sample_head){0};
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
