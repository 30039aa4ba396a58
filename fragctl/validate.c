/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/alloc.h>
#include <fragctl/graph.h>
#include <graph/op.h>
#include <run/console.h>
#include <run/crash.h>

#define VALIDATE_MAX_S 60u

/*
 * The graph is composed in a child: what it loads is somebody's code, and a library that crashes or
 * hangs is a finding, not the end of the tool. The child is made before this process has any thread
 * or library, runs at most VALIDATE_MAX_S, and prints everything itself.
 */
struct composed {
	struct frag_fragment **fragments;
	struct fragi_fragment_info *infos;
	bool *flawed; /* its flows are not known, nor all of its operators */
	size_t count;
	size_t op_count;
	struct fragi_flow_info *flows;
	size_t flow_count;
};

static int compose_all(const struct fragi_spec *spec, struct fragi_registry *registry,
		       struct fragi_diag *diag, struct composed *composed)
{
	int r, result = 0;

	composed->fragments =
		fragi_calloc(spec->fragment_count + 1, sizeof(struct frag_fragment *));
	composed->infos = fragi_calloc(spec->fragment_count + 1, sizeof(*composed->infos));
	composed->flawed = fragi_calloc(spec->fragment_count + 1, sizeof(*composed->flawed));
	if (composed->fragments == NULL || composed->infos == NULL || composed->flawed == NULL)
		return fragi_diag_add(diag, -ENOMEM, NULL, 0, 0, "memory is short");
	for (size_t i = 0; i < spec->fragment_count; i++) {
		r = fragi_fragment_compose_flawed(spec, &spec->fragments[i], registry, diag,
						  &composed->fragments[i]);
		composed->flawed[i] = r < 0;
		if (r < 0)
			result = result == -ENOENT ? result : r;
		if (composed->fragments[i] != NULL)
			composed->infos[i] = composed->fragments[i]->info;
		composed->infos[i].name = spec->fragments[i].name;
		composed->op_count += composed->infos[i].op_count;
		composed->count++;
	}
	return result;
}

/* The flows inside the fragments, as flows of the application. */
static int collect_flows(struct composed *composed)
{
	size_t count = 0;

	for (size_t i = 0; i < composed->count; i++)
		count += composed->flawed[i] ? 0 : composed->fragments[i]->flow_count;
	composed->flows = fragi_calloc(count + 1, sizeof(*composed->flows));
	if (composed->flows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < composed->count; i++)
		for (size_t j = 0; !composed->flawed[i] && j < composed->fragments[i]->flow_count;
		     j++) {
			struct fragi_flow_info *flow = &composed->flows[composed->flow_count++];

			*flow = composed->fragments[i]->flows[j];
			flow->from_fragment = flow->to_fragment = (uint32_t)i;
		}
	return 0;
}

/* Whether nothing is known of an end because its operator could not be made. */
static bool is_unknown(const struct composed *composed, const struct fragi_spec_end *end)
{
	for (size_t i = 0; i < composed->count; i++) {
		if (!composed->flawed[i] || strcmp(composed->infos[i].name, end->fragment) != 0)
			continue;
		for (size_t k = 0; k < composed->infos[i].op_count; k++)
			if (strcmp(composed->infos[i].ops[k].name, end->op) == 0)
				return false;
		return true;
	}
	return false;
}

/* The flows between fragments, without the ends of which nothing is known. */
static int resolve_between(const struct fragi_spec *spec, struct fragi_diag *diag,
			   struct composed *composed)
{
	struct fragi_spec_flow *flows = fragi_calloc(spec->flow_count + 1, sizeof(*flows));
	size_t count = 0, ends;
	int r;

	if (flows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < spec->flow_count; i++) {
		flows[count] = spec->flows[i];
		ends = 0;
		for (size_t k = 0; k < spec->flows[i].to_count; k++)
			if (!is_unknown(composed, &spec->flows[i].to[k]))
				spec->flows[i].to[ends++] = spec->flows[i].to[k];
		flows[count].to_count = ends;
		if (ends > 0 && !is_unknown(composed, &spec->flows[i].from))
			count++;
	}
	r = fragi_flows_resolve(flows, count, -1, composed->infos, composed->count, diag,
				&composed->flows, &composed->flow_count);
	fragi_free(flows);
	return r;
}

