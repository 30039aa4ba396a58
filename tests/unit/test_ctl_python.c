// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expected.h"
#include "scratch.h"

#include <frag/plugin.h>
#include <fragctl/python.h>

/*
 * What becomes of the list that an interpreter of Python writes of a module's types, compared with
 * a recorded text. The interpreter is a script of the shell; frag_loader_register is that of this
 * file, by the linker (--wrap).
 */
static const struct frag_loader *loader;

int __wrap_frag_loader_register(const struct frag_loader *registered, struct frag_err *err);
int __wrap_frag_loader_register(const struct frag_loader *registered, struct frag_err *err)
{
	(void)err;
	loader = registered;
	return 0;
}

#define TYPE(kind, name) kind "\t" name "\tIts headline\tMore of it\n"
#define BARE(kind, name) kind "\t" name "\t\t\n"
#define PORT(name) "port\t" name "\t1\ti64\t2\t5\t3\t7\n"
#define BARE_PORT(name) "port\t" name "\t0\t\t0\t0\t0\t0\n"
#define PARAM(name) "param\t" name "\t2\t-9\t2.5\t=text\tWhat it does\t4\t-1.5\t99\tfast|slow\n"
#define BARE_PARAM(name) "param\t" name "\t4\t0\t0\t\t\t0\t0\t0\t\n"

static const struct {
	const char *list;
	int code; /* that the interpreter exits with */
} rows[] = {
	{BARE("operator", "plain"), 0},
	{TYPE("operator", "a") PORT("in") BARE_PORT("out") PARAM("p") BARE("operator", "b")
		 TYPE("condition", "c") BARE_PARAM("q") PARAM("r") TYPE("resource", "d") PARAM("s")
			 BARE("operator", "e") BARE_PORT("last") BARE_PARAM("t") PARAM("u")
				 BARE("condition", "f") BARE("resource", "g"),
	 0},
	{TYPE("operator", "a") PORT("in"), 3},
	{PORT("in"), 0},
	{PARAM("p"), 0},
	{TYPE("thing", "a"), 0},
	{"operator\ta\tb\n", 0},
	{"operator\ta\tb\tc\td\n", 0},
	{BARE("operator", "a") "port\tin\t1\ti64\t2\t5\t3\n", 0},
	{BARE("operator", "a") "port\tin\t1\ti64\t2\t5\t3\t7\t8\n", 0},
	{BARE("operator", "a") "param\tp\t2\t-9\t2.5\t=text\tWhat\t4\t-1.5\t99\n", 0},
	{BARE("operator", "a") "param\tp\t2\t-9\t2.5\t=text\tWhat\t4\t-1.5\t99\ta|b\tc\n", 0},
	{BARE("operator", "a") "param\tp\t5\t-9\t2.5\t=\tWhat\t4\t-1.5\t99\ta||b|\n", 0},
	{"nonsense\n" BARE("operator", "a"), 0},
	{BARE("operator", "a") "\n", 0},
	{"operator\tends\tnot\there\n", 0},
};

static void show_params(const struct frag_param *params, uint32_t count, FILE *out)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct frag_param *p = &params[i];

		fprintf(out,
			"    parameter %s: kind %d, offset %u, default %d %g %s, %s, flags %u, %g to %g",
			p->name, (int)p->kind, p->offset, (int)p->def_int, p->def_float,
			p->def_text != NULL ? p->def_text : "-", p->headline ? p->headline : "-",
			p->flags, p->min, p->max);
		for (size_t k = 0; p->choices != NULL && p->choices[k] != NULL; k++)
			fprintf(out, "%s\"%s\"", k == 0 ? ", of " : ", ", p->choices[k]);
		fputc('\n', out);
	}
}

static void show_head(const char *kind, const char *name, const char *headline,
		      const char *description, size_t struct_size, size_t state_size,
		      size_t param_size, FILE *out)
{
	fprintf(out, "  %s %s: %s, %s, state %zu%s%s\n", kind, name, headline ? headline : "-",
		description ? description : "-", state_size, struct_size > 0 ? "" : ", no size",
		param_size == sizeof(struct frag_param) ? "" : ", other parameters");
}

