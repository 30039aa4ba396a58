// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

/*
 * Changes a graph as its lines and words: leaves them out, doubles and swaps them, indents them
 * otherwise, puts words of the schema and of the text itself in place of others. Bytes are changed
 * too, one time in four.
 */
#define ROOM 65536
#define PIECES_MAX 2048

struct piece {
	const uint8_t *at;
	size_t size;
};

static size_t cut_lines(const uint8_t *bytes, size_t size, struct piece *pieces)
{
	size_t count = 0;

	for (size_t i = 0, from = 0; i < size && count < PIECES_MAX; i++) {
		if (bytes[i] != '\n' && i + 1 < size)
			continue;
		pieces[count++] = (struct piece){bytes + from, i + 1 - from};
		from = i + 1;
	}
	return count;
}

static bool is_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c >= 0x80;
}

static size_t cut_words(const uint8_t *bytes, size_t size, struct piece *pieces)
{
	size_t count = 0, from;

	for (size_t i = 0; i < size && count < PIECES_MAX; i++) {
		if (!is_word(bytes[i]))
			continue;
		for (from = i; i < size && is_word(bytes[i]); i++)
			;
		pieces[count++] = (struct piece){bytes + from, i - from};
	}
	return count;
}

static const char *const words[] = {
	"frag",
	"application",
	"arguments",
	"config",
	"fragments",
	"flows",
	"operators",
	"resources",
	"extensions",
	"scheduler",
	"requirements",
	"cpu",
	"cpuLimit",
	"gpuMemory",
	"sharedMemoryLimit",
	"labels",
	"near",
	"apart",
	"host",
	"on_failure",
	"watchdog",
	"compose",
	"metadata",
	"variables",
	"writer",
	"readers",
	"shape",
	"path",
	"string",
	"f32",
	"u8",
	"subgraphs",
	"subgraph",
	"services",
	"id",
	"thread_pools",
	"initial_size",
	"add",
	"pin_operator",
	"sched_policy",
	"sched_priority",
	"sched_runtime",
	"sched_period",
	"deadline",
	"fifo",
	"best_effort",
	"1024",
	"data_loggers",
	"rate",
	"budget",
	"basic_console_logger",
	"type",
	"when",
	"parameters",
	"conditions",
	"ports",
	"metadata_policy",
	"take",
	"age",
	"missing",
	"latest_within",
	"deadline",
	"deadlines",
	"budget",
	"on_miss",
	"stop",
	"acquisition",
	"reuse_last",
	"align",
	"inputs",
	"window",
	"timeout",
	"from",
	"to",
	"capacity",
	"policy",
	"edge",
	"default",
	"choices",
	"help",
	"from_config",
	"from_file",
	"count",
	"periodic",
	"block",
	"pop",
	"reject",
	"latest",
	"fault",
	"async_buffer",
	"event_based",
	"greedy",
	"multi_thread",
	"worker_thread_number",
	"clock",
	"manual",
	"initial_timestamp",
	"initial_time_scale",
	"stop_on_deadlock",
	"pin_cores",
	"cpu",
	"memory",
	"512Mi",
	"30hz",
	"2s",
	"inproc",
	"ucx",
	"auto",
	"restart",
	"intensity",
	"period",
	"update",
	"true",
	"false",
	"null",
	"0",
	"-1",
	"1",
	"18446744073709551616",
	"1e308",
	".inf",
	"0x7fffffffffffffff",
	"a.b -> c.d",
	"${source}",
	"$pool",
	"&x",
	"*x",
	"<<",
	"[a, b]",
	"{a: 1}",
	"|\n  text",
	"!!int",
	"\"\\u0000\"",
	"---",
	"'",
	"fragment1",
};

static size_t put(uint8_t *out, size_t n, const void *bytes, size_t size)
{
	if (n + size > ROOM)
		return n;
	memcpy(out + n, bytes, size);
	return n + size;
}

static size_t mutate_lines(const uint8_t *bytes, size_t size, uint8_t *out)
{
	static struct piece pieces[PIECES_MAX];
	size_t count = cut_lines(bytes, size, pieces), n = 0;
	uint32_t how = random_below(5), a, b;

	if (count == 0)
		return put(out, 0, bytes, size);
	a = random_below((uint32_t)count);
	b = random_below((uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		const struct piece *piece = &pieces[how == 1 && i == a   ? b
						    : how == 1 && i == b ? a
									 : i];
		size_t blanks = 0;

		if (how == 0 && i == a)
			continue;
		while (blanks < piece->size && piece->at[blanks] == ' ')
			blanks++;
		if (how == 2 && i == a && blanks >= 2)
			n = put(out, n, piece->at + 2, piece->size - 2);
		else if (how == 3 && i == a)
			n = put(out, put(out, n, "  ", 2), piece->at, piece->size);
		else
			n = put(out, n, piece->at, piece->size);
		if (how == 4 && i == a)
			n = put(out, n, pieces[b].at, pieces[b].size);
	}
	return n;
}

static size_t mutate_word(const uint8_t *bytes, size_t size, uint8_t *out)
{
	static struct piece pieces[PIECES_MAX];
	size_t count = cut_words(bytes, size, pieces), n;
	const struct piece *piece, *other;
	const char *word;

	if (count == 0)
		return put(out, 0, bytes, size);
	piece = &pieces[random_below((uint32_t)count)];
	n = put(out, 0, bytes, (size_t)(piece->at - bytes));
	if (random_below(3) == 0) {
		other = &pieces[random_below((uint32_t)count)];
		n = put(out, n, other->at, other->size);
	} else {
		word = words[random_below(sizeof(words) / sizeof(words[0]))];
		n = put(out, n, word, strlen(word));
	}
	if (random_below(6) == 0)
		n = put(out, n, ": {", random_below(4));
	return put(out, n, piece->at + piece->size,
		   (size_t)(bytes + size - piece->at) - piece->size);
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max, unsigned int seed)
{
	static uint8_t out[ROOM];
	size_t n;

	mutate_begin(seed);
	if (random_below(4) == 0 || size > ROOM / 2)
		return LLVMFuzzerMutate(bytes, size, max);
	n = random_below(2) == 0 ? mutate_lines(bytes, size, out) : mutate_word(bytes, size, out);
	if (n > max)
		return LLVMFuzzerMutate(bytes, size, max);
	memcpy(bytes, out, n);
	return n;
}
