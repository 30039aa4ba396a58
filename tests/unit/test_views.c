// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fragctl/driver.h>
#include <fragctl/look.h>
#include <fragctl/top_window.h>
#include <text/spec.h>

#include "drawn_answers.h"
#include "expected.h"
#include "left.h"
#include "scratch.h"
#include "transcript.h"

/*
 * What verbs of fragctl ask a driver, and all that they print of its answers, compared with a
 * recorded text. The driver is played: its answers have something of its own in every field. The
 * first functions take the place of fragctl/driver.c.
 */
struct view {
	const char *words;
	/* one after the other (drawn_answers.h); then it is gone, as for a while at each '!' */
	const char *answers;
	const char *typed; /* a line each, the last one the end if it is none; NULL: no terminal */
};

static const struct view views[] = {
	{"list", "R"},
	{"list -o json", "R"},
	{"list --cause", "LlR"},
	{"list --cause -o json", "lR"},
	{"list a", "R"},
	{"list -o yaml", ""},
	{"status --no-wait", "R"},
	{"status", "RLl"},
	{"status a", "Rl"},
	{"status a -o json", "Rl"},
	{"status b", "RO"},
	{"status b -o json", "RO"},
	{"status none", "R"},
	{"status -o json", "RLl"},
	{"workers", "R"},
	{"workers -o json", "R"},
	{"events", "EE"},
	{"events -o json", "EE"},
	{"events --follow", "EEEEA"},
	{"logs a", "GG"},
	{"logs a -o json", "GG"},
	{"logs a/f", "RG"},
	{"logs a --follow", "GGGG"},
	{"explain a", "Xl"},
	{"explain a -o json", "Xl"},
	{"explain a --no-wait", "XR"},
	{"explain a f1", "X"},
	{"explain a f1 -o json", "X"},
	{"health", "R"},
	{"health a", "R"},
	{"health b -o json", "R"},
	{"health --for 1s", "RLl"},
	{"health a --for 1s -o json", "Rl"},
	{"top --once", "Ll"},
	{"top a --once", "l"},
	{"top a --once -o json", "l"},
	{"top --once --plain", "Ll"},
	{"top --plain", "lLll"},
	{"top --no-wait", "R"},
	{"top --no-wait -o json", "R"},
	{"top --every 249ms", ""},
	{"echo a f.x -n 2", "ATTT"},
	{"echo a f.x -n 2 -o json", "ATT"},
	{"echo a f.x -n 0", ""},
	{"echo a f.x --every 99ms", ""},
	{"set a f.op.p=3", "A"},
	{"set a f.op.p=3 -o json", "A"},
	{"restart a", "AO"},
	{"restart a --now -o json", "AO"},
	{"stop a", "AO"},
	{"stop a --now -o json", "AO"},
	{"stop --all", "RAOAO"},
	{"stop --all -o json", "RAOAO"},
	{"stop a --all", ""},
	{"drain w", "AE"},
	{"drain w -o json", "AE"},
	{"events", "V"},
	{"events -o json", "V"},
	{"events --level warn", "V"},
	{"events --level error", "V"},
	{"events --operator tx", "V"},
	{"events --operator f.tx", "V"},
	{"events --since 2026-11-27T14:03:05Z --until 2026-11-27T14:03:09.5Z", "V"},
	{"events --since 2026-11-27T14:03:05.5Z", "V"},
	{"logs a --level info", "g"},
	{"logs a --level error -o json", "g"},
	{"logs a --operator tx", "g"},
	{"logs a --operator f.tx", "g"},
	{"logs a --operator f1.tx", "g"},
	{"logs a --operator f1tx", "g"},
	{"logs a --until 2026-11-27T14:03:09Z", "g"},
	{"logs a/f/tx --follow --level debug", "Rgg"},
	{"apply a -e SMALL", "CCO"},
	{"apply a -e SMALL -o json", "CACO"},
	{"apply a -e SMALL --dry-run", "C"},
	{"apply a -e SMALL --dry-run -o json", "C"},
	{"apply a -e SMALL", "SAAS"},
	{"apply a", ""},
	{"apply a/b -e SMALL", ""},
	{"start -e SMALL", "ARO"},
	{"start -e SMALL -o json", "ARO"},
	{"start -e SMALL --wait", "ARO"},
	{"start -e SMALL --wait -o json --name b", "ARO"},
	{"start -e SMALL --name b/c", ""},
	{"start -e SMALL --start-timeout 5", ""},
	{"start -e SMALL --start-timeout 0s", ""},
	{"start -e SMALL --start-timeout 1500ms", "ARO"},
	{"start -e SMALL --summary x.json", ""},
	{"swap a f --library libx.so", "A"},
	{"swap a f --library libx.so --replaces liby.so --probation 0s -o json", "A"},
	{"swap a f --library libx.so --probation 1h", "A"},
	{"swap a f --library libx.so --probation 3601s", ""},
	{"swap a f.x --library libx.so", ""},
	{"swap a f", ""},
	{"snapshot -f - --since 2020-01-01T00:00:00Z", "RLlEOGGGG"},
	{"snapshot -f - --since 2020-01-01T00:00:00Z", "RLlVWgWOOgW"},
	{"snapshot a -f - --no-wait --since 2026-11-27T14:03:05Z", "RRVWgW"},
	{"doctor --workers", "RNNAOG"},
	{"doctor --workers -o json", "RNNAOG"},
	{"doctor --workers", "RaNaG"},
	{"doctor --workers", "PNNNADY"},
	{"doctor --workers -o json", "PNNNADY"},
	{"doctor --workers", "PNNNADG"},
	{"doctor --workers", "PNNNAOY"},
	{"doctor --workers", "PNNNaW"},
	{"doctor --workers -o json", "PNNNA"},
	{"echo a f.x -n 5 --pictures .", "Attttt"},
	{"echo a f.x -n 3 --pictures none", "Att"},
	{"echo a f.x -n 5 -o json", "Att!Attt"},
	{"echo a f.x -n 3", "At!At!At"},
	{"echo a f.x", "Att!a"},
	{"echo a f.x", "At!!!"},
	{"logs a --follow", "GG!G!G"},
	{"top --plain", "lLl!l!Llll"},
	{"start -e SMALL", "APO"},
	{"start -e SMALL", "AQO"},
	{"snapshot -f x.tar --since 2020-01-01T00:00:00Z", "PLlVWgWgWOgW"},
	{"snapshot -f none/x.tar", "P"},
	{"snapshot none -f x.tar", "PV"},
	{"top a --once --every 250ms", "l"},
	{"top a --once --every 5s", "l"},
	{"top a --once --every 5001ms", ""},
	{"health a --for 5s", "Rl"},
	{"echo a f.x -n 1 --every 100ms", "AT"},
	{"echo a f.x -n 1 --every 1h", "AT"},
	{"echo a f.x -n -1", ""},
	{"top --plain", "lllll", "\n\n."},
	{"top --plain", "lllll", "x\nq."},
	{"top --plain", "lllll", "\n\n"},
	{"top --plain", "lllll", ""},
	{"top --plain --once", "ll", "\n\n."},
	{"top a -o json", "lll", "\nq."},
	{"workers", "P"},
	{"list", "P"},
	{"status", "Pl"},
	{"health", "P"},
};

