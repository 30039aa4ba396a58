// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/policy.h>
#include <fragctl/describe.h>
#include <graph/pools.h>

/*
 * `fragctl graph`: the picture of an application, as text for Mermaid or for graphviz, or as SVG,
 * which graphviz's program dot makes of the latter. Operators have the id fIoJ, the J-th of the
 * I-th fragment: names need no quoting then.
 */

extern char **environ;

/* The name of an operator in HTML, as labels of both formats are. */
static const char *html_of(const struct frag_op *op)
{
	return strcmp(op->name, FRAGI_START_OP) == 0 ? "&lt;|start|&gt;" : op->name;
}

/* "output -> source_video", and what is unusual about the flow. */
static const char *label_of(const struct ctl_composed *composed, const struct ctl_flow *flow,
			    const char *arrow, char *out, size_t size)
{
	const struct frag_op *from = composed->fragments[flow->from_fragment]->ops[flow->from_op];
	const struct frag_op *to = composed->fragments[flow->to_fragment]->ops[flow->to_op];
	bool usual = strcmp(flow->policy, fragi_policy(FRAG_POLICY_DEFAULT)->name) == 0;

	if (flow->is_execution)
		snprintf(out, size, "execution%s%s", usual ? "" : ", ", usual ? "" : flow->policy);
	else
		snprintf(out, size, "%s %s %s%s%s", from->ports[flow->from_port].name, arrow,
			 to->ports[flow->to_port].name, usual ? "" : ", ",
			 usual ? "" : flow->policy);
	if (flow->is_dynamic)
		snprintf(out + strlen(out), size - strlen(out), ", dynamic");
	return out;
}

static int print_mermaid(const struct fragi_spec *spec, const struct ctl_composed *composed)
{
	FILE *out = stdout;
	struct ctl_flow flow;
	char label[200];

	(void)spec;
	fputs("flowchart LR\n", out);
	for (size_t f = 0; f < composed->fragment_count; f++) {
		const struct frag_fragment *fragment = composed->fragments[f];

		fprintf(out, "    subgraph f%zu [%s]\n", f, fragment->name);
		for (uint32_t i = 0; i < fragment->op_count; i++)
			fprintf(out, "        f%zuo%u[\"<b>%s</b><br>%s\"]\n", f, i,
				html_of(fragment->ops[i]), fragment->ops[i]->type->name);
		fputs("    end\n", out);
	}
	for (size_t i = 0; i < ctl_flow_count(composed); i++) {
		ctl_flow_at(composed, i, &flow);
		label_of(composed, &flow, "→", label, sizeof(label));
		fprintf(out, "    f%uo%u %s|\"%s\"| f%uo%u\n", flow.from_fragment, flow.from_op,
			flow.is_execution || flow.is_dynamic ? "-.->"
			: strcmp(flow.edge, "inproc") == 0   ? "-->"
							     : "==>",
			label, flow.to_fragment, flow.to_op);
	}
	return CTL_OK;
}

static void write_dot(const struct fragi_spec *spec, const struct ctl_composed *composed, FILE *out)
{
	struct ctl_flow flow;
	char label[200];

	fprintf(out,
		"digraph \"%s\" {\n"
		"    rankdir=LR; fontname=\"sans-serif\"; fontsize=12\n"
		"    node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=12]\n"
		"    edge [fontname=\"sans-serif\", fontsize=10]\n",
		spec->application);
	for (size_t f = 0; f < composed->fragment_count; f++) {
		const struct frag_fragment *fragment = composed->fragments[f];

		fprintf(out,
			"    subgraph cluster_%zu {\n"
			"        label=\"%s\"; style=\"rounded,filled\"; fillcolor=\"#eef3f8\"; color=\"#8899aa\"\n",
			f, fragment->name);
		for (uint32_t i = 0; i < fragment->op_count; i++)
			fprintf(out, "        f%zuo%u [label=<<b>%s</b><br/>%s>]\n", f, i,
				html_of(fragment->ops[i]), fragment->ops[i]->type->name);
		fputs("    }\n", out);
	}
	for (size_t i = 0; i < ctl_flow_count(composed); i++) {
		ctl_flow_at(composed, i, &flow);
		label_of(composed, &flow, "→", label, sizeof(label));
		fprintf(out, "    f%uo%u -> f%uo%u [label=\"%s\"%s%s]\n", flow.from_fragment,
			flow.from_op, flow.to_fragment, flow.to_op, label,
			strcmp(flow.edge, "inproc") == 0 ? "" : ", penwidth=2",
			flow.is_execution || flow.is_dynamic ? ", style=dashed" : "");
	}
	fputs("}\n", out);
}

