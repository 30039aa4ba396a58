// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include "../expected.h"
#include <base/json.h>
#include "composed_dump.h"
#include "graph_edits.h"
#include "graph_ops.h"
#include "logged.h"

/*
 * Graphs, each a file of tests/data/expected/graphs, and what becomes of them: the parsed and
 * composed graph as text; then for many edits of the file its errors, or the lines of that text
 * which the edit has changed. A file that begins with "# composed" names types that are there.
 */
static struct edited edited;
#define ERRORS_SHOWN 4
#define LINE_SHOWN 160 /* names that are valid may be many */
#define VALUES_TRIED 2 /* of a key that has more */

/* Values that a key is given: at its bounds and beside them, and words that it knows. */
static const struct {
	const char *key, *values;
} bounds[] = {
	{"frag", "1|2"},
	{"application", "a.b|9a|a-b_9"},
	{"capacity", "1|0|65536|65537"},
	{"size", "0|65536|65537|-1|1"},
	{"policy", "block|pop|reject|fault|latest|async_buffer|0|1|2|3|stop|restart|migrate"},
	{"intensity", "1|0|1000|1001"},
	{"period", "0s|1ms|1h"},
	{"backoff", "0s|1ns|1h"},
	{"lease", "0s|1s|999ms|1h|3601s"},
	{"worker_thread_number", "1|0|1024|1025"},
	{"stop_on_deadlock_timeout_ms", "0|-1|31622400000|31622400001|-31622400001"},
	{"max_duration_ms", "0|-1|31622400000|31622400001"},
	{"check_recession_period_ms", "0|0.1|60000|60000.1|-1|1e-7"},
	{"pin_cores", "[]|[0]|[8191]|[8192]|[-1]|[1, 1]|[x]|3"},
	{"initial_size", "0|1|1024|1025|-1"},
	{"sched_priority", "0|1|99|100"},
	{"sched_policy", "SCHED_FIFO|SCHED_RR|SCHED_DEADLINE|1|2|6|3|fifo|rr|deadline"},
	{"sched_runtime", "0|1023|1024|1ms|1us|900us|2s"},
	{"sched_deadline", "0|100us|200us|1ms|2ms"},
	{"sched_period", "0|199us|200us|800us|99us|100us|5s"},
	{"initial_time_offset", "1e9|1.1e9|-1e9|-1.1e9"},
	{"initial_time_scale", "1e-6|9e-7|1e6|1.1e6|0"},
	{"initial_timestamp", "0|-1|4611686018427387903|4611686018427387904"},
	{"max_error", "0s|1ns|5"},
	{"num_start_messages_to_skip", "0|-1|1000000000000|1000000000001"},
	{"num_last_messages_to_discard", "0|10000|10001"},
	{"latency_threshold", "0|86400000|86400001"},
	{"num_buffered_messages", "0|1|1000000000000|1000000000001"},
	{"cpu", "0|0.001|0.0001|4096|4096.1|-1"},
	{"gpuLimit", "0|1|0.5|4096|4097"},
	{"cpuLimit", "1.5|2|2.5"},
	{"memory", "8Ti|1|0|1Gi|1025Mi"},
	{"memoryLimit", "511Mi|512Mi|9Ti"},
	{"labels", "{a: b}|{a b: c}|{a: [b]}|{}|{a: \"\"}|{worker: w1}"},
	{"near", "[one]|[four]|[two, two]|[three]|two|[]|[~]"},
	{"apart", "[one]|[two]|three"},
	{"type",
	 "manual|realtime|synthetic|greedy|multi_thread|GreedyScheduler|string|path|f64|bool"},
	{"shape",
	 "[]|0|[1, 2, 3, 4, 5, 6, 7, 8]|[1, 2, 3, 4, 5, 6, 7, 8, 9]|-1|-2|1099511627776|[9, -1]"},
	{"writer", "one|one.camera|two.any|four|three.show|one.none|\"\""},
	{"readers", "[]|[one, one]|[one.detect]|two|[three]"},
	{"budget", "0s|1ns|1h"},
	{"on_miss", "count|stop|drop"},
	{"from", "tick|acquisition|one|img|join.out|all"},
	{"path", "[camera]|[detect, camera]|[camera, camera]|[one.detect, one.camera]|[tx, mid]|x"},
	{"take", "every|latest_within"},
	{"missing", "wait|skip|reuse_last|default"},
	{"age", "0s|1ns"},
	{"window", "0s|1ns"},
	{"condition", "none|1"},
	{"edge", "auto|inproc|shm|ucx|tcp"},
	{"encrypt", "on|off|maybe"},
	{"dynamic", "true|false"},
	{"sha256", "abc|9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a0g"},
	{"metadata", "true|false|1"},
	{"metadata_policy", "update|inplace_update|reject|raise|default"},
	{"recess_period", "0|999|1000|1ns|0hz|1000000001s"},
	{"count", "-1|0|1"},
	{"min_size", "0|1|8|9|65536|65537"},
	{"front_stage_max_size", "0|3|2|65537"},
	{"max_batch_size", "0|1|9|10|65537"},
	{"max_delay_ns", "0|-1|1000000001s"},
	{"min_sum", "0|1|6|11|12|13|1000000001"},
	{"min_sizes", "[2]|[0, 1]|[9, 9]|[5, 6]|[2, 3, 4]|[6, 5]|[7, 1]"},
	{"sampling_mode", "SumOfAll|PerReceiver|Sum"},
	{"execution_frequency", "0|1ns|100hz"},
	{"min_blocks", "0|30|31|1000000001"},
	{"allocator", "$frames|$none|frames"},
	{"terms", "[]|[gate, gate]|[none]|[beat, second]"},
	{"or_combine_port_conditions", "[]|[a]|[[a], [b]]|[[a, b], [b]]|[out]|[a, out]"},
	{"num_blocks", "0|1|16|16777217"},
	{"storage_type", "0|1|2|3"},
	{"whole", "-6|-5|7|8|1e1"},
	{"part", "0.249|0.25|0.5|0.51|nan|inf"},
	{"word", "wild|tame"},
	{"pause", "0|3ms|3.1ms|3000001"},
	{"tune", "3|4|40|41"},
	{"limit", "0|1|4|5"},
	{"list", "[]|1|[1.5]|[x]"},
	{"map", "{}|{a: [b]}|[a]"},
	{"default", "\"\"|~|aja|7"},
	{"choices", "[]|[a, a]|[replayer]|replayer"},
	{"when",
	 "{source: aja}|{source: [aja, replayer]}|{source: none}|{none: x}|{fast: \"false\"}|{fast: 2}|{must: x}|{}|{times: 7}"},
	{"compose", "made|mad|\"\""},
	{"subgraph", "camera|rig|sink|list|made_pair|none"},
	{"ports",
	 "{}|[fwd.out]|[a.in, a.in]|{x: none.in}|{x: [a.in, a.out]}|{in: {in: a.in}}|{in: {out: a.in}}"},
	{"id", "\"\"|guest|spare"},
	{"host", "main|side|a b"},
	{"watchdog", "0|0s|1ns|2"},
	{"rate", "0hz|0s|1hz|100hz"},
	{"extensions",
	 "[]|[a/b.so]|[libone.so, libone.so]|[{name: libone.so, sha256: 0000000000000000000000000000000000000000000000000000000000000000}]|[{name: libone.so, sha256: abc}]"},
	{"resources", "[$none]|[pool]|[]|{}"},
	{"from_config", "none|[some, none]|some.deep|own|detection.deep|[]"},
};

