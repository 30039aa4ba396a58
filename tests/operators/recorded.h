/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_RECORDED_H
#define TESTS_OPERATORS_RECORDED_H

#include <fcntl.h>
#include <fts.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expected.h"
#include "samples.h"
#include "short_memory.h"

/*
 * What an operator does with every value beside the bounds of each of its parameters, with every
 * kind of message at each of its inputs, where memory is short, and with some of all that at once:
 * all that it emits, logs, writes and refuses, compared with a recorded text. The program is linked
 * with --wrap for the functions of short_memory.h. Where pixels of u8 lie in the middle between two
 * values, the compiler decides (FMA): cases are chosen so that there are none.
 */
struct file {
	char *name, *text;
};
#define FILES_MAX 32
struct subject {
	const struct frag_op_type *type;
	const char
		*name; /* of its lines, and with _gpu if its kernels are tried, of what it does */
	bool on_gpu;   /* what comes to the first input lies there */
	bool tries_kernel; /* with the lines and the samples alone */
	/* fills in given files that are no texts; NULL: there are none */
	void (*prepare)(void);
	bool ends; /* there is no tick after that in which it is done */
	/* further cases; NULL: none */
	void (*run_own)(const struct subject *s);
	/* called before and after the operator is made, and each tick; NULL: nothing is called */
	void (*around)(bool begins);
	/* what something else than this program has not got back after a case; NULL: nothing */
	int (*left)(void);
	/* numbers of parameters above this are not ticked with; 0: all are; below 0: nothing is */
	double ticks_max;
	/*
	 * The lines of tests/data/operators/NAME.txt:
	 * file NAME TEXT             lies in the folder
	 * name=value; ...            arguments with which the operator does something
	 * port message & port message / the same of the next tick
	 * name=value; ... | ticks    further cases; what is left out is that above
	 */
	char *lines;
	struct file files[FILES_MAX + 1];
	const char *args, *feed, *more;
};

#define VALUES_MAX 48
#define DRAWN 30
#define ARGS_MAX 16

/* ---- files ---- */

static FILE *out;
/* A folder in which operators live, and what lies there; they only read that. */
static int folder = -1;
static void make_files(const struct file *files)
{
	for (; files->name != NULL; files++) {
		int fd = openat(folder, files->name, O_CREAT | O_TRUNC | O_WRONLY, 0666);

		cr_assert(fd >= 0 && write(fd, files->text, strlen(files->text)) >= 0);
		close(fd);
	}
}

/* Prints a file that is something else than below, and returns whether it is; NULL: none is. */
static bool (*print_other)(const char *path);

