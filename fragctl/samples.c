// SPDX-License-Identifier: Apache-2.0
#include <fragctl/samples.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/printable.h>

#define BLOCK_BYTES 32u
/* Of a sample, beside the name and the row's labels: a suffix, a pair, a number, the last block. */
#define SAMPLE_BYTES (CTL_PAIR_BYTES + 160u)

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
	(void)room(text, BLOCK_BYTES); /* blocks are copied from there */
	labels->size = text->size - labels->at;
}

/* --- numbers --- */

static size_t count_digits(uint64_t number)
{
	static const uint64_t powers[] = {
		0,
		10,
		100,
		1000,
		10000,
		100000,
		1000000,
		10000000,
		100000000,
		1000000000,
		10000000000,
		100000000000,
		1000000000000,
		10000000000000,
		100000000000000,
		1000000000000000,
		10000000000000000,
		100000000000000000,
		1000000000000000000,
		10000000000000000000u,
	};
	size_t bits = 64 - (size_t)__builtin_clzll(number | 1);
	size_t most = bits * 1233 >> 12; /* bits * log10(2): too few by one, or right */

	return most + (most < FRAG_COUNT_OF(powers) && number >= powers[most]);
}

/* Two digits at a time, from the end. */
static char *put_number(char *at, uint64_t number)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char *end = at + count_digits(number), *next = end;

	for (; number > 9; number /= 100) {
		next -= 2;
		memcpy(next, pairs + 2 * (number % 100), 2);
	}
	if (next > at)
		*at = (char)('0' + number);
	return end;
}

/* Nanoseconds as seconds, exactly. */
static char *put_seconds(char *at, uint64_t ns)
{
	const uint64_t second = 1000000000, rest = ns % second;
	char *point = put_number(at, ns / second);

	if (rest == 0)
		return point;
	at = put_number(point,
			second + rest); /* a 1, and nine digits, of which the last is not 0 */
	*point = '.';
	while (at[-1] == '0')
		at--;
	return at;
}

/* --- samples --- */

/* What is behind `size` may be copied too, as far as the last block goes. */
static char *put_blocks(char *at, const char *from, size_t size)
{
	for (size_t i = 0; i < size; i += BLOCK_BYTES)
		memcpy(at + i, from + i, BLOCK_BYTES);
	return at + size;
}

/* NAME SUFFIX{LABELS or, where the row has none, NAME SUFFIX. */
static char *put_head(struct ctl_samples *samples, char *at, const char *suffix,
		      const struct ctl_labels *labels)
{
	struct ctl_sample_head *head = &samples->head;
	const char *out = samples->out.at;

	if (head->size != 0 && head->suffix == suffix && head->labels_at == labels->at)
		return put_blocks(at, out + head->at, head->size);
	*head = (struct ctl_sample_head){suffix, labels->at, samples->out.size, 0};
	at = put_blocks(at, samples->name, samples->name_size);
	while (*suffix != '\0')
		*at++ = *suffix++;
	if (labels->size > 0) {
		*at++ = '{';
		at = put_blocks(at, samples->labels.at + labels->at, labels->size);
	}
	head->size = (size_t)(at - out) - head->at;
	return at;
}

/* Everything of a sample but its number. Room for that is there; NULL: there is no memory. */
static char *begin(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		   const struct ctl_pair *pair)
{
	char *at = room(&samples->out, samples->name_size + labels->size + SAMPLE_BYTES);

	if (at == NULL)
		return NULL;
	at = put_head(samples, at, suffix, labels);
	if (pair != NULL) {
		memcpy(at, pair->text, CTL_PAIR_BYTES);
		if (labels->size == 0)
			*at = '{';
		at += pair->size;
	}
	if (pair != NULL || labels->size > 0)
		*at++ = '}';
	*at++ = ' ';
	return at;
}

static void end(struct ctl_samples *samples, char *at)
{
	*at++ = '\n';
	samples->out.size = (size_t)(at - samples->out.at);
}

struct ctl_pair ctl_pair_of(const char *name, const char *value)
{
	struct ctl_pair pair = {0};
	int size = snprintf(pair.text, sizeof(pair.text) - 1, ",%s=\"%s", name, value);

	pair.size = (size_t)size < sizeof(pair.text) - 1 ? (size_t)size : sizeof(pair.text) - 2;
	pair.text[pair.size++] = '"';
	return pair;
}

void ctl_sample(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		const struct ctl_pair *pair, uint64_t number)
{
	char *at = begin(samples, suffix, labels, pair);

	if (at != NULL)
		end(samples, put_number(at, number));
}

void ctl_sample_seconds(struct ctl_samples *samples, const char *suffix,
			const struct ctl_labels *labels, const struct ctl_pair *pair, uint64_t ns)
{
	char *at = begin(samples, suffix, labels, pair);

	if (at != NULL)
		end(samples, put_seconds(at, ns));
}

void ctl_samples_begin(struct ctl_samples *samples, const char *name, const char *type,
		       const char *help)
{
	samples->name_size = strlen(name);
	assert(samples->name_size < sizeof(samples->name));
	snprintf(samples->name, sizeof(samples->name), "%s", name);
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