/* Values of other kinds, for any key. */
static const char *const others[] = {
	"0",       "-1",        "1.5",
	"x",       "[1]",       "{a: 1}",
	"~",       "\"\"",      "99999999999999999999",
	"5x",      "1s",        "false",
	"\"a b\"", "${source}", "$none",
	"[[]]",    "\"1\"",     "{}",
};

/*
 * What became of the graph, else its errors: also those that show where its types are there, as
 * fragctl validate prints them.
 */
static char *judge(const struct fragi_spec_source *source, bool composed_too, bool *out_is_good)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	struct composed composed;
	char *made;
	size_t size;

	dump = open_memstream(&made, &size);
	logged_begin();
	*out_is_good = (composed_too ? fragi_spec_parse_partial(source, &diag, &spec)
				     : fragi_spec_parse(source, &diag, &spec)) == 0;
	if (*out_is_good && spec->help_wanted)
		fputs(fragi_spec_arguments_help(spec), dump);
	else if (*out_is_good)
		dump_spec(spec);
	if (composed_too && spec != NULL && !spec->help_wanted) {
		*out_is_good = compose_all(spec, &graph_plugin, &diag, &composed);
		if (*out_is_good)
			dump_composed(spec, &composed);
		composed_fini(&composed);
	}
	if (!*out_is_good) {
		rewind(dump);
		if (diag.count > ERRORS_SHOWN)
			diag.beyond += diag.count - ERRORS_SHOWN;
		diag.count = diag.count > ERRORS_SHOWN ? ERRORS_SHOWN : diag.count;
		dump_diag("  ", &diag);
	}
	logged_end(dump);
	fclose(dump);
	fragi_diag_fini(&diag);
	fragi_spec_destroy(spec);
	return made;
}

