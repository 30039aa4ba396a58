// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/python.h>

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <frag/plugin.h>

/*
 * The list has a line for each type of operators, conditions and resources, and for each port and
 * parameter of it, with tabs between its fields, as python/frag/types.py writes it. The tables stay
 * until the process ends.
 */
#define FIELDS_MAX 12
#define FIELD_BYTES 16 /* the largest field of a parameter in a state */

struct listed_type {
	char kind; /* the first letter of operator, condition, resource */
	struct frag_op_type op;
};
struct listed {
	struct listed_type *types;
	struct frag_port *ports;
	struct frag_param *params;
	size_t type_count, port_count, param_count;
};

static int in_python_only(void *state, struct frag_tick *tick)
{
	(void)state;
	return frag_op_fail(frag_tick_op(tick), -ENOTSUP,
			    "an operator in Python does not run in fragctl itself; leave out "
			    "--in-process");
}

/* Returns memory for one element more; NULL: there is none. */
static void *grow(void *array, size_t count, size_t size)
{
	return realloc(array, (count + 1) * size);
}

static const char *text(const char *field)
{
	return field[0] != '\0' ? field : NULL;
}

/* "a|b" as an array that ends with NULL. */
static const char *const *choices(char *field)
{
	const char **list = NULL;
	size_t count = 0;

	for (char *rest = field, *one; field[0] != '\0' && (one = strsep(&rest, "|")) != NULL;) {
		const char **wider = grow(list, count + 1, sizeof(*list));

		if (wider == NULL)
			break;
		list = wider;
		list[count++] = one;
		list[count] = NULL;
	}
	return list;
}

static bool put_type(struct listed *listed, char **fields)
{
	struct listed_type *types = grow(listed->types, listed->type_count, sizeof(*listed->types));

	if (types == NULL)
		return false;
	listed->types = types;
	types[listed->type_count].kind = fields[0][0];
	types[listed->type_count++].op = (struct frag_op_type){
		FRAG_OP_TYPE_INIT,
		.name = fields[1],
		.headline = text(fields[2]),
		.description = text(fields[3]),
		.compute = in_python_only,
		.port_size = sizeof(struct frag_port),
		.param_size = sizeof(struct frag_param),
	};
	return true;
}

static bool put_port(struct listed *listed, char **fields)
{
	struct frag_port *ports = grow(listed->ports, listed->port_count, sizeof(*ports));

	if (ports == NULL)
		return false;
	listed->ports = ports;
	ports[listed->port_count++] = (struct frag_port){
		.name = fields[1],
		.dir = (enum frag_dir)atoi(fields[2]),
		.type = text(fields[3]),
		.flags = (uint32_t)strtoul(fields[4], NULL, 10),
		.capacity = (uint32_t)strtoul(fields[5], NULL, 10),
		.policy = (enum frag_policy)atoi(fields[6]),
		.min_size = (uint32_t)strtoul(fields[7], NULL, 10),
	};
	listed->types[listed->type_count - 1].op.port_count++;
	return true;
}

static bool put_param(struct listed *listed, char **fields)
{
	struct frag_param *params = grow(listed->params, listed->param_count, sizeof(*params));
	struct frag_op_type *type = &listed->types[listed->type_count - 1].op;

	if (params == NULL)
		return false;
	listed->params = params;
	params[listed->param_count++] = (struct frag_param){
		.name = fields[1],
		.kind = (enum frag_param_kind)atoi(fields[2]),
		.offset = type->param_count * FIELD_BYTES,
		.def_int = strtoll(fields[3], NULL, 10),
		.def_float = strtod(fields[4], NULL),
		.def_text = fields[5][0] == '=' ? fields[5] + 1 : NULL,
		.headline = text(fields[6]),
		.flags = (uint32_t)strtoul(fields[7], NULL, 10),
		.min = strtod(fields[8], NULL),
		.max = strtod(fields[9], NULL),
		.choices = choices(fields[10]),
	};
	type->param_count++;
	type->state_size = (size_t)type->param_count * FIELD_BYTES;
	return true;
}

static bool put_line(struct listed *listed, char *line)
{
	char *fields[FIELDS_MAX];
	size_t count = 0;

	for (char *rest = line, *field;
	     count < FIELDS_MAX && (field = strsep(&rest, "\t")) != NULL;)
		fields[count++] = field;
	if (count == 4 &&
	    (strcmp(fields[0], "operator") == 0 || strcmp(fields[0], "condition") == 0 ||
	     strcmp(fields[0], "resource") == 0))
		return put_type(listed, fields);
	if (count == 8 && strcmp(fields[0], "port") == 0 && listed->type_count > 0)
		return put_port(listed, fields);
	return count == 11 && strcmp(fields[0], "param") == 0 && listed->type_count > 0 &&
	       put_param(listed, fields);
}

static enum frag_ready never(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	(void)state;
	(void)now_ns;
	(void)out_until_ns;
	return FRAG_NEVER;
}

/* The tables of a plugin. */
struct tables {
	struct frag_plugin plugin;
	const struct frag_op_type **ops;
	const struct frag_condition_type **conditions;
	const struct frag_resource_type **resources;
};