static const char *left;
static uint64_t last_seq;
static int opened;

static int next_answer(struct fw_message **out)
{
	struct fw_message message;
	size_t size;

	if (*left == '\0' || *left == '!')
		return ctl_fail(CTL_MISSING, "the driver is gone");
	make_answer(*left++, last_seq, &message);
	cr_assert_eq(fw_message_copy(&message, out, &size), 0);
	if (message.kind == FW_TAPPED)
		fragi_free((void *)(uintptr_t)message.tapped.passed);
	return CTL_OK;
}

int ctl_driver_open(struct ctl_driver *driver)
{
	(void)driver;
	opened++;
	return CTL_OK;
}

int ctl_driver_open_any(struct ctl_driver *driver)
{
	return ctl_driver_open(driver);
}

void ctl_driver_find(struct ctl_driver *driver)
{
	(void)driver;
}

/* Of a graph its size is shown: packed, it has paths of this machine. */
static void show_request(const struct fw_message *request)
{
	struct fw_message message = *request;
	struct fragi_source source;
	void **bytes = message.kind == FW_START_APP ? (void **)(uintptr_t)&message.start_app.source
		       : message.kind == FW_APPLY   ? (void **)(uintptr_t)&message.apply.source
						    : NULL;
	uint32_t *size = message.kind == FW_START_APP ? &message.start_app.source_bytes
						      : &message.apply.source_bytes;

	if (bytes != NULL) {
		cr_assert_eq(fragi_source_unpack(*bytes, *size, &source), 0);
		/* of fragctl doctor: it has the number of this process */
		fprintf(transcript, "  graph: %s, %zu bytes\n", source.source.graph.file,
			strcmp(source.source.graph.file, "doctor") == 0
				? 0
				: source.source.graph.length);
		fragi_source_fini(&source);
		*bytes = NULL;
		*size = 0;
	}
	transcript_message("asks", &message);
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	(void)driver;
	show_request(request);
	request->seq = ++last_seq;
	return next_answer(out_reply);
}

