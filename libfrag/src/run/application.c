// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/log.h>
#include <run/application.h>
#include <type/module.h>

struct frag_run {
	/* constant */
	struct fragi_arena arena; /* of the texts that config named */
	struct fragi_source source;
	struct fragi_spec *spec;
	struct fragi_runner_app app;
	/* under lock; runner does not change once it is set */
	pthread_mutex_t lock;
	const struct fragi_runner_ops *ops;
	struct fragi_runner *runner; /* NULL: not started */
	struct frag_run *left_before;
};

/* Because an operator hangs; it stays within reach. There is one at most. */
static struct frag_run *left;

static void report(const struct frag_run_config *config, const char *text)
{
	if (config->error != NULL) {
		config->error(config->arg, text);
		return;
	}
	fragi_log_print("%s\n", text);
}

static void report_all(const struct frag_run_config *config, const struct fragi_diag *diag)
{
	char line[sizeof(struct frag_err)];

	for (size_t i = 0; i < diag->count; i++)
		report(config, fragi_err_line(&diag->items[i], line, sizeof(line)));
	if (diag->beyond == 0)
		return;
	snprintf(line, sizeof(line), "and %zu more errors", diag->beyond);
	report(config, line);
}

/* Copies a NULL-ended list of texts, NULL: none. Returns NULL when memory is short. */
static const char *const *copy_texts(struct fragi_arena *arena, const char *const *texts,
				     size_t *out_count)
{
	const char **copies;
	size_t count = 0;

	while (texts != NULL && texts[count] != NULL)
		count++;
	copies = fragi_arena_alloc(arena, (count + 1) * sizeof(*copies));
	for (size_t i = 0; copies != NULL && i < count; i++) {
		copies[i] = fragi_arena_strdup(arena, texts[i]);
		if (copies[i] == NULL)
			return NULL;
	}
	*out_count = count;
	return copies;
}

static int read_source(struct frag_run *run, const struct frag_run_config *config,
		       struct frag_err *err)
{
	size_t config_count = 0, set_count = 0, arg_count = 0;
	const char *const *configs = copy_texts(&run->arena, config->configs, &config_count);
	const char *const *sets = copy_texts(&run->arena, config->sets, &set_count);
	const char *const *args = copy_texts(&run->arena, config->arguments, &arg_count);

	if (configs == NULL || sets == NULL || args == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	if ((config->path == NULL) == (config->text == NULL))
		return frag_err_set(
			err, -EINVAL,
			"cannot load an application: give the path of its graph, or its text");
	if (config->text != NULL)
		return fragi_source_read_text(&run->source, config->text, "graph", configs,
					      config_count, sets, set_count, args, arg_count, err);
	return fragi_source_read(&run->source, config->path, configs, config_count, sets, set_count,
				 args, arg_count, err);
}

static int parse(struct frag_run *run, const struct frag_run_config *config, struct frag_err *err)
{
	struct fragi_diag diag = {0};
	int r = fragi_spec_parse(&run->source.source, &diag, &run->spec);

	if (r < 0) {
		report_all(config, &diag);
		if (err != NULL && diag.count > 0 && err->text[0] == '\0')
			*err = diag.items[0];
		frag_err_set(err, r, "%s", frag_strerror(r));
	} else {
		fragi_spec_log_remarks(run->spec);
	}
	fragi_diag_fini(&diag);
	return r;
}

static int load(struct frag_run *run, const struct frag_run_config *config, struct frag_err *err)
{
	struct frag_err own = FRAG_ERR_INIT;
	int r = read_source(run, config, &own);

	if (r < 0) {
		frag_err_set(&own, r, "%s", frag_strerror(r));
		report(config, own.text);
		if (err != NULL && err->text[0] == '\0')
			*err = own;
		return r;
	}
	r = parse(run, config, err);
	if (r == 0 && config->library_path != NULL) {
		run->app.library_path = fragi_arena_strdup(&run->arena, config->library_path);
		if (run->app.library_path == NULL)
			r = frag_err_set(err, -ENOMEM, "out of memory");
	}
	run->app.source = &run->source;
	run->app.spec = run->spec;
	run->app.error = config->error;
	run->app.arg = config->arg;
	return r;
}

static void free_run(struct frag_run *run)
{
	fragi_spec_destroy(run->spec);
	fragi_source_fini(&run->source);
	fragi_arena_fini(&run->arena);
	pthread_mutex_destroy(&run->lock);
	fragi_free(run);
}

int frag_run_load(const struct frag_run_config *config, struct frag_run **out_run,
		  struct frag_err *err)
{
	struct frag_run_config known = FRAG_RUN_CONFIG_INIT;
	struct frag_run *run = fragi_calloc(1, sizeof(*run));
	int r;

