// SPDX-License-Identifier: Apache-2.0
/*
 * What it takes to read a graph.
 *   graph file APP.yaml     ms to parse the text, and to check it and build all of it
 *   graph compose COUNT     ms to compose a line of COUNT operators in C and build it
 *   graph start COUNT       the same, and to start them
 * Prints: parse build of the clock, parse build of processor time. With `start` build includes it.
 */
#include "../unit/rig.h"

#include <libgen.h>

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static size_t file_read(const char *path, char **out_text)
{
	FILE *f = fopen(path, "r");
	char *text = malloc(8 << 20);
	size_t length;

	if (f == NULL || text == NULL)
		RIG_FAIL("cannot read %s\n", path);
	length = fread(text, 1, 8 << 20, f);
	fclose(f);
	*out_text = text;
	return length;
}

/* Until start of every operator has returned. */
static void await_start(struct rig *rig)
{
	struct pollfd p = {.fd = fragi_run_fd(rig->run), .events = POLLIN};
	struct fragi_run_event event;

	for (;;) {
		while (fragi_run_next(rig->run, &event) > 0) {
			rig->done += event.kind == FRAGI_RUN_DONE;
			if (event.kind == FRAGI_RUN_STARTED)
				return;
		}
		poll(&p, 1, -1);
	}
}

int main(int argc, char **argv)
{
	const char *const library_path[] = {dirname(argv[0]), NULL};
	const struct fragi_registry_config registry = {.library_path = library_path};
	struct fragi_run_config config = {
		.epoch = 1, .beat_ns = 50000000, .dead_ns = 1000000000, .ledger_fd = -1};
	struct fragi_spec_source source = {.graph = {.file = "graph.yaml"}};
	double wall[3], cpu[3];
	struct rig rig = {0};
	char *text;

	if (argc == 3 && strcmp(argv[1], "file") == 0) {
		source.graph.length = file_read(argv[2], &text);
	} else if (argc == 3 &&
		   (strcmp(argv[1], "compose") == 0 || strcmp(argv[1], "start") == 0)) {
		text = malloc(512);
		if (text == NULL)
			return 1;
		source.graph.length = (size_t)snprintf(
			text, 512,
			"frag: 1\napplication: chain\narguments: {operators: {default: \"%s\"}}\n"
			"extensions: [libbench.so]\ncompose: bench_chain\n",
			argv[2]);
	} else {
		fprintf(stderr, "usage: graph file APP.yaml | compose COUNT | start COUNT\n");
		return 2;
	}
	source.graph.text = text;
	wall[0] = now_ms(CLOCK_MONOTONIC);
	cpu[0] = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	if (fragi_spec_parse(&source, &rig.diag, &rig.spec) < 0)
		goto refused;
	wall[1] = now_ms(CLOCK_MONOTONIC);
	cpu[1] = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	if (fragi_registry_create(&registry, &rig.registry) < 0)
		goto refused;
	config.spec = rig.spec;
	config.registry = rig.registry;
	if (fragi_run_create(&config, &rig.run) < 0 || fragi_run_prepare(rig.run, &rig.diag) < 0)
		goto refused;
	if (strcmp(argv[1], "start") == 0) {
		rig_start(&rig);
		await_start(&rig);
	}
	wall[2] = now_ms(CLOCK_MONOTONIC);
	cpu[2] = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	printf("%.3f %.3f %.3f %.3f\n", wall[1] - wall[0], wall[2] - wall[1], cpu[1] - cpu[0],
	       cpu[2] - cpu[1]);
	if (strcmp(argv[1], "start") == 0) {
		fragi_run_halt(rig.run);
		rig_wait(&rig, rig_is_done, RIG_LIMIT_NS);
	}
	rig_end(&rig);
	return 0;
refused:
	rig_errors(&rig);
	RIG_FAIL("the graph was refused\n");
}
