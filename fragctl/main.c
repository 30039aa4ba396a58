/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/environment.h>
#include <base/log.h>
#include <base/standard_fds.h>
#include <base/units.h>
#include <fragctl/ctl.h>

static const struct ctl_verb verbs[] = {
	{"run", "runs an application, here or by workers of this machine", ctl_run},
	{"validate", "checks an application without running it", ctl_validate},
	{"inspect", "lists types, or describes one type or one library", ctl_inspect},
	{"describe", "composes an application and prints its plan", ctl_describe},
	{"graph", "draws an application", ctl_draw},
	{"new", "makes a project for an operator of your own", ctl_new},
	{"key", "makes keys for driverd and workerd, and lists those of a file", ctl_key},
	{"test", "runs an application with inputs and expected outputs from files", ctl_test},
	{"start", "starts an application at a driver", ctl_start},
	{"stop", "stops an application of a driver", ctl_stop},
	{"restart", "stops an application of a driver and starts it anew", ctl_restart},
	{"apply", "brings a changed graph to an application that runs", ctl_apply},
	{"list", "lists the applications of a driver", ctl_list},
	{"status", "shows where applications run, or how one has ended", ctl_status},
	{"set", "changes a parameter of an application that runs", ctl_set},
	{"swap", "replaces a library of a fragment while its application runs", ctl_swap},
	{"logs", "prints what an application and its operators have written", ctl_logs},
	{"workers", "lists the workers of a driver", ctl_workers},
	{"events", "prints what happened at a driver, and who asked for it", ctl_events},
	{"drain", "moves what a worker runs to other workers", ctl_drain},
	{"explain", "shows why fragments run where they do, or nowhere", ctl_explain},
	{"complete", NULL, ctl_complete}, /* for the completion of shells */
	{"doctor", NULL, NULL},
	{"record", NULL, NULL},
	{"top", NULL, NULL},
};

static struct {
	void (*call)(const struct fragi_flags *flags, void *context);
	void *context;
} listener;

const struct ctl_verb *ctl_verb_at(size_t i)
{
	return i < FRAG_COUNT_OF(verbs) ? &verbs[i] : NULL;
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
	r = fragi_flags_parse(flags, argc, argv, operands, rest, &err);
	if (r < 0) {
		fragi_log_choose_format();
		fragi_log_print("%s: %s\n", flags->program,
				err.text[0] != '\0' ? err.text : frag_strerror(r));
		*out_exit = r == -ENOMEM ? CTL_FAILED : CTL_USAGE;
		return false;
	}
	if (common->help)
		fragi_flags_help(flags, stdout);
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

static void print_help(FILE *out)
{
	fputs("usage: fragctl VERB [flags]\n\nRuns and inspects frag applications, and controls those of a driver.\n\n",
	      out);
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++)
		if (verbs[i].headline != NULL)
			fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].headline);
	fputs("\n`fragctl VERB --help` describes a verb and its flags. `fragctl --version` prints the version.\n",
	      out);
}

static int refuse_verb(const char *name)
{
	const char *names[FRAG_COUNT_OF(verbs)];
	size_t count = 0;
	char advice[400];

	fragi_log_choose_format();
	if (name[0] == '-')
		return ctl_fail(
			CTL_USAGE,
			"unknown flag %s; flags follow the verb, fragctl --help lists verbs", name);
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++)
		if (verbs[i].headline != NULL)
			names[count++] = verbs[i].name;
	return ctl_fail(CTL_USAGE, "unknown verb \"%.80s\"%s", name,
			fragi_advise(advice, sizeof(advice), name, "verbs", names, count));
}

int main(int argc, char **argv)
{
	fragi_standard_fds_open();
	if (argc < 2) {
		print_help(stderr);
		return CTL_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return CTL_OK;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("fragctl %s\n", FRAG_VERSION);
		return CTL_OK;
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(verbs); i++) {
		if (strcmp(verbs[i].name, argv[1]) != 0)
			continue;
		if (verbs[i].run == NULL)
			return ctl_fail(CTL_USAGE, "%s is not built yet", argv[1]);
		return verbs[i].run(argc - 1, argv + 1);
	}
	return refuse_verb(argv[1]);
}