struct judging {
	struct edit_lines before; /* of the graph as it is */
	bool is_parsed_only;      /* else composed too, if all types are there */
	bool composed_too;
	FILE *out;
	const char *path; /* that was printed last */
};

/* Errors, and what is logged only then. */
static void print_errors(const struct judging *judging, char *lines)
{
	for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) {
		char *more = strstr(line, ", knobs");
		size_t i = 0;

		if (more == NULL)
			more = strstr(line, "; valid: scribe");
		if (more != NULL) /* types of libraries that are installed follow */
			strcpy(more, " ...");
		while (i < judging->before.count && strcmp(judging->before.items[i], line) != 0)
			i++;
		if (i == judging->before.count)
			fprintf(judging->out, "%.*s\n", LINE_SHOWN, line);
	}
}

static void print_judgement(struct judging *judging, const struct fragi_spec_source *source)
{
	bool is_good;
	char *made = judge(source, judging->composed_too, &is_good);
	struct edit_lines lines;

	if (!is_good) {
		print_errors(judging, made);
	} else {
		lines = edit_split(made);
		edit_difference(judging->before, lines, judging->out);
		free(lines.items);
	}
	free(made);
}

/* Takes text. */
static void try(struct judging *judging, const char *path, const char *what, char *text)
{
	const struct fragi_spec_source source = {.graph = {"g", text, strlen(text)}};

	if (judging->path != path)
		fprintf(judging->out, "%s\n", path);
	judging->path = path;
	fprintf(judging->out, " %s\n", what);
	print_judgement(judging, &source);
	free(text);
}

static void try_value(struct judging *judging, const struct edit_node *node, const char *value,
		      size_t length)
{
	char with[200], what[210];

	snprintf(with, sizeof(with), "%.*s", (int)length, value);
	snprintf(what, sizeof(what), "= %s", with);
	try(judging, node->path, what, edit_replace(edited.text, node->begin, node->end, with));
}

/* Some of the values that a key is given: "a|b|c". */
static void try_listed(struct judging *judging, const struct edit_node *node, const char *values)
{
	size_t count = 1, length;

	for (const char *v = values; *v != '\0'; v++)
		count += *v == '|';
	for (const char *v = values; *v != '\0'; v += length + (v[length] == '|')) {
		length = strcspn(v, "|");
		if (edit_draw(&edited, count) < VALUES_TRIED)
			try_value(judging, node, v, length);
	}
}

/* Values at the bounds of its key; one of another kind; one that stands elsewhere. */
static void try_values(struct judging *judging, const struct edit_node *node)
{
	const char *key = node->node->key != NULL ? node->node->key->text : "";
	const struct edit_node *from = &edited.nodes[edit_draw(&edited, edited.count)];

	for (size_t i = 0; i < FRAG_COUNT_OF(bounds); i++)
		if (strcmp(bounds[i].key, key) == 0)
			try_listed(judging, node, bounds[i].values);
	if (edit_draw(&edited, 3) == 0) {
		const char *other = others[edit_draw(&edited, FRAG_COUNT_OF(others))];

		try_value(judging, node, other, strlen(other));
	}
	if (from->end != 0 && from->end - from->begin < 60 && edit_draw(&edited, 3) == 0)
		try_value(judging, node, edited.text + from->begin, from->end - from->begin);
}

