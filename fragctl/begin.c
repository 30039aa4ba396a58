// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/units.h>
#include <fragctl/ctl.h>

/*
 * What all verbs have: flags, --help, --output, the operand NAME, and an end when their reader has
 * gone, or their disk is full.
 */
static const char *example;

static struct {
	void (*call)(const struct fragi_flags *flags, void *context);
	void *context;
} listener;

void ctl_begin_example(const char *text)
{
	example = text;
}

void ctl_verb_flags(const struct ctl_verb *verb,
		    void (*call)(const struct fragi_flags *flags, void *context), void *context)
{
	char *argv[] = {(char *)(uintptr_t)verb->name, NULL};

	listener.call = call;
	listener.context = context;
	verb->run(1, argv);
	listener.call = NULL;
}

static void print_verb_help(const struct fragi_flags *flags)
{
	struct fragi_flags own = *flags;

	own.example = example;
	fragi_flags_help(&own, stdout);
}

bool ctl_begin(const struct fragi_flags *flags, const struct ctl_common *common, int argc,
	       char **argv, struct fragi_texts *operands, int *rest, int *out_exit)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	*out_exit = CTL_OK;
	if (listener.call != NULL) {
		listener.call(flags, listener.context);
		return false;
	}
	if (fragi_flags_want_json(flags, argc, argv))
		ctl_fail_as_documents(true);
	r = fragi_flags_parse(flags, argc, argv, operands, rest, &err);
	if (r < 0) {
		fragi_log_choose_format();
		if (r == -ENOMEM)
			*out_exit = ctl_fail(CTL_FAILED, "out of memory");
		else
			*out_exit = ctl_refuse(flags->program, "%s",
					       err.text[0] != '\0' ? err.text : frag_strerror(r));
		return false;
	}
	if (common->help)
		print_verb_help(flags);
	else if (common->version)
		printf("fragctl %s\n", FRAG_VERSION);
	fragi_log_init(common->verbose - common->quiet);
	if (!common->help && !common->version)
		fragi_environment_check();
	return !common->help && !common->version;
}

bool ctl_output(const char *text, bool *out_json)
{
	*out_json = text != NULL && strcmp(text, "json") == 0;
	if (text == NULL || *out_json || strcmp(text, "table") == 0)
		return true;
	ctl_fail(CTL_USAGE, "--output \"%.80s\" is neither table nor json", text);
	return false;
}

int ctl_one_name(const struct fragi_texts *operands, const char *program, bool is_optional,
		 const char **out_name)
{
	if (operands->count == 0 && is_optional)
		return CTL_OK;
	if (operands->count != 1) {
		return ctl_refuse(program, "name %s application; fragctl list shows them",
				  is_optional ? "at most one" : "one");
	}
	*out_name = operands->items[0];
	return ctl_check_name(operands->items[0], program);
}

int ctl_check_name(const char *name, const char *program)
{
	if (fragi_name_is_valid(name))
		return CTL_OK;
	return ctl_refuse(program, "\"%.80s\" is no name of an application", name);
}

/* Whether stdout is a pipe or a socket that nobody reads any more. */
static bool is_unread(void)
{
	struct pollfd out = {.fd = STDOUT_FILENO};

	return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

/*
 * Why a part of what was printed could not be written; 0: it was. What an earlier line failed of
 * another one fails of, too.
 */
static int stdout_error(void)
{
	if (fflush(stdout) != 0)
		return errno;
	if (ferror(stdout) == 0)
		return 0;
	return write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
}

/* Returns CTL_MISSING, once: nothing is left to be written. */
static int complain_of_stdout(int error)
{
	__fpurge(stdout);
	clearerr(stdout);
	return ctl_fail(CTL_MISSING, "cannot write to stdout: %s; %s", strerror(error),
			error == EBADF ? "open it, for example by >/dev/null" : "free space");
}

int ctl_end_stdout(int code)
{
	int error = stdout_error();

	if (error == 0 || is_unread())
		return code;
	error = complain_of_stdout(error);
	return code == CTL_OK ? error : code;
}

void ctl_check_stdout(void)
{
	int error = stdout_error();

	if (error == 0)
		return;
	if (!is_unread())
		_exit(complain_of_stdout(error));
	(void)signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
}