int ctl_driver_send(struct ctl_driver *driver, struct fw_message *message)
{
	(void)driver;
	transcript_message("sends", message);
	return CTL_OK;
}

int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply)
{
	(void)driver;
	(void)request;
	return next_answer(out_reply);
}

int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message)
{
	(void)driver;
	return next_answer(out_message);
}

int ctl_driver_reopen(struct ctl_driver *driver)
{
	bool is_back = *left == '!';

	(void)driver;
	left += is_back;
	fprintf(transcript, "  connects again%s\n", is_back ? "" : ": nobody is there");
	return is_back ? CTL_OK : CTL_MISSING;
}

void ctl_driver_close(struct ctl_driver *driver)
{
	(void)driver;
	opened -= opened > 0; /* it may not have come that far */
}

int ctl_top_on_screen(struct ctl_driver *driver, const struct ctl_driver *again, const char *name,
		      int64_t every_ns)
{
	(void)driver, (void)again, (void)name, (void)every_ns;
	return -ENOTTY;
}

static int run_verb(const char *words)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {{"list", ctl_list},     {"status", ctl_status},   {"workers", ctl_workers},
		     {"events", ctl_events}, {"logs", ctl_logs},       {"explain", ctl_explain},
		     {"health", ctl_health}, {"top", ctl_top},         {"echo", ctl_echo},
		     {"set", ctl_set},       {"restart", ctl_restart}, {"stop", ctl_stop},
		     {"drain", ctl_drain},   {"apply", ctl_apply},     {"start", ctl_start},
		     {"swap", ctl_swap},     {"doctor", ctl_doctor},   {"snapshot", ctl_snapshot}};
	static char small[] = "ping_tx count=3 ! ping_rx";
	char copy[256], *argv[12] = {NULL}, *rest = copy;
	int argc = 0;
	size_t i = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((argv[argc] = strsep(&rest, " ")) != NULL) {
		if (strcmp(argv[argc], "SMALL") == 0)
			argv[argc] = small;
		cr_assert_lt(++argc, 12);
	}
	while (strcmp(verbs[i].name, argv[0]) != 0)
		i++;
	return verbs[i].run(argc, argv);
}

/* What the driver has answered in full prints most lines of what ends earlier, too. */
static char *first; /* of the transcript; NULL: this is the first */

static bool is_repeated(const char *line)
{
	const char *at = first != NULL ? strstr(first, line) : NULL;

	return at != NULL && at > first && at[-1] == '\n';
}

/* Lines that stand in the first text are counted. */
static void show_line(char mark, const char *text, size_t length, size_t *repeated)
{
	static char line[1 << 16];

	snprintf(line, sizeof(line), "  %c %.*s\n", mark, (int)length, text);
	if (length > 0 && is_repeated(line)) {
		++*repeated;
		return;
	}
	if (*repeated > 0)
		fprintf(transcript, "  %c ... %zu as before\n", mark, *repeated);
	*repeated = 0;
	if (length > 0)
		fputs(line, transcript);
}

/*
 * Lines, and of a snapshot, which is a tar, the names of its files and their lines, but for that
 * which has the time and the version.
 */
static void show_printed(FILE *printed, char mark)
{
	static char text[1 << 20];
	size_t size, repeated = 0;

	rewind(printed);
	size = fread(text, 1, sizeof(text), printed);
	cr_assert_lt(size, sizeof(text));
	fclose(printed);
	for (size_t at = 0; at < size;) {
		size_t length = 0;

		while (at + length < size && text[at + length] != '\n' && text[at + length] != '\0')
			length++;
		if (length > 0 && strncmp(text + at, "A snapshot of frag by", 21) != 0 &&
		    (at + length == size || text[at + length] == '\n' ||
		     (isalpha((unsigned char)text[at]) && strchr(text + at, '.') != NULL)))
			show_line(mark, text + at, length, &repeated);
		at += length + 1;
	}
	show_line(mark, "", 0, &repeated);
}