static bool put_condition(struct tables *tables, const struct frag_op_type *listed)
{
	struct frag_condition_type *type = malloc(sizeof(*type));

	if (type == NULL)
		return false;
	*type = (struct frag_condition_type){
		FRAG_CONDITION_TYPE_INIT,
		.name = listed->name,
		.headline = listed->headline,
		.description = listed->description,
		.state_size = listed->state_size,
		.params = listed->params,
		.param_count = listed->param_count,
		.param_size = listed->param_size,
		.check = never,
	};
	tables->conditions[tables->plugin.condition_count++] = type;
	return true;
}

static bool put_resource(struct tables *tables, const struct frag_op_type *listed)
{
	struct frag_resource_type *type = malloc(sizeof(*type));

	if (type == NULL)
		return false;
	*type = (struct frag_resource_type){
		FRAG_RESOURCE_TYPE_INIT,
		.name = listed->name,
		.headline = listed->headline,
		.description = listed->description,
		.state_size = listed->state_size,
		.params = listed->params,
		.param_count = listed->param_count,
		.param_size = listed->param_size,
	};
	tables->resources[tables->plugin.resource_count++] = type;
	return true;
}

static bool put_entry(struct tables *tables, const struct listed_type *listed)
{
	if (listed->kind == 'c')
		return put_condition(tables, &listed->op);
	if (listed->kind == 'r')
		return put_resource(tables, &listed->op);
	tables->ops[tables->plugin.op_count++] = &listed->op;
	return true;
}

/* The arrays are complete: each type gets its part of them. */
static int make_plugin(struct listed *listed, const struct frag_plugin **out_plugin)
{
	struct tables *tables = calloc(1, sizeof(*tables));
	const size_t count = listed->type_count + 1;
	size_t ports = 0, params = 0;

	if (tables == NULL)
		return -ENOMEM;
	tables->ops = calloc(count, sizeof(*tables->ops));
	tables->conditions = calloc(count, sizeof(*tables->conditions));
	tables->resources = calloc(count, sizeof(*tables->resources));
	if (tables->ops == NULL || tables->conditions == NULL || tables->resources == NULL)
		goto err_tables;
	for (size_t i = 0; i < listed->type_count; i++) {
		struct frag_op_type *type = &listed->types[i].op;

		type->ports = listed->ports + ports;
		type->params = listed->params + params;
		ports += type->port_count;
		params += type->param_count;
		if (!put_entry(tables, &listed->types[i]))
			goto err_tables;
	}
	tables->plugin.struct_size = sizeof(tables->plugin);
	tables->plugin.abi_major = FRAG_ABI_MAJOR;
	tables->plugin.abi_minor = FRAG_ABI_MINOR;
	tables->plugin.name = "python";
	tables->plugin.ops = tables->ops;
	tables->plugin.conditions = tables->conditions;
	tables->plugin.resources = tables->resources;
	*out_plugin = &tables->plugin;
	return 0;

err_tables:
	free(tables->ops);
	free(tables->conditions);
	free(tables->resources);
	free(tables);
	return -ENOMEM;
}

/* Starts the interpreter; out_list: reads what it writes on stdout. */
static int start(const char *python, const char *path, pid_t *out_pid, FILE **out_list)
{
	const char *const arguments[] = {python, "-m", "frag.types", path, NULL};
	posix_spawn_file_actions_t actions;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	r = -posix_spawnp(out_pid, python, &actions, NULL, (char *const *)(uintptr_t)arguments,
			  environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	*out_list = r == 0 ? fdopen(ends[0], "r") : NULL;
	if (*out_list == NULL)
		close(ends[0]);
	return r;
}

static int load(const char *path, const struct frag_plugin **out_plugin, struct frag_err *err)
{
	const char *python = getenv("FRAG_PYTHON");
	struct listed listed = {0};
	char *line = NULL;
	size_t size = 0;
	bool is_whole = true;
	FILE *list = NULL;
	pid_t pid = 0;
	int status = -1, r;

	python = python != NULL && python[0] != '\0' ? python : "python3";
	r = start(python, path, &pid, &list);
	if (r < 0)
		return frag_err_set(err, r, "%s cannot be started: %s", python, strerror(-r));
	while (list != NULL && getline(&line, &size, list) > 0) {
		char *copy = strndup(line, strcspn(line, "\n")); /* the tables point into it */

		is_whole = is_whole && copy != NULL && put_line(&listed, copy);
		if (!is_whole)
			free(copy);
	}
	free(line);
	if (list != NULL)
		fclose(list);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0 || list == NULL || !is_whole)
		return frag_err_set(err, -EINVAL,
				    "%s cannot load it; its own lines say why (frag has to be "
				    "installed for it)",
				    python);
	return make_plugin(&listed, out_plugin);
}

void ctl_python_begin(void)
{
	static const struct frag_loader loader = {FRAG_LOADER_INIT, .suffix = ".py", .load = load};

	frag_loader_register(&loader, NULL);
}
