// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/environment.h>
#include <fragctl/command.h>

static void add(struct ctl_command *command, const char *word)
{
	size_t capacity = command->capacity == 0 ? 32 : command->capacity * 2;
	const char **wider;

	if (command->no_memory || word == NULL) {
		command->no_memory = true;
		return;
	}
	if (command->count + 2 > command->capacity) {
		wider = fragi_arena_alloc(command->arena, capacity * sizeof(*wider));
		if (wider == NULL) {
			command->no_memory = true;
			return;
		}
		if (command->count > 0)
			memcpy(wider, command->words, command->count * sizeof(*wider));
		command->words = wider;
		command->capacity = capacity;
	}
	command->words[command->count++] = word;
	command->words[command->count] = NULL;
}

static void add_flag(struct ctl_command *command, const char *flag, const char *value)
{
	if (value == NULL)
		return;
	add(command, flag);
	add(command, value);
}

static void add_flags(struct ctl_command *command, const char *flag,
		      const struct fragi_texts *values)
{
	for (size_t i = 0; i < values->count; i++)
		add_flag(command, flag, values->items[i]);
}

static void add_verbosity(struct ctl_command *command, int verbosity)
{
	for (int i = 0; i < verbosity && i < 3; i++)
		add(command, "-v");
	for (int i = 0; i > verbosity && i > -3; i--)
		add(command, "-q");
}

/* The daemons lie beside this program. */
static void add_program(struct ctl_command *command, const char *name)
{
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	own[n > 0 ? n : 0] = '\0';
	slash = strrchr(own, '/');
	if (slash != NULL)
		*slash = '\0';
	add(command, fragi_arena_printf(command->arena, "%s/%s", own, name));
}

static void add_credentials(struct ctl_command *command, const struct ctl_roles *roles)
{
	add_flag(command, "--key-file", roles->key_file);
	if (roles->insecure)
		add(command, "--insecure");
}

void ctl_command_driver(struct ctl_command *command, const struct ctl_run_options *options)
{
	const struct ctl_graph *graph = &options->graph;

	add_program(command, "driverd");
	add_flag(command, "--address",
		 options->workers > 0 ? "127.0.0.1:0" : options->roles.address);
	add_flag(command, "--app", graph->path);
	add_flags(command, "--config", &graph->configs);
	add_flags(command, "--set", &graph->sets);
	add_flag(command, "--start-timeout", options->roles.start_timeout);
	add_credentials(command, &options->roles);
	add_flag(command, "--output", options->output.json ? "json" : "table");
	add_flag(command, "--summary", options->output.file);
	add_verbosity(command, options->verbosity);
	add(command, "--");
	for (int i = 0; i < graph->arg_count; i++)
		add(command, graph->args[i]);
}

void ctl_command_worker(struct ctl_command *command, const struct ctl_run_options *options,
			const struct ctl_command_worker *worker)
{
	add_program(command, "workerd");
	add_flag(command, "--address", worker->address);
	add_flag(command, "--name", worker->name);
	add_flag(command, "--fragments", worker->fragments);
	add_flag(command, "--worker-address", options->roles.worker_address);
	add_flags(command, "--allow-write", &options->roles.allow_write);
	add_flag(command, "--app-root", worker->app_root);
	add_flag(command, "--library-path", options->graph.library_path);
	if (getenv("FRAG_PYTHON") == NULL) /* else workerd reads it itself */
		add_flag(command, "--python", "python3");
	add_credentials(command, &options->roles);
	/* A container may know no users; then there is none that hosts would have instead. */
	if (worker->is_own_user && geteuid() == 0 && getenv("FRAG_HOST_USER") == NULL &&
	    getpwnam("root") != NULL)
		add_flag(command, "--host-user", "root");
	if (worker->is_once)
		add(command, "--once");
	add_verbosity(command, worker->verbosity);
}

void ctl_command_web(struct ctl_command *command, const struct ctl_run_options *options,
		     const char *address)
{
	add_program(command, "fragctl");
	add(command, "web");
	add_flag(command, "--address", address);
	add_flag(command, "--listen", "127.0.0.1:0");
	add(command, "--open");
	add_verbosity(command, options->verbosity);
}

int ctl_command_execute(const struct ctl_command *command)
{
	int saved;

	if (command->no_memory)
		return ctl_fail(CTL_FAILED, "out of memory");
	setenv(FRAGI_ENVIRONMENT_CHECKED, "1", 1);
	execv(command->words[0], (char *const *)(uintptr_t)command->words);
	saved = errno;
	return ctl_fail(saved == ENOENT ? CTL_MISSING : CTL_FAILED, "cannot start %s: %s",
			command->words[0], strerror(saved));
}