/* Pictures, byte by byte, and of a snapshot what is in it; they are not there afterwards. */
static void show_files(void)
{
	glob_t found = {0};
	char line[256];
	FILE *tar;

	if (glob("*.p[gp]m", 0, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc; i++) {
			FILE *file = fopen(found.gl_pathv[i], "r");

			fprintf(transcript, "  file %s:", found.gl_pathv[i]);
			for (int c; (c = fgetc(file)) != EOF;)
				fprintf(transcript, c > ' ' && c <= '~' ? " %c" : " %02x", c);
			fputc('\n', transcript);
			fclose(file);
			unlink(found.gl_pathv[i]);
		}
	globfree(&found);
	if (access("x.tar", F_OK) < 0)
		return;
	tar = popen("tar --numeric-owner -tvf x.tar | tr -s ' ' | cut -d ' ' -f 1-3,6 | "
		    "sed 's/[0-9T]*Z/TIME/; /README/s/ [0-9]* / N /'; rm x.tar",
		    "r");
	while (fgets(line, sizeof(line), tar) != NULL)
		fprintf(transcript, "  x.tar: %s", line);
	if (pclose(tar) != 0)
		fprintf(transcript, "  x.tar: cannot be read\n");
}

/* A terminal, of which each line is read by itself. */
static bool has_terminal;

int isatty(int fd)
{
	(void)fd;
	return has_terminal;
}

static void type(const char *typed)
{
	int ends[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	for (; *typed != '\0' && *typed != '.'; typed++)
		cr_assert_eq(send(ends[1], typed, 1, 0), 1);
	if (*typed != '.') /* else it stays */
		close(ends[1]);
}

static void show_view(const char *words, const char *answers, uint64_t seed)
{
	const unsigned int descriptors = left_now().descriptors;
	int outputs[2] = {dup(1), dup(2)}, code;
	FILE *printed[2] = {tmpfile(), tmpfile()};

	fprintf(transcript, "fragctl %s (answers %s, %" PRIu64 ")\n", words, answers, seed);
	maker = (struct maker){.state = seed * 7919, .is_natural = true};
	left = answers;
	last_seq = 0;
	pictures_made = 0;
	fflush(NULL);
	dup2(fileno(printed[0]), 1);
	dup2(fileno(printed[1]), 2);
	code = run_verb(words);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(outputs[i], i + 1);
		close(outputs[i]);
		show_printed(printed[i], i == 0 ? '|' : '!');
	}
	fprintf(transcript, "  exit code %d%s%s\n", code, *left != '\0' ? ", not asked for: " : "",
		left);
	show_files();
	if (opened > 0)
		fprintf(transcript, "  the session is left open\n");
	/* that of a graph in a line stays: others open it by its path */
	if (left_now().descriptors > descriptors + (strstr(words, "SMALL") != NULL))
		fprintf(transcript, "  descriptors are left\n");
	fragi_arena_fini(&maker.arena);
}

/* Rows with answers of their own are shown once, others with more values and each answer amiss. */
static void show_all_of(const struct view *view)
{
	size_t count = strlen(view->answers);
	bool is_short = view->typed == NULL && strspn(view->answers, "RVgW") < count && count < 7 &&
			strpbrk(view->answers, "PQDYt!") == NULL &&
			strstr(view->words, "--every") == NULL &&
			strstr(view->words, " 5s") == NULL;

	for (uint64_t seed = 1; seed <= (is_short ? 5 : 1); seed += 4) {
		show_view(view->words, view->answers, seed);
		if (seed > 1)
			continue;
		fflush(transcript);
		first = strdup(transcript_text);
		cr_assert_not_null(first);
	}
	for (size_t k = 0; is_short && k < count; k++) {
		char answers[16];

		snprintf(answers, sizeof(answers), "%.*sa", (int)k, view->answers);
		show_view(view->words, answers, 1); /* refused */
		answers[k] = '\0';
		show_view(view->words, answers, 1); /* lost */
		if (k > 0)
			continue;
		answers[k] = 'W';
		answers[k + 1] = '\0';
		show_view(view->words, answers, 1); /* not what was asked for */
	}
	free(first);
}

/* Names of applications that fragctl doctor starts have the number of this process. */
static void put_text(char *text, FILE *out)
{
	char name[32];

	snprintf(name, sizeof(name), "doctor-%d-", (int)getpid());
	for (char *next; (next = strstr(text, name)) != NULL; text = next + strlen(name))
		fprintf(out, "%.*sdoctor-N-", (int)(next - text), text);
	fputs(text, out);
}

/* Each in a process of its own: that failures are documents stays so. */
Test(views, are_as_recorded, .init = scratch_make, .fini = scratch_remove)
{
	static char text[4 << 20];
	FILE *all = tmpfile();

	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that a verb knows */
	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			mallopt(M_PERTURB, 165); /* what nobody has cleared is no zeros */
			has_terminal = views[i].typed != NULL;
			if (has_terminal)
				type(views[i].typed);
			transcript_begin();
			cr_assert_eq(chdir(scratch), 0);
			show_all_of(&views[i]);
			fclose(transcript);
			put_text(transcript_text, all);
			fclose(all);
			free(transcript_text);
			exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0, "fragctl %s: status %x", views[i].words, status);
	}
	rewind(all);
	text[fread(text, 1, sizeof(text) - 1, all)] = '\0';
	fclose(all);
	expected_compare("fragctl/views", text);
}