	if (run == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	memcpy(&known, config,
	       config->struct_size < sizeof(known) ? config->struct_size : sizeof(known));
	pthread_mutex_init(&run->lock, NULL);
	r = load(run, &known, err);
	if (r < 0) {
		free_run(run);
		return r;
	}
	*out_run = run;
	return 0;
}

static int open_module(const struct fragi_runner_ops **out_ops, struct frag_err *err)
{
	static const struct fragi_module module = {
		.name = "run",
		.kind = "module",
		.advice = "run the application by fragctl",
		.symbol = FRAGI_RUNNER_SYMBOL,
		.table_size = sizeof(struct fragi_runner_ops),
	};
	const void *table;
	int r = fragi_module_open(&module, &table, err);

	if (r == 0)
		*out_ops = table;
	return r;
}

int frag_host_run(int *out_status, struct frag_err *err)
{
	const struct fragi_runner_ops *ops = NULL;
	int r = open_module(&ops, err);

	if (r < 0)
		return r;
	r = ops->host(out_status);
	return r < 0 ? frag_err_set(err, r,
				    "this is no host: workerd starts one, with a socket at "
				    "descriptor 3; use workerd, or fragctl run")
		     : 0;
}

int frag_run_start(struct frag_run *run, struct frag_err *err)
{
	int r = 0;

	pthread_mutex_lock(&run->lock);
	if (run->runner != NULL)
		r = frag_err_set(err, -EALREADY,
				 "%s was started before; load it again to run it again",
				 run->spec->application);
	if (r == 0)
		r = open_module(&run->ops, err);
	if (r == 0)
		r = run->ops->start(&run->app, &run->runner, err);
	pthread_mutex_unlock(&run->lock);
	return r;
}

/* Returns the runner; NULL: the run was not started. */
static struct fragi_runner *runner_of(struct frag_run *run)
{
	struct fragi_runner *runner;

	pthread_mutex_lock(&run->lock);
	runner = run->runner;
	pthread_mutex_unlock(&run->lock);
	return runner;
}

int frag_run_wait(struct frag_run *run, int64_t timeout_ns, struct frag_err *err)
{
	struct fragi_runner *runner = runner_of(run);

	if (runner == NULL)
		return frag_err_set(err, -EINVAL,
				    "%s was not started: there is nothing to wait for",
				    run->spec->application);
	return run->ops->wait(runner, timeout_ns, err);
}

void frag_run_stop(struct frag_run *run)
{
	struct fragi_runner *runner = runner_of(run);

	if (runner != NULL)
		run->ops->stop(runner);
}

int frag_run_set(struct frag_run *run, const char *text, struct frag_err *err)
{
	struct fragi_runner *runner = runner_of(run);

	if (runner == NULL)
		return frag_err_set(err, -EAGAIN, "%s was not started", run->spec->application);
	return run->ops->set(runner, text, err);
}

const char *frag_run_summary(struct frag_run *run)
{
	struct fragi_runner *runner = runner_of(run);

	return runner != NULL ? run->ops->summary(runner) : NULL;
}

void frag_run_destroy(struct frag_run *run)
{
	if (run == NULL)
		return;
	if (run->runner != NULL) {
		run->ops->stop(run->runner);
		run->ops->stop(run->runner);
		if (!run->ops->destroy(run->runner)) {
			run->left_before = left;
			left = run;
			return;
		}
	}
	free_run(run);
}