static int print_dot(const struct fragi_spec *spec, const struct ctl_composed *composed)
{
	write_dot(spec, composed, stdout);
	return CTL_OK;
}

/* Runs dot, which reads from fd and writes SVG to stdout. Returns an exit code. */
static int run_dot(int fd)
{
	char name[] = "dot", svg[] = "-Tsvg";
	char *argv[] = {name, svg, NULL};
	posix_spawn_file_actions_t actions;
	int status = 0, r;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	r = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (r == ENOENT)
		return ctl_fail(
			CTL_MISSING,
			"graphviz's program dot, which draws the SVG, is not installed; install the package graphviz, or take --format mermaid or dot");
	while (r == 0 && waitpid(pid, &status, 0) < 0)
		r = errno == EINTR ? 0 : errno;
	if (r == 0 && status == 0)
		return CTL_OK;
	return ctl_fail(CTL_FAILED, "graphviz's program dot did not draw the SVG (%s)",
			r != 0 ? strerror(r) : "what it says stands above");
}

static int print_svg(const struct fragi_spec *spec, const struct ctl_composed *composed)
{
	FILE *text = tmpfile();
	int exit_code;

	if (text == NULL)
		return ctl_fail(CTL_FAILED, "cannot make a temporary file: %s", strerror(errno));
	write_dot(spec, composed, text);
	if (fflush(text) == 0 && fseek(text, 0, SEEK_SET) == 0)
		exit_code = run_dot(fileno(text));
	else
		exit_code =
			ctl_fail(CTL_FAILED, "cannot write a temporary file: %s", strerror(errno));
	fclose(text);
	return exit_code;
}

static int draw_with(struct ctl_graph *graph, int (*print)(const struct fragi_spec *spec,
							   const struct ctl_composed *composed))
{
	struct ctl_composed composed;
	int exit_code = ctl_composed_make(graph, &composed);

	ctl_diag_print(&graph->diag);
	if (exit_code == CTL_OK)
		exit_code = print(graph->spec, &composed);
	ctl_composed_fini(&composed);
	return exit_code;
}

static int draw_mermaid(struct ctl_graph *graph)
{
	return draw_with(graph, print_mermaid);
}

static int draw_dot(struct ctl_graph *graph)
{
	return draw_with(graph, print_dot);
}

static int draw_svg(struct ctl_graph *graph)
{
	return draw_with(graph, print_svg);
}

struct format {
	const char *name;
	int (*draw)(struct ctl_graph *graph);
};

/* text NULL: the first one. Returns NULL, complained. */
static const struct format *format_of(const char *text)
{
	static const struct format formats[] = {
		{"mermaid", draw_mermaid},
		{"dot", draw_dot},
		{"svg", draw_svg},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(formats); i++)
		if (text == NULL || strcmp(text, formats[i].name) == 0)
			return &formats[i];
	ctl_fail(CTL_USAGE, "--format \"%.80s\" is none of mermaid, dot and svg", text);
	return NULL;
}

int ctl_draw(int argc, char **argv)
{
	struct ctl_graph graph = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *format_text = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(graph),
		{.name = "format",
		 .value = "mermaid|dot|svg",
		 .help = "text for Mermaid or graphviz, or a picture; default mermaid",
		 .text = &format_text},
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl graph",
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = "Draws an application: its fragments, operators and flows, on stdout.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	const struct format *format;
	bool help = false;
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	format = format_of(format_text);
	exit_code = format != NULL ? CTL_OK : CTL_USAGE;
	if (exit_code == CTL_OK)
		exit_code =
			ctl_graph_take(&graph, flags.program, &operands, argv + rest, argc - rest);
	if (exit_code == CTL_OK)
		exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_OK && !help)
		exit_code = ctl_in_child(&graph, format->draw);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}
