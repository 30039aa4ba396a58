// SPDX-License-Identifier: Apache-2.0
#include <frag/run.h>
#include <stdio.h>

/* Runs the application of a graph in this process, and prints its summary: APP.yaml [ARGS]. */
int main(int argc, char **argv)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;
	int r;

	if (argc < 2) {
		fprintf(stderr, "usage: run_app APP.yaml [ARGS]\n");
		return 2;
	}
	config.path = argv[1];
	config.arguments = (const char *const *)(argv + 2); /* argv ends with NULL */
	r = frag_run_load(&config, &run, &err);             /* what is wrong is printed on stderr */
	if (r < 0)
		return 2;
	r = frag_run_start(run, &err);
	if (r == 0)
		r = frag_run_wait(run, FRAG_RUN_FOREVER, &err);
	if (r < 0)
		fprintf(stderr, "run_app: %s\n", err.text);
	else
		puts(frag_run_summary(run));
	frag_run_destroy(run);
	return r < 0;
}