static void try_edits(struct judging *judging, const struct edit_node *node)
{
	char renamed[100];

	if (node->end != 0)
		try_values(judging, node);
	try(judging, node->path, "gone", edit_delete(edited.text, node));
	if (edit_draw(&edited, 10) == 0)
		try(judging, node->path, "twice", edit_twice(edited.text, node));
	if (node->node->key == NULL || edit_draw(&edited, 4) > 0)
		return;
	snprintf(renamed, sizeof(renamed), "%sx", node->node->key->text);
	try(judging, node->path, "renamed",
	    edit_replace(edited.text, node->key, node->key + strlen(renamed) - 1, renamed));
}

/* Two values at once: which errors hide others, and in which order they come. */
static void try_two(struct judging *judging)
{
	const struct edit_node *a = &edited.nodes[1 + edit_draw(&edited, edited.count - 1)];
	const struct edit_node *b = &edited.nodes[1 + edit_draw(&edited, edited.count - 1)];
	const char *x = others[edit_draw(&edited, FRAG_COUNT_OF(others))];
	const char *y = others[edit_draw(&edited, FRAG_COUNT_OF(others))];
	char what[500], *text;

	if (a->end == 0 || b->end == 0 || a->end >= b->begin)
		return;
	snprintf(what, sizeof(what), "%s = %s, %s = %s", a->path, x, b->path, y);
	text = edit_replace(edited.text, b->begin, b->end, y);
	try(judging, "two", what, edit_replace(text, a->begin, a->end, x));
	free(text);
}

static char *text_of(const char *path)
{
	char *text = calloc(1, 1 << 16);
	FILE *file = fopen(path, "r");

	cr_assert_not_null(file, "%s", path);
	cr_assert_lt(fread(text, 1, (1 << 16) - 1, file), (1 << 16) - 1);
	fclose(file);
	return text;
}

/* The graph as it is stands first, and what follows is compared with it. Returns its text. */
static char *begin(struct judging *judging, const char *name, char **out_found)
{
	static char *made;
	static size_t size;
	struct fragi_spec_source source = {.graph = {.file = "g"}};
	bool is_good;
	char path[100], *text;

	snprintf(path, sizeof(path), "tests/data/expected/graphs/%s.yaml", name);
	text = text_of(path);
	source.graph.text = text;
	source.graph.length = strlen(text);
	judging->composed_too = !judging->is_parsed_only && strncmp(text, "# composed", 10) == 0;
	judging->out = open_memstream(out_found, &size);
	made = judge(&source, judging->composed_too, &is_good);
	cr_assert(is_good, "%s", made);
	fputs(made, judging->out);
	judging->before = edit_split(made);
	return text;
}

static void end(struct judging *judging, const char *name, char **found)
{
	char path[100];

	fclose(judging->out);
	snprintf(path, sizeof(path), "graphs/%s", name);
	expected_compare(path, *found);
	free(*found);
	free(judging->before.items[0]); /* the text that was split */
	free(judging->before.items);
}

static void edits_of(const char *name, uint64_t seed)
{
	struct judging judging = {0};
	char *found, *text = begin(&judging, name, &found);

	edited_init(&edited, text, seed);
	for (size_t i = 1; i < edited.count; i++)
		try_edits(&judging, &edited.nodes[i]);
	for (int i = 0; i < 60; i++)
		try_two(&judging);
	end(&judging, name, &found);
	free(text);
	fragi_arena_fini(&edited.arena);
}

/* What is given beside a graph: `--config` as one text, `--set` and arguments. */
struct given {
	const char *config, *sets[5], *args[6];
};

