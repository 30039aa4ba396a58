// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <frag/run.h>
#include <stdio.h>

/* Starts an application, works on while it runs, and stops it. */
int main(void)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;
	int r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	config.path = "app.yaml";
	if (frag_run_load(&config, &run, &err) < 0)
		return 2;              /* the errors of the graph are on stderr */
	r = frag_run_start(run, &err); /* returns at once */
	for (int i = 0; r == 0 && i < 3; i++) {
		r = frag_run_wait(run, 100 * 1000 * 1000, &err); /* for 0.1 s, meanwhile */
		if (r == -ETIMEDOUT)
			r = printf("main: it still runs\n") < 0 ? -EIO : 0;
	}
	frag_run_stop(run); /* tx ends; what it has sent is still delivered */
	if (r == 0)
		r = frag_run_wait(run, FRAG_RUN_FOREVER, &err);
	if (r < 0)
		fprintf(stderr, "ping_simple_run_async: %s\n", err.text);
	else
		printf("main: it has ended\n");
	frag_run_destroy(run);
	return r < 0;
}
