// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#define LOG_TOPIC "data"
#include <base/json.h>
#include <base/log.h>
#include <data/metadata.h>
#include <data/print.h>
#include <res/data_logger.h>

/* Writes messages as text and as JSON, and the resource that says how much of them. */

static const struct frag_param text_serializer_params[] = {
	FRAG_PARAM_I64(struct fragi_text_serializer, max_elements, 10, .min = 0, .max = 1e9,
		       .headline = "Elements of a tensor, array or map that are written"),
	FRAG_PARAM_I64(struct fragi_text_serializer, max_metadata_items, 10, .min = 0, .max = 1e6,
		       .headline = "Entries of the metadata that are written"),
};

const struct fragi_built_in_resource fragi_simple_text_serializer = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "simple_text_serializer",
		 .headline = "How data loggers write messages as text",
		 .params = text_serializer_params,
		 .param_count = FRAG_COUNT_OF(text_serializer_params),
		 .state_size = sizeof(struct fragi_text_serializer)},
};

static const struct fragi_text_serializer *serializer_of(const struct frag_log_entry *entry)
{
	return &fragi_data_logger_of(entry->logger)->text;
}

static void print_metadata(const struct frag_log_entry *entry, FILE *out)
{
	const struct fragi_text_serializer *text = serializer_of(entry);
	uint32_t count = entry->metadata != NULL ? frag_metadata_count(entry->metadata) : 0;
	const struct frag_type *type;
	const void *value;
	size_t size;
	const char *key;

	fputc('{', out);
	for (uint32_t i = 0; i < count && i < text->max_metadata_items; i++) {
		key = fragi_metadata_at(entry->metadata, i, &type, &value, &size);
		fputs(i > 0 ? ", " : "", out);
		fragi_json_text(key, out);
		fputs(": ", out);
		if (type == &frag_type_tensor)
			fragi_tensor_print(*(struct frag_tensor *const *)value, entry->has_content,
					   (uint64_t)text->max_elements, out);
		else
			fragi_value_print(type, value, size, (uint64_t)text->max_elements, out);
	}
	if (count > text->max_metadata_items)
		fprintf(out, "%s\"...\": %" PRIu32, text->max_metadata_items > 0 ? ", " : "",
			count);
	fputc('}', out);
}

static void print_value(const struct frag_log_entry *entry, const struct frag_type *type,
			const void *value, size_t size, FILE *out)
{
	fragi_value_print(type, value, size, (uint64_t)serializer_of(entry)->max_elements, out);
}

static void print_tensor(const struct frag_log_entry *entry, uint32_t i, FILE *out)
{
	fragi_tensor_print(frag_message_tensor_at(entry->message, i, NULL), entry->has_content,
			   (uint64_t)serializer_of(entry)->max_elements, out);
}

static int result(FILE *out)
{
	return ferror(out) != 0 ? -EIO : 0;
}

int frag_log_entry_print(const struct frag_log_entry *entry, FILE *out)
{
	uint32_t tensors = frag_message_tensor_count(entry->message);
	const struct frag_type *type;
	const void *value;
	const char *name, *separator = ": ";
	size_t size;

	fputs(entry->dir == FRAG_IN ? "input" : "output", out);
	type = frag_message_value(entry->message, &value, &size);
	if (type != NULL) {
		fprintf(out, "%s%s ", separator, type->name);
		print_value(entry, type, value, size, out);
		separator = ", ";
	}
	for (uint32_t i = 0; i < tensors; i++) {
		(void)frag_message_tensor_at(entry->message, i, &name);
		fprintf(out, "%stensor ", separator);
		fragi_json_text(name, out);
		fputc(' ', out);
		print_tensor(entry, i, out);
		separator = ", ";
	}
	if (entry->metadata != NULL && frag_metadata_count(entry->metadata) > 0) {
		fprintf(out, "%smetadata ", separator);
		print_metadata(entry, out);
	}
	return result(out);
}

int frag_log_entry_print_json(const struct frag_log_entry *entry, FILE *out)
{
	uint32_t tensors = frag_message_tensor_count(entry->message), clock, flags;
	const struct frag_type *type;
	const void *value;
	const char *name;
	uint64_t sequence;
	int64_t time_ns;
	size_t size;

	fprintf(out, "{\"time_unix_ns\": %" PRId64 ", \"number\": %" PRIu64 ", \"id\": ",
		entry->time_unix_ns, entry->number);
	fragi_json_text(entry->id, out);
	fprintf(out, ", \"io\": \"%s\"", entry->dir == FRAG_IN ? "input" : "output");
	if (frag_message_acquisition(entry->message, &time_ns, &clock) == 0)
		fprintf(out, ", \"acquisition_ns\": %" PRId64 ", \"clock\": %" PRIu32, time_ns,
			clock);
	if (frag_message_sequence(entry->message, &sequence) == 0)
		fprintf(out, ", \"sequence\": %" PRIu64, sequence);
	flags = frag_message_flags(entry->message);
	if (flags != 0)
		fprintf(out, ", \"flags\": %" PRIu32, flags);
	type = frag_message_value(entry->message, &value, &size);
	if (type != NULL) {
		fputs(", \"type\": ", out);
		fragi_json_text(type->name, out);
		fputs(", \"value\": ", out);
		print_value(entry, type, value, size, out);
	}
	for (uint32_t i = 0; i < tensors; i++) {
		(void)frag_message_tensor_at(entry->message, i, &name);
		fputs(i == 0 ? ", \"tensors\": {" : ", ", out);
		fragi_json_text(name, out);
		fputs(": ", out);
		print_tensor(entry, i, out);
	}
	fputs(tensors > 0 ? "}" : "", out);
	if (entry->metadata != NULL) {
		fputs(", \"metadata\": ", out);
		print_metadata(entry, out);
	}
	fputc('}', out);
	return result(out);
}

void frag_log_entry_log(const struct frag_log_entry *entry, const char *text)
{
	if (fragi_log_operator_threshold <= (int)FRAGI_LOG_INFO)
		fragi_log_write(FRAGI_LOG_INFO, LOG_TOPIC, entry->id, "%s", text);
}