static void print_given(const struct given *given, FILE *out)
{
	fputc(' ', out);
	for (const char *c = given->config != NULL ? given->config : ""; *c != '\0'; c++)
		fprintf(out, *c == '\n' ? "; " : "%c", *c);
	for (int i = 0; i < 5 && given->sets[i] != NULL; i++)
		fprintf(out, "%s--set %s", i > 0 || given->config != NULL ? " " : "",
			given->sets[i]);
	for (int i = 0; i < 6 && given->args[i] != NULL; i++)
		fprintf(out, " %s", given->args[i]);
	fputc('\n', out);
}

/* The graph `name` with each of them; the text is called `into`. */
static void given_of(const char *name, const char *into, bool is_parsed_only,
		     const struct given *given, size_t count)
{
	struct judging judging = {.is_parsed_only = is_parsed_only};
	char *found, *text = begin(&judging, name, &found);

	for (size_t i = 0; i < count; i++) {
		struct fragi_spec_text config = {.file = "more", .text = given[i].config};
		struct fragi_spec_source source = {
			.graph = {"g", text, strlen(text)},
			.configs = &config,
			.config_count = config.text != NULL,
			.sets = given[i].sets,
			.args = given[i].args,
		};

		config.length = config.text != NULL ? strlen(config.text) : 0;
		while (source.set_count < 5 && source.sets[source.set_count] != NULL)
			source.set_count++;
		while (source.arg_count < 6 && source.args[source.arg_count] != NULL)
			source.arg_count++;
		print_given(&given[i], judging.out);
		print_judgement(&judging, &source);
	}
	end(&judging, into, &found);
	free(text);
}

static const struct given of_settings[] = {
	{.args = {"--source", "aja"}},
	{.args = {"--source=aja"}},
	{.args = {"--source=replayer", "--data=there", "--fast"}},
	{.args = {"--source", "aj"}},
	{.args = {"--source"}},
	{.args = {"--source="}},
	{.args = {"--sourc", "aja"}},
	{.args = {"--data", "--fast"}},
	{.args = {"--fast", "false"}},
	{.args = {"--fast=no"}},
	{.args = {"--fast=perhaps"}},
	{.args = {"--must", "x", "--must", "y"}},
	{.args = {"data"}},
	{.args = {"--", "x"}},
	{.args = {"-d", "x"}},
	{.args = {"--help"}},
	{.args = {"--data", "a b", "--must=${source}"}},
	{.sets = {"one.camera.path=x.mp4"}},
	{.sets = {"one.camera.path=x.mp4", "one.camera.path=y.mp4"}},
	{.sets = {"one.camera.conditions=[]", "one.camera.new={a: [1, 2]}"}},
	{.sets = {"one.detect.threshold=${data}", "one.detect.mode=\"$x\"", "two.view.title=~"}},
	{.sets = {"one.detect.mode=[a"}},
	{.sets = {"one.detect.mode="}},
	{.sets = {"one.detect.mode"}},
	{.sets = {"detect.mode=x"}},
	{.sets = {"one.detct.mode=x"}},
	{.sets = {"four.detect.mode=x"}},
	{.sets = {"one..mode=x"}},
	{.sets = {"one.a b.mode=x"}},
	{.sets = {"two.other.mode=x"}},
	{.sets = {"three.show.mode=x"}, .args = {"--source", "aja"}},
	{.sets = {"swap:one/libone.so=libnew.so"}},
	{.sets = {"swap:one/libnone.so=libnew.so", "swap:two/libcommon.so=liba.so"}},
	{.sets = {"swap:one/libpinned.so=libnew.so"}},
	{.sets = {"swap:one=libnew.so", "swap:/x=y", "swap:one/libone.so="}},
	{.sets = {"swap:one/libone.so=a.so", "swap:one/libone.so=b.so",
		  "swap:none/libone.so=c.so"}},
	{.config = "detection: {threshold: 0.9}\n"},
	{.config = "detection: [1]\nnew: {a: 1}\n"},
	{.config =
		 "detection: {labels: [c], deep: {one: 9, three: 3}}\nscheduling: {type: greedy}\n"},
	{.config = "scheduling: {worker_thread_number: 5, pin_cores: [4]}\n"},
	{.config = "detection_aja: {threshold: \"${data}\"}\n", .args = {"--source", "aja"}},
	{.config = "detection: ~\n", .sets = {"one.detect.threshold=2"}},
	{.sets = {"tracking=way.log"}},
};

