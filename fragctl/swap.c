// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <fragctl/json.h>
#include <fragctl/service.h>

/*
 * `fragctl swap NAME FRAGMENT --library X.so` replaces a library of a fragment of an application
 * that runs, and returns when the new one runs. The driver answers then, or says why nothing has
 * changed.
 */
#define PROBATION "10s"
#define PROBATION_NS_MAX ((int64_t)3600 * 1000000000)

struct swap {
	struct ctl_driver driver;
	struct fw_swap wanted;
	const char *probation;
	bool json;
};

static void show(const struct swap *swap, uint64_t run)
{
	const struct fw_swap *wanted = &swap->wanted;
	char probation[32];

	if (run == 0 && swap->json)
		ctl_service_json_run(wanted->name, run, "stopped");
	else if (run == 0)
		printf("%s: stopped before %s ran with %s\n", wanted->name, wanted->fragment,
		       wanted->library);
	if (run == 0)
		return;
	if (swap->json) {
		struct ctl_json json = ctl_json_begin(stdout);

		ctl_json_text(&json, "application", wanted->name);
		ctl_json_unsigned(&json, "run", run);
		ctl_json_text(&json, "fragment", wanted->fragment);
		ctl_json_text(&json, "library", wanted->library);
		ctl_json_number(&json, "probation_ns", wanted->probation_ns);
		ctl_json_end(&json);
		return;
	}
	printf("%s: %s runs with %s", wanted->name, wanted->fragment, wanted->library);
	if (wanted->probation_ns > 0)
		printf(", on probation for %s",
		       fragi_format_duration(wanted->probation_ns, probation, sizeof(probation)));
	printf("\n");
}

static int run(struct swap *swap)
{
	struct fw_message command = {.kind = FW_SWAP, .swap = swap->wanted};
	uint64_t number = 0;
	int code = ctl_driver_open(&swap->driver);

	if (code == CTL_OK)
		code = ctl_service_command(&swap->driver, &command, swap->json, &number);
	if (code == CTL_OK)
		show(swap, number);
	return code;
}

static bool is_library(const char *name)
{
	return name[0] != '\0' && strlen(name) <= FW_LIBRARY_MAX;
}

/* The driver would close the connection of a client that sends what nothing can be called. */
static int read_words(struct swap *swap, const struct fragi_texts *operands)
{
	struct fw_swap *wanted = &swap->wanted;

	if (operands->count != 2 || wanted->library == NULL)
		return ctl_fail(CTL_USAGE, "give the name of one application, one of its fragments "
					   "and --library; see `fragctl swap --help`");
	wanted->name = operands->items[0];
	wanted->fragment = operands->items[1];
	if (ctl_check_name(wanted->name, "fragctl swap") != CTL_OK)
		return CTL_USAGE;
	if (!fragi_name_is_valid(wanted->fragment))
		return ctl_fail(CTL_USAGE, "\"%.80s\" is no name of a fragment", wanted->fragment);
	if (!is_library(wanted->library) ||
	    (wanted->replaces != NULL && !is_library(wanted->replaces)))
		return ctl_fail(
			CTL_USAGE,
			"a library has a name of 1 to %d bytes; write for example libview.so",
			FW_LIBRARY_MAX);
	if (wanted->replaces == NULL)
		wanted->replaces = "";
	if (fragi_duration_lacks_unit(swap->probation) ||
	    fragi_parse_time(swap->probation, &wanted->probation_ns) < 0 ||
	    wanted->probation_ns < 0 || wanted->probation_ns > PROBATION_NS_MAX)
		return ctl_fail(
			CTL_USAGE,
			"--probation \"%.80s\" is not a time from 0s to 1h; write for example "
			"10s",
			swap->probation);
	return CTL_OK;
}

int ctl_swap(int argc, char **argv)
{
	struct swap swap = {.probation = PROBATION};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "library",
		 .value = "X.so",
		 .no_env = true,
		 .help = "the new library, found as those of `extensions`",
		 .text = &swap.wanted.library},
		{.name = "replaces",
		 .value = "OLD.so",
		 .no_env = true,
		 .help = "the library that it replaces, where the fragment uses several",
		 .text = &swap.wanted.replaces},
		{.name = "probation",
		 .value = "TIME",
		 .no_env = true,
		 .help = "for so long a failure brings the old library back, 0s to 1h; default: 10s",
		 .text = &swap.probation},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(swap.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl swap",
		.usage = "NAME FRAGMENT --library X.so [flags]",
		.headline =
			"Replaces a library of a fragment while its application runs; returns when the new one runs.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &swap.json) ? read_words(&swap, &operands) : CTL_USAGE;
		if (code == CTL_OK)
			code = run(&swap);
	}
	ctl_driver_close(&swap.driver);
	fragi_texts_fini(&operands);
	return code;
}
