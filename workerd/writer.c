// SPDX-License-Identifier: Apache-2.0
#include <workerd/writer.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <base/log_line.h>
#include <base/printable.h>
#include <base/sentence.h>

/* Of lines that only daemons log. */
static const char *const daemons[] = {"driver", "worker", "keys", "service"};

int wrk_writer_copy(const struct wrk_writer *from, struct fragi_arena *arena,
		    struct wrk_writer *out_writer)
{
	const char **fragments = fragi_arena_alloc(arena, (from->count + 1) * sizeof(*fragments));
	const char *application = fragi_arena_strdup(arena, from->application);

	if (fragments == NULL || application == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < from->count; i++) {
		fragments[i] = fragi_arena_strdup(arena, from->fragments[i]);
		if (fragments[i] == NULL)
			return -ENOMEM;
	}
	*out_writer = (struct wrk_writer){application, fragments, from->count, from->names_plain};
	return 0;
}

static bool is_text(struct fragi_span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.text, text, span.length) == 0;
}

static bool is_of(const struct wrk_writer *writer, const struct fragi_log_line *line)
{
	bool has_fragment = false;

	if (line->application.length == 0 && line->fragment.length == 0)
		return false;
	if (line->application.length != 0 && !is_text(line->application, writer->application))
		return false;
	for (size_t i = 0; i < writer->count; i++)
		has_fragment = has_fragment || is_text(line->fragment, writer->fragments[i]);
	return has_fragment || line->fragment.length == 0;
}

static bool is_of_daemon(const struct fragi_log_line *line)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(daemons); i++)
		if (is_text(line->topic, daemons[i]))
			return true;
	return false;
}

static size_t add(char out[WRK_SIGNED_MAX], size_t used, struct fragi_span text)
{
	size_t room = WRK_SIGNED_MAX - 1 - used, size = text.length < room ? text.length : room;

	memcpy(out + used, text.text, size);
	return used + size;
}

static size_t add_name(const struct wrk_writer *writer, char out[WRK_SIGNED_MAX], size_t used)
{
	const char *first = writer->count > 0 ? writer->fragments[0] : "";
	char name[320];
	int n;

	if (writer->count > 1)
		n = snprintf(name, sizeof(name),
			     "%.100s/%.100s and %zu more: ", writer->application, first,
			     writer->count - 1);
	else
		n = snprintf(name, sizeof(name), "%.100s/%.100s: ", writer->application, first);
	return add(out, used, (struct fragi_span){name, (size_t)n});
}

/* `TIME LEVEL ` and the topic stay in front of the name. */
static size_t add_head(const struct fragi_log_line *line, const char *text,
		       char out[WRK_SIGNED_MAX], size_t used)
{
	bool is_daemon = is_of_daemon(line);

	used = add(out, used, (struct fragi_span){text, (size_t)(line->message.text - text)});
	if (line->topic.length == 0 || is_daemon)
		used = add(out, used, (struct fragi_span){"host", 4});
	else
		used = add(out, used, line->topic);
	return add(out, used, (struct fragi_span){" ", 1});
}

size_t wrk_writer_sign(const struct wrk_writer *writer, const char *line, size_t size,
		       char out[WRK_SIGNED_MAX])
{
	char shown[WRK_SIGNED_MAX];
	size_t length = fragi_show(line, size, shown, sizeof(shown)), used = 0;
	struct fragi_log_line parsed;
	struct fragi_span rest = {shown, length};

	fragi_log_line_parse(shown, length, &parsed);
	if (writer != NULL && length > 0 && (writer->names_plain || parsed.time.length != 0) &&
	    (is_of_daemon(&parsed) || !is_of(writer, &parsed))) {
		if (parsed.time.length != 0) {
			used = add_head(&parsed, shown, out, used);
			rest = parsed.message;
			if (parsed.topic.length != 0 && !is_of_daemon(&parsed)) {
				rest.text += parsed.topic.length;
				rest.length -= parsed.topic.length;
				while (rest.length > 0 &&
				       (*rest.text == ' ' || *rest.text == ':')) {
					rest.text++;
					rest.length--;
				}
			}
		}
		used = add_name(writer, out, used);
	}
	length = used + rest.length;
	used = add(out, used, rest);
	out[used] = '\0';
	return used == length ? used : strlen(fragi_sentence_add(out, WRK_SIGNED_MAX, "..."));
}