/* Of a picture its sides, depth and colours; of a text its lines. */
static void print_file(int fd, const char *name)
{
	uint8_t text[4096];
	ssize_t bytes = read(fd, text, sizeof(text) - 1);

	text[bytes > 0 ? bytes : 0] = '\0';
	if (bytes > 26 && memcmp(text, "\x89PNG", 4) == 0)
		fprintf(out, "  file %s: PNG of %d x %d, %d bits, colours %d\n", name,
			text[18] << 8 | text[19], text[22] << 8 | text[23], text[24], text[25]);
	else if (bytes > 6 && memcmp(text, "\x93NUMPY", 6) == 0)
		fprintf(out, "  file %s: NumPy, %zd bytes\n", name, bytes);
	else
		fprintf(out, "  file %s:\n%s", name, (char *)text);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void remove_files(const struct file *files)
{
	for (; files->name != NULL; files++)
		unlinkat(folder, files->name, 0);
}

/* Prints what is new, in the order of the names, and removes it. */
static void print_files(const struct file *files)
{
	char *const here[] = {(char[]){"."}, NULL};
	FTS *tree = fts_open(here, FTS_PHYSICAL | FTS_NOCHDIR, by_name);

	for (FTSENT *e; (e = fts_read(tree)) != NULL;) {
		const struct file *f = files;
		int fd;

		if (e->fts_level > 0 && e->fts_info == FTS_DP)
			rmdir(e->fts_path);
		if (e->fts_info != FTS_F)
			continue;
		while (f->name != NULL && strcmp(f->name, e->fts_path + 2) != 0)
			f++;
		if (f->name != NULL)
			continue;
		if (print_other == NULL || !print_other(e->fts_path + 2)) {
			fd = open(e->fts_path, O_RDONLY);
			print_file(fd, e->fts_path + 2);
			close(fd);
		}
		unlink(e->fts_path);
	}
	fts_close(tree);
}

/* ---- one case ---- */

static int stderr_file;

/* Prints the lines that were logged, without their time, and none of FFmpeg's. */
static void print_log(void)
{
	static char text[16384];
	ssize_t bytes = pread(stderr_file, text, sizeof(text) - 1, 0);
	char *rest = NULL;

	text[bytes > 0 ? bytes : 0] = '\0';
	for (char *l = strtok_r(text, "\n", &rest); l != NULL; l = strtok_r(NULL, "\n", &rest))
		if (*l != '[')
			fprintf(out, "    log%s\n", strchr(l, ' ') != NULL ? strchr(l, ' ') : l);
	cr_assert_eq(ftruncate(stderr_file, 0), 0);
	lseek(stderr_file, 0, SEEK_SET);
}

/* Puts "name=value; name=value" into args; a later one replaces an earlier one. Changes text. */
static void read_args(char *text, struct frag_arg args[ARGS_MAX])
{
	char *rest = NULL;

	for (char *a = strtok_r(text, ";", &rest); a != NULL; a = strtok_r(NULL, ";", &rest)) {
		char *name = a + strspn(a, " "), *value = strchr(name, '=');
		size_t i = 0;

		cr_assert_not_null(value, "%s", a);
		*value++ = '\0';
		for (size_t last = strlen(value); last > 0 && value[last - 1] == ' ';)
			value[--last] = '\0';
		while (args[i].name != NULL && strcmp(args[i].name, name) != 0)
			i++;
		cr_assert_lt(i, ARGS_MAX - 1);
		args[i] = (struct frag_arg){name, value};
	}
}

static void take_all(struct frag_harness *h, const struct frag_op_type *type)
{
	static const char *const added[] = {"a", "b"}; /* that operators without ports may add */
	struct frag_message *m;

	for (size_t i = 0; i < type->port_count + FRAG_COUNT_OF(added); i++) {
		const char *port =
			i < type->port_count ? type->ports[i].name : added[i - type->port_count];

		while (frag_harness_take(h, port, &m) == 0) {
			fprintf(out, "    %s:", port);
			print_sample_message(out, m);
			frag_message_unref(m);
		}
	}
}

static void around(const struct subject *s, bool begins)
{
	memory.is_on = begins;
	if (s->around != NULL)
		s->around(begins);
}

/* Returns what compute has returned. */
static int tick(struct frag_harness *h, const struct subject *s, char *given, int n)
{
	const struct frag_op_type *type = s->type;
	char *rest = NULL;
	int r;

	for (char *g = strtok_r(given, "&", &rest); g != NULL; g = strtok_r(NULL, "&", &rest)) {
		char *port = g + strspn(g, " "), *space = strchr(port, ' ');

		if (space == NULL)
			continue;
		*space = '\0';
		if (s->on_gpu && strcmp(port, type->ports[0].name) == 0)
			sample_device.type = FRAG_DEVICE_CUDA;
		r = frag_harness_give(h, port, sample_message(space + 1, n));
		cr_assert_eq(r, 0, "%s: no port \"%s\"? %d", type->name, port, r);
		sample_device.type = FRAG_DEVICE_CPU;
	}
	r = frag_harness_ready(h);
	fprintf(out, "  tick%s:", r == 1 ? "" : ", not ready");
	around(s, true);
	r = frag_harness_tick(h);
	around(s, false);
	fprintf(out, " %d%s%s\n", r, r < 0 ? " " : "", r < 0 ? frag_harness_error(h) : "");
	take_all(h, type);
	return r;
}

/* An operator from its beginning to its end, with a tick for each part of the feed. */
static void live_once(const struct subject *s, const char *base, const char *changed,
		      const char *feed, bool ticks)
{
	const struct frag_harness_resource pools[] = {
		{"small", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "2"}, {"block_size", "64"}, {"num_blocks", "1"})},
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "2"}, {"block_size", "8K"}, {"num_blocks", "3"})},
		{s->on_gpu || s->tries_kernel ? "gpu" : NULL, "block_memory_pool",
		 FRAG_ARGS({"storage_type", "1"}, {"block_size", "8K"}, {"num_blocks", "3"})},
		{"streams", "cuda_stream_pool", NULL},
		{NULL, NULL, NULL}};
	struct frag_arg args[ARGS_MAX] = {{NULL, NULL}};
	char *own = strdup(base), *more = strdup(changed), *parts = strdup(feed), *rest = parts;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	int n = 0;

	read_args(own, args);
	read_args(more, args);
	around(s, true);
	h = frag_harness_create_with(s->type, args, pools, &err);
	around(s, false);
	if (h == NULL)
		fprintf(out, "  refused: %d %s\n", err.code, err.text);
	for (char *p; h != NULL && ticks && (p = strsep(&rest, "/")) != NULL;)
		if (tick(h, s, p, ++n) == FRAG_DONE && s->ends)
			break;
	frag_harness_destroy(h);
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (memory.live[i] != NULL) {
			fputs("  memory was not given back\n", out);
			memset(memory.live, 0, sizeof(memory.live));
		}
	n = s->left != NULL ? s->left() : 0;
	if (n != 0)
		fprintf(out, "  %d objects were not given back\n", n);
	print_files(s->files);
	print_log();
	free(own);
	free(more);
	free(parts);
}