static const struct given of_parameters[] = {
	{.config = "some: {whole: 5}\n"},
	{.config = "some: {wholly: 5}\nmore: {whole: x}\n"},
	{.config = "other: {a: 1}\nthird: 3\n"},
	{.config = "config: {some: {whole: 5}}\n"},
	{.config = "config: {some: {whole: 5}}\nmore: {whole: 6}\n"},
	{.config = "- a\n"},
	{.config = "x\n"},
	{.config = "more: 1\nmore: 2\n"},
	{.config = "a: {\n"},
	{.config = "~\n"},
	{.config = "some: {word: \"${word}\", part: 0.5}\n", .args = {"--word=wild"}},
	{.config = "some: {list: [\"${number}\"]}\n", .args = {"--number", "6"}},
	{.sets = {"f.all.whole=8", "f.all.part=0.3", "f.some.size=2049"}},
	{.sets = {"all.words=[a, b, c]", "all.map={x: y}", "all.list=5", "all.tree=\"[1]\""}},
	{.sets = {"all.heap=$frames", "all.gate=$none", "some.heap=frames", "least.heap=~"}},
	{.sets = {"all.tune=41", "all.tune=40", "text.none=1"}},
};

static const struct given of_tests[] = {
	{.sets = {"clock=manual"}},
	{.sets = {"clock=synthetic", "duration=50"}},
	{.sets = {"clock=sundial"}},
	{.sets = {"duration=0"}},
	{.sets = {"duration=1099511627776"}},
	{.sets = {"duration=1099511627777"}},
	{.sets = {"duration=x"}},
	{.sets = {"input:conditions.tx.out=in.txt"}},
	{.sets = {"input:tx.out=in.txt", "input:tx.more=more.txt"}},
	{.sets = {"input:ty.out=a.txt", "input:tx.out=b.txt", "output:wait.out=c.txt"}},
	{.sets = {"output:wait.out=out.txt", "output:conditions.every.out=too.txt"}},
	{.sets = {"input:out=in.txt"}},
	{.sets = {"input:tx.out"}},
	{.sets = {"input:tz.out=in.txt"}},
	{.sets = {"output:weit.out=out.txt"}},
	{.sets = {"input:other.tx.out=in.txt"}},
	{.sets = {"output:other.wait.out=out.txt", "duration=7", "tx.count=3"}},
	{.sets = {"tx.count=3", "conditions.ty.add=4"}},
	{.sets = {"tx.count=x", "ty.cuont=4", "tz.count=1"}},
};

static const struct given of_fragment_tests[] = {
	{.sets = {"clock=manual"}},
	{.sets = {"clock=synthetic", "input:one.camera.out=in.txt"}},
	{.sets = {"input:camera.out=in.txt", "output:detect.out=out.txt"}},
	{.sets = {"input:one.detect.more=in.txt", "output:two.view.out=out.txt", "duration=9"}},
	{.sets = {"output:one.detect.out=a.txt", "output:one.detect.out=b.txt"}},
	{.sets = {"input:one.camera.out=a.txt", "input:one.camera.out=b.txt"}},
	{.sets = {"input:two.view.in=in.txt"}, .args = {"--source", "aja"}},
};

Test(graph_edits, what_is_given_beside_a_graph)
{
	given_of("settings", "given", true, of_settings, FRAG_COUNT_OF(of_settings));
}

Test(graph_edits, configurations)
{
	given_of("parameters", "configurations", false, of_parameters,
		 FRAG_COUNT_OF(of_parameters));
}

Test(graph_edits, composers)
{
	static char numbers[DEEDS][4];
	static struct given given[DEEDS];

	for (int i = 0; i < DEEDS; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%d", i);
		given[i] = (struct given){.args = {"--deed", numbers[i]}};
	}
	given_of("subgraphs", "composers", false, given, DEEDS);
}

Test(graph_edits, tests_of_a_graph)
{
	given_of("conditions", "tests", true, of_tests, FRAG_COUNT_OF(of_tests));
}