/* Prints the errors that were not printed before: of one place, the first one is the cause. */
static void print_news(const struct fragi_diag *known, const struct fragi_diag *diag)
{
	char line[1400];
	size_t i, k;

	for (i = 0; i < diag->count; i++) {
		const struct frag_err *err = &diag->items[i];

		for (k = 0; k < known->count; k++)
			if (err->line == known->items[k].line &&
			    err->column == known->items[k].column &&
			    strcmp(err->file, known->items[k].file) == 0)
				break;
		if (k == known->count)
			fprintf(stderr, "%s\n", fragi_err_line(err, line, sizeof(line)));
	}
	if (diag->beyond > 0)
		fprintf(stderr, "and %zu more errors\n", diag->beyond);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static int check(const struct ctl_graph *graph)
{
	const struct fragi_spec *spec = graph->spec;
	struct composed composed = {0};
	struct fragi_diag diag = {0};
	struct fragi_registry *registry;
	int r = ctl_graph_registry(graph, &registry), between;

	if (r != CTL_OK)
		return r;
	r = compose_all(spec, registry, &diag, &composed);
	between = r == -ENOMEM ? r : collect_flows(&composed);
	if (between == 0)
		between = resolve_between(spec, &diag, &composed);
	/* What nothing reaches is known once everything else is right. */
	if (r == 0 && between == 0 && graph->diag.count == 0)
		between = fragi_flows_check(composed.infos, composed.count, composed.flows,
					    composed.flow_count, &diag);
	r = r < 0 ? r : between;
	fragi_diag_sort(&diag, 0);
	print_news(&graph->diag, &diag);
	fragi_diag_fini(&diag);
	if (r == 0 && graph->diag.count == 0)
		printf("%s: ok: %zu fragment%s, %zu operator%s, %zu flow%s\n", graph->path,
		       composed.count, plural(composed.count), composed.op_count,
		       plural(composed.op_count), composed.flow_count, plural(composed.flow_count));
	for (size_t i = 0; composed.fragments != NULL && i < spec->fragment_count; i++)
		fragi_fragment_destroy(composed.fragments[i]);
	fragi_free(composed.fragments);
	fragi_free(composed.infos);
	fragi_free(composed.flawed);
	fragi_free(composed.flows);
	fragi_registry_destroy(registry);
	return ctl_exit_of(r);
}

static void child(const struct ctl_graph *graph, pid_t parent, int outcome_fd)
{
	int exit_code;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(CTL_FAILED);
	alarm(VALIDATE_MAX_S);
	fragi_crash_init("fragctl");
	fragi_console_begin();
	exit_code = check(graph);
	fragi_console_end();
	fflush(stdout);
	(void)!write(outcome_fd, &exit_code, sizeof(exit_code));
	_exit(exit_code);
}

/* What the child came to. */
static int judge(const struct ctl_graph *graph, int status, bool has_outcome, int outcome)
{
	if (has_outcome)
		return outcome;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return ctl_fail(
			CTL_FAILED,
			"%s: composing it takes longer than %u s; look at setup of its operators",
			graph->path, VALIDATE_MAX_S);
	if (WIFSIGNALED(status))
		return ctl_fail(
			CTL_FAILED,
			"%s: one of its libraries crashed while the graph was composed (SIG%s)",
			graph->path, sigabbrev_np(WTERMSIG(status)));
	return ctl_fail(
		CTL_FAILED,
		"%s: one of its libraries ended the process while the graph was composed (status %d)",
		graph->path, WEXITSTATUS(status));
}

static int check_in_child(const struct ctl_graph *graph)
{
	pid_t parent = getpid(), pid;
	int fds[2], status, outcome = 0;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ctl_fail(CTL_FAILED, "cannot make a pipe: %s", strerror(errno));
	fflush(NULL);
	pid = fork();
	if (pid < 0)
		return ctl_fail(CTL_FAILED, "cannot start a process: %s", strerror(errno));
	if (pid == 0)
		child(graph, parent, fds[1]);
	close(fds[1]);
	do
		n = read(fds[0], &outcome, sizeof(outcome));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return ctl_fail(CTL_FAILED, "cannot wait for a process: %s",
					strerror(errno));
	return judge(graph, status, n == (ssize_t)sizeof(outcome), outcome);
}

void ctl_graph_look_on(const struct ctl_graph *graph)
{
	if (graph->spec != NULL)
		check_in_child(graph);
}

int ctl_validate(int argc, char **argv)
{
	struct ctl_graph graph = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const struct fragi_flag table[] = {CTL_GRAPH_FLAGS(graph), CTL_COMMON_FLAGS(common)};
	const struct fragi_flags flags = {
		.program = "fragctl validate",
		.usage = "APP.yaml [flags] [-- ARGS]",
		.headline = "Checks an application as a run would, without running it.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	bool help = false;
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	exit_code = ctl_graph_take(&graph, flags.program, &operands, argv + rest, argc - rest);
	if (exit_code == CTL_OK)
		exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_USAGE)
		ctl_graph_look_on(&graph);
	if (exit_code == CTL_OK && !help)
		exit_code = check_in_child(&graph);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}