#define SEEN_MAX 1024
static struct {
	char *head, *text;
} seen[SEEN_MAX];
static size_t seen_count;

/* Runs a case and prints what comes of it, or in which earlier case the same came of it. */
static bool run_case(const struct subject *s, const char *changed, const char *feed, bool ticks,
		     const char *head)
{
	FILE *whole = out;
	size_t bytes, i = 0;
	bool is_refused;
	char *text;

	out = open_memstream(&text, &bytes);
	live_once(s, s->args, changed, feed, ticks && s->ticks_max >= 0);
	fclose(out);
	out = whole;
	is_refused = strstr(text, "refused:") != NULL;
	while (i < seen_count && strcmp(seen[i].text, text) != 0)
		i++;
	if (i < seen_count) {
		fprintf(out, "%s: as %s\n", head, i == 0 ? "the first" : seen[i].head);
		free(text);
		return !is_refused;
	}
	fprintf(out, "%s:\n%s", head, text);
	cr_assert_lt(seen_count, SEEN_MAX);
	seen[seen_count].text = text;
	seen[seen_count++].head = strdup(head);
	return !is_refused;
}

/* ---- the values of a parameter ---- */

struct values {
	char *texts[VALUES_MAX];
	bool is_fine[VALUES_MAX];
	size_t count;
};

static void add_value(struct values *v, const char *text)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->texts[i], text) == 0)
			return;
	cr_assert_lt(v->count, VALUES_MAX);
	v->texts[v->count++] = strdup(text);
}

static void add_number(struct values *v, double x)
{
	char text[32];

	snprintf(text, sizeof(text), x > -1e19 && x < 1e19 && x == floor(x) ? "%.0f" : "%.12g", x);
	add_value(v, text);
}

static void values_of(const struct frag_param *p, struct values *v)
{
	static const char *const lists[] = {
		"[]",   "[1]",          "[0.25, 0.75]", "[2, 1, 0]",      "[a, b]",
		"{}",   "{a: b}",       "{a: [b]}",     "[[0, 0, 1, 1]]", "[[0, 0.25, 0.5, 1]]",
		"text", "[1, 2, 3, 4]", "[99]",         "[-1]",           "[0, 0, 0]"};
	static const char *const of_gpus[] = {"storage_type", "cuda_stream_pool", "codec",
					      "decoder"};
	bool is_f64 = p->kind == FRAG_PARAM_KIND_F64;

	/* What these do is another thing where there is a GPU. */
	for (size_t i = 0; i < FRAG_COUNT_OF(of_gpus); i++)
		if (strcmp(p->name, of_gpus[i]) == 0)
			return;
	switch (p->kind) {
	case FRAG_PARAM_KIND_BOOL:
		add_value(v, "true"), add_value(v, "false"), add_value(v, "maybe");
		break;
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_F64:
	case FRAG_PARAM_KIND_SIZE:
	case FRAG_PARAM_KIND_DURATION:
		if (p->min < p->max) {
			double beside = is_f64 ? (p->max - p->min) * 1e-3 : 1;

			add_number(v, p->min), add_number(v, p->max);
			add_number(v, p->min - beside), add_number(v, p->max + beside);
			add_number(v, p->min + beside), add_number(v, p->max - beside);
		}
		for (int i = -1; i <= 7; i++)
			if (i != 5 && (p->min >= p->max || (i >= p->min && i <= p->max)))
				add_number(v, i);
		add_value(v, "0.5"), add_value(v, "x"), add_value(v, "[1]");
		break;
	case FRAG_PARAM_KIND_STRING:
		for (size_t i = 0; p->choices != NULL && p->choices[i] != NULL; i++)
			add_value(v, p->choices[i]);
		add_value(v, ""), add_value(v, "other"), add_value(v, "[a]");
		break;
	case FRAG_PARAM_KIND_RESOURCE:
		add_value(v, "$pool"), add_value(v, "$small"), add_value(v, "$none");
		break;
	case FRAG_PARAM_KIND_PATH:
		add_value(v, ""), add_value(v, "other"), add_value(v, "none/of/these");
		break;
	default:
		for (size_t i = 0; i < FRAG_COUNT_OF(lists); i++)
			add_value(v, lists[i]);
	}
}