static void show_plugin(const struct frag_plugin *plugin, FILE *out)
{
	fprintf(out, "  plugin %s, ABI %s\n", plugin->name,
		plugin->abi_major == FRAG_ABI_MAJOR && plugin->abi_minor == FRAG_ABI_MINOR &&
				plugin->struct_size == sizeof(*plugin)
			? "of this version"
			: "of another one");
	for (uint32_t i = 0; i < plugin->op_count; i++) {
		const struct frag_op_type *op = plugin->ops[i];

		show_head("operator", op->name, op->headline, op->description, op->struct_size,
			  op->state_size, op->param_size, out);
		cr_expect(op->compute != NULL && op->port_size == sizeof(struct frag_port));
		for (uint32_t k = 0; k < op->port_count; k++)
			fprintf(out,
				"    port %s: direction %d, %s, flags %u, capacity %u, policy %d, "
				"min_size %u\n",
				op->ports[k].name, (int)op->ports[k].dir,
				op->ports[k].type ? op->ports[k].type : "-", op->ports[k].flags,
				op->ports[k].capacity, (int)op->ports[k].policy,
				op->ports[k].min_size);
		show_params(op->params, op->param_count, out);
	}
	for (uint32_t i = 0; i < plugin->condition_count; i++) {
		const struct frag_condition_type *type = plugin->conditions[i];
		int64_t until_ns;

		show_head("condition", type->name, type->headline, type->description,
			  type->struct_size, type->state_size, type->param_size, out);
		cr_expect_eq(type->check(NULL, 0, &until_ns), FRAG_NEVER);
		show_params(type->params, type->param_count, out);
	}
	for (uint32_t i = 0; i < plugin->resource_count; i++) {
		const struct frag_resource_type *type = plugin->resources[i];

		show_head("resource", type->name, type->headline, type->description,
			  type->struct_size, type->state_size, type->param_size, out);
		show_params(type->params, type->param_count, out);
	}
}

static unsigned int descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* In a process of its own: what was loaded stays until that ends. */
static void load(const char *path, FILE *out)
{
	const struct frag_plugin *plugin = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	unsigned int before = descriptors();
	int r, status;
	pid_t child;

	fflush(out);
	child = fork();
	if (child > 0) {
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0, "descriptors are left");
		return;
	}
	r = loader->load(path, &plugin, &err);
	fprintf(out, "  %d %s\n", r,
		strncmp(err.text, scratch, strlen(scratch)) == 0 ? err.text + strlen(scratch) + 1
								 : err.text);
	if (r == 0)
		show_plugin(plugin, out);
	fflush(out);
	_exit(descriptors() == before ? 0 : 1);
}

/* A program that writes the list, and what it was given, as a headline. */
static void put_script(const char *name, const char *list, int code)
{
	char text[4096];

	snprintf(text, sizeof(text), "%.*s", (int)strlen(list) - 1, list);
	put("list", text);
	snprintf(text, sizeof(text),
		 "#!/bin/sh\ncat %s\nprintf '\\noperator\\twords\\t%%s\\t' "
		 "\"${0##*/} $*\"\nexit %d\n",
		 at("list"), code);
	put(name, text);
	cr_assert_eq(chmod(at(name), 0755), 0);
}

Test(ctl_python, lists_become_tables, .init = scratch_make, .fini = scratch_remove)
{
	static char text[1 << 16];
	char path[2048];
	FILE *out = tmpfile();

	ctl_python_begin();
	cr_assert_not_null(loader);
	cr_expect_str_eq(loader->suffix, ".py");
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		put_script("interpreter", rows[i].list, rows[i].code);
		setenv("FRAG_PYTHON", at("interpreter"), 1);
		fprintf(out, "exits with %d after\n%s", rows[i].code, rows[i].list);
		load("a module.py", out);
	}
	fputs("no such interpreter\n", out);
	setenv("FRAG_PYTHON", "no-such-python", 1);
	load("x.py", out);
	put_script("python3", BARE("operator", "a"), 0);
	snprintf(path, sizeof(path), "%s:%s", scratch, getenv("PATH"));
	setenv("PATH", path, 1);
	fputs("that of the system\n", out);
	setenv("FRAG_PYTHON", "", 1);
	load("x.py", out);
	unsetenv("FRAG_PYTHON");
	load("x.py", out);
	rewind(out);
	text[fread(text, 1, sizeof(text) - 1, out)] = '\0';
	fclose(out);
	expected_compare("fragctl/python", text);
}
