/* SPDX-License-Identifier: Apache-2.0 */
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
 * The list has a line for each type, port and parameter, with tabs between its fields, as
 * python/frag/types.py writes it. The tables stay until the process ends.
 */
#define FIELDS_MAX 12
#define FIELD_BYTES 16 /* the largest field of a parameter in a state */

struct listed {
	struct frag_op_type *types;
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
	struct frag_op_type *types =
		grow(listed->types, listed->type_count, sizeof(*listed->types));

	if (types == NULL)
		return false;
	listed->types = types;
	types[listed->type_count++] = (struct frag_op_type){
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
	listed->types[listed->type_count - 1].port_count++;
	return true;
}

static bool put_param(struct listed *listed, char **fields)
{
	struct frag_param *params = grow(listed->params, listed->param_count, sizeof(*params));
	struct frag_op_type *type = &listed->types[listed->type_count - 1];

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
	type->state_size = type->param_count * FIELD_BYTES;
	return true;
}

static bool put_line(struct listed *listed, char *line)
{
	char *fields[FIELDS_MAX];
	size_t count = 0;

	for (char *rest = line, *field;
	     count < FIELDS_MAX && (field = strsep(&rest, "\t")) != NULL;)
		fields[count++] = field;
	if (count == 4 && strcmp(fields[0], "type") == 0)
		return put_type(listed, fields);
	if (count == 8 && strcmp(fields[0], "port") == 0 && listed->type_count > 0)
		return put_port(listed, fields);
	return count == 11 && strcmp(fields[0], "param") == 0 && listed->type_count > 0 &&
	       put_param(listed, fields);
}

/* The arrays are complete: each type gets its part of them. */
static int make_plugin(struct listed *listed, const char *path,
		       const struct frag_plugin **out_plugin)
{
	const struct frag_op_type **ops = calloc(listed->type_count + 1, sizeof(*ops));
	struct frag_plugin *plugin = calloc(1, sizeof(*plugin));
	size_t ports = 0, params = 0;

	if (ops == NULL || plugin == NULL || path == NULL) {
		free(ops);
		free(plugin);
		return -ENOMEM;
	}
	for (size_t i = 0; i < listed->type_count; i++) {
		listed->types[i].ports = listed->ports + ports;
		listed->types[i].params = listed->params + params;
		ports += listed->types[i].port_count;
		params += listed->types[i].param_count;
		ops[i] = &listed->types[i];
	}
	*plugin = (struct frag_plugin){.struct_size = sizeof(*plugin),
				       .abi_major = FRAG_ABI_MAJOR,
				       .abi_minor = FRAG_ABI_MINOR,
				       .name = "python",
				       .ops = ops,
				       .op_count = (uint32_t)listed->type_count};
	*out_plugin = plugin;
	return 0;
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
	FILE *list;
	pid_t pid;
	int status = -1, r;

	python = python != NULL && python[0] != '\0' ? python : "python3";
	r = start(python, path, &pid, &list);
	if (r < 0)
		return frag_err_set(err, r, "%s cannot be started: %s", python, strerror(-r));
	while (list != NULL && getline(&line, &size, list) > 0) {
		char *copy = strndup(line, strcspn(line, "\n")); /* the tables point into it */

		is_whole = is_whole && copy != NULL && put_line(&listed, copy);
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
	return make_plugin(&listed, path, out_plugin);
}

void ctl_python_begin(void)
{
	static const struct frag_loader loader = {FRAG_LOADER_INIT, .suffix = ".py", .load = load};

	frag_loader_register(&loader, NULL);
}