static bool is_ticked(const struct subject *s, const char *value)
{
	return s->ticks_max == 0 || (s->ticks_max > 0 && !(strtod(value, NULL) > s->ticks_max));
}

static const char *const samples[] = {
	"empty",
	"i64:5",
	"f64:2.5",
	"string:text",
	"=u8[5x7]",
	"=u8[5x7x1]",
	"=u8[5x7x2]",
	"=u8[5x7x3]",
	"=u8[5x7x4]",
	"=u8[5x7x5]",
	"=u16[5x7x3]",
	"=f32[5x7x3]",
	"=f32[5x7]",
	"=i8[5x7x3]",
	"=f64[5x7x3]",
	"=f32x2[5x7x3]",
	"=u8[0x7x3]",
	"=u8[1x1x3]",
	"=u8[5x7x3]~",
	"=f32[1x5x7x3]",
	"=u8[35]",
	"a=u8[5x7x3] b=u8[5x7x1]",
	"boxes=f32[3x4]",
	"boxes=f32[0x4]",
	"boxes=f32[2x3]",
	"boxes=f32[8]",
	"boxes=f64[2x4]",
	"boxes=f32[2x4]~",
	"boxes=f32[2x4] =u8[5x7x3] meta:of=camera",
	"=f32[1x4x3]",
	"=i32[1x4]",
};

/* Every sample at each input, in place of what the first message there was. */
static void run_samples(const struct subject *s)
{
	for (size_t p = 0; p < s->type->port_count; p++)
		for (size_t i = 0; s->type->ports[p].dir == FRAG_IN && i < FRAG_COUNT_OF(samples);
		     i++) {
			char feed[512], head[128];

			snprintf(feed, sizeof(feed), "%s %s / %.*s", s->type->ports[p].name,
				 samples[i], (int)strcspn(s->feed, "/"), s->feed);
			snprintf(head, sizeof(head), "%s %s", s->type->ports[p].name, samples[i]);
			run_case(s, "", feed, true, head);
		}
}

static void run_values(const struct subject *s, struct values *values)
{
	for (size_t p = 0; p < s->type->param_count; p++) {
		const struct frag_param *param = &s->type->params[p];

		values_of(param, &values[p]);
		for (size_t i = 0; i < values[p].count; i++) {
			char head[256];

			snprintf(head, sizeof(head), "%s=%s", param->name, values[p].texts[i]);
			values[p].is_fine[i] =
				run_case(s, head, s->feed, is_ticked(s, values[p].texts[i]), head);
		}
	}
}

/* Some parameters and messages at once, of those that are fine alone. */
static void run_drawn(const struct subject *s, const struct values *values)
{
	uint32_t seed = 2;

	for (int n = 0; n < DRAWN; n++) {
		char changed[1024] = "", feed[1024] = "", head[2056];
		size_t at = 0;

		for (size_t p = 0; p < s->type->param_count; p++) {
			const struct values *v = &values[p];
			size_t i = v->count > 0 ? sample_random(&seed) % v->count : 0;

			if (v->count > 0 && v->is_fine[i] && is_ticked(s, v->texts[i]) &&
			    sample_random(&seed) % 3 == 0)
				at += (size_t)snprintf(changed + at, sizeof(changed) - at,
						       "%s%s=%s", at > 0 ? "; " : "",
						       s->type->params[p].name, v->texts[i]);
		}
		at = (size_t)snprintf(feed, sizeof(feed), "%s", s->feed);
		for (int t = 0; t < 2; t++) {
			at += (size_t)snprintf(feed + at, sizeof(feed) - at, " / ");
			for (size_t p = 0; p < s->type->port_count; p++)
				if (s->type->ports[p].dir == FRAG_IN)
					at += (size_t)snprintf(feed + at, sizeof(feed) - at,
							       "%s %s &", s->type->ports[p].name,
							       samples[sample_random(&seed) %
								       FRAG_COUNT_OF(samples)]);
		}
		snprintf(head, sizeof(head), "%s |%s", changed, feed + strlen(s->feed));
		run_case(s, changed, feed, true, head);
	}
}