Test(graph_edits, tests_of_fragments)
{
	given_of("settings", "fragment_tests", true, of_fragment_tests,
		 FRAG_COUNT_OF(of_fragment_tests));
}

/* Texts that are no YAML, or not of the kind that graphs may be. */
static const char *const broken[] = {
	"a: [1, 2\n",
	"a: [1, 2}\n",
	"a: {b: 1\nc: 2\n",
	"a: {b: [1, {c: 2]}\n",
	"a: 1]\n",
	"a: \"text\n",
	"a: 'text\nb: 1\n",
	"a: \"\\q\"\n",
	"a: b: c\n",
	"a: 1\n  b: 2\n",
	"a:\n    b: 1\n  c: 2\n",
	"a:\n  - 1\n - 2\n",
	"- 1\nb: 2\n",
	"a: 1\n- 2\n",
	"a:\n\tb: 1\n",
	"\ta: 1\n",
	"a: [\t1]\nb: \t2\n",
	"a: *b\n",
	"a: &b 1\nc: *b\nd: *e\n",
	"a: &b [*b]\n",
	"a: &b 1\nc: &b 2\nd: *b\n",
	"<<: {a: 1}\nb: 2\n",
	"a: &b {c: 1}\nd: {<<: *b}\n",
	"a: !!int 1\n",
	"a: !thing {b: 1}\n",
	"a: 1\n---\nb: 2\n",
	"%YAML 1.2\n---\na: 1\n",
	"%TAG ! x\n---\na: 1\n",
	"? a\n: 1\n",
	"? [a]\n: 1\n",
	"{a: 1}: 2\n",
	"[a]: 2\n",
	"~: 1\n",
	"\"\": 1\n",
	"1: 2\n1: 3\n",
	"a: 1\nb: 1\na: 2\n",
	"a: {b: 1, b: 2, c: 3, c: 4}\n",
	"a: @b\n",
	"a: `b`\n",
	"a: %b\n",
	"a: |\n  one\n  two\n",
	"a: >-\n  one\n  two\n",
	"a: |9\n  one\n",
	"a: ${b}\n",
	"a: {b: ${c}}\n",
	"a: [${b}, 1]\n",
	"a: \x01\n",
	"a: \xff\n",
	"a: \xc3\n",
	"\xef\xbb\xbf"
	"a: 1\n",
	"a: \xc2\x85"
	"b\n",
	"a,b: 1\n",
	"a: 1,\n",
	"a: [1,, 2]\n",
	"a: {b 1}\n",
	"a: {b: 1 c: 2}\n",
	"a: [1 2]\n",
	"a: -\n",
	"a: - b\n",
	"a:b\n",
	"a\nb: 1\n",
	"a: 1 # comment\n#b: 2\n",
	"# only a comment\n",
	"---\n",
	"a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n",
};

Test(graph_edits, broken_texts)
{
	char *all;
	size_t size;
	FILE *printed = open_memstream(&all, &size);

	for (size_t i = 0; i < FRAG_COUNT_OF(broken); i++) {
		struct fragi_arena arena = {.limit_bytes = 1 << 20};
		struct fragi_diag diag = {0};
		struct fragi_node *root = NULL;
		int r;

		dump = printed;
		fragi_json_text(broken[i], dump);
		logged_begin();
		r = fragi_yaml_parse(&arena, "g", broken[i], strlen(broken[i]), &diag, &root);
		logged_end(dump);
		fprintf(dump, " %s", r == 0 ? "is " : "");
		if (root != NULL)
			dump_value(root);
		fputc('\n', dump);
		dump_diag("  ", &diag);
		fragi_diag_fini(&diag);
		fragi_arena_fini(&arena);
	}
	fclose(printed);
	expected_compare("graphs/broken", all);
	free(all);
}

Test(graph_edits, settings)
{
	edits_of("settings", 1);
}

Test(graph_edits, flows)
{
	edits_of("flows", 2);
}

Test(graph_edits, conditions)
{
	edits_of("conditions", 3);
}

Test(graph_edits, subgraphs)
{
	edits_of("subgraphs", 4);
}

Test(graph_edits, parameters)
{
	edits_of("parameters", 5);
}