static void run_more(const struct subject *s)
{
	char *copy = strdup(s->more != NULL ? s->more : ""), *rest = copy, *line;

	while ((line = strsep(&rest, "\n")) != NULL) {
		char *head = strdup(line), *bar = strchr(line, '|');

		if (bar != NULL)
			*bar = '\0';
		if (*head != '\0')
			run_case(s, line, bar != NULL ? bar + 1 : s->feed, true, head);
		free(head);
	}
	free(copy);
}

static void run_short(const struct subject *s)
{
	for (int n = 1; n < 40; n++) {
		char head[64];

		memory.until = n;
		memory.calls = 0;
		snprintf(head, sizeof(head), "allocation %d fails", n);
		run_case(s, "", s->feed, true, head);
		if (memory.calls < n)
			break;
	}
	memory.until = 0;
}

/* \n and \t in a text become what they stand for. */
static void unescape(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (text[0] == '\\' && (text[1] == 'n' || text[1] == 't'))
			*to++ = *++text == 'n' ? '\n' : '\t';
		else
			*to++ = *text;
	}
	*to = '\0';
}

static char *read_lines(const char *name)
{
	char path[128], *text = NULL;
	size_t size = 0;
	FILE *in;

	snprintf(path, sizeof(path), "tests/data/operators/%s.txt", name);
	in = fopen(path, "r");
	cr_assert_not_null(in, "%s", path);
	cr_assert_gt(getdelim(&text, &size, '\0', in), 0);
	fclose(in);
	return text;
}

static void read_subject(struct subject *s)
{
	size_t count = 0;
	char *rest;

	s->lines = read_lines(s->name);
	rest = s->lines;
	while (strncmp(rest, "file ", 5) == 0) {
		char *line = strsep(&rest, "\n"), *name = line + 5, *text = strchr(name, ' ');

		cr_assert(text != NULL && count < FILES_MAX, "%s", line);
		*text++ = '\0';
		unescape(text);
		s->files[count++] = (struct file){name, text};
	}
	s->args = strsep(&rest, "\n");
	s->feed = strsep(&rest, "\n");
	s->more = rest;
	cr_assert_not_null(s->feed, "tests/data/operators/%s.txt has no lines", s->name);
}

static void record(struct subject *s)
{
	struct values *values = calloc(s->type->param_count + 1, sizeof(*values));
	int old_stderr = dup(2), old_folder = open(".", O_PATH | O_DIRECTORY);
	char name[128], path[] = "/tmp/frag-recorded-XXXXXX", *text;
	size_t bytes;

	read_subject(s);
	cr_assert_not_null(mkdtemp(path));
	folder = open(path, O_DIRECTORY);
	cr_assert_eq(fchdir(folder), 0);
	make_files(s->files);
	if (s->prepare != NULL)
		s->prepare();

	stderr_file = memfd_create("log", 0);
	cr_assert(stderr_file >= 0 && dup2(stderr_file, 2) == 2);
	out = open_memstream(&text, &bytes);
	run_case(s, "", s->feed, true, s->args);
	run_more(s);
	if (!s->tries_kernel)
		run_values(s, values);
	if (s->ticks_max >= 0)
		run_samples(s);
	if (!s->tries_kernel) {
		run_drawn(s, values);
		run_short(s);
	}
	if (s->run_own != NULL)
		s->run_own(s);
	fclose(out);
	dup2(old_stderr, 2);
	close(old_stderr);
	close(stderr_file);
	remove_files(s->files);
	cr_assert_eq(fchdir(old_folder), 0);
	close(old_folder);
	close(folder);
	cr_assert_eq(rmdir(path), 0);
	snprintf(name, sizeof(name), "operators/%s%s", s->name, s->tries_kernel ? "_gpu" : "");
	expected_compare(name, text);
	free(text);
	for (; seen_count > 0; seen_count--) {
		free(seen[seen_count - 1].head);
		free(seen[seen_count - 1].text);
	}
	for (size_t p = 0; p < s->type->param_count; p++)
		for (size_t i = 0; i < values[p].count; i++)
			free(values[p].texts[i]);
	free(values);
	free(s->lines);
}

#define RECORDED(name_, type_, ticks_max_)                                                         \
	Test(recorded, name_)                                                                      \
	{                                                                                          \
		record(&(struct subject){                                                          \
			.type = (type_), .name = #name_, .ticks_max = (ticks_max_)});              \
	}

#endif
