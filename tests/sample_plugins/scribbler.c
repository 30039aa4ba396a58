// SPDX-License-Identifier: Apache-2.0
/*
 * An operator that overwrites the page in which its host counts (the ledger), as code of an
 * operator can: it shares the memory of its host. It finds the page in /proc/self/maps.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/frag.h>

struct scribbler {
	const char *with;
	int64_t after;
	int64_t seen;
};

static const char *const patterns[] = {"ones", "zeros", "noise", "everything", NULL};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct scribbler, with, "noise", .headline = "What is written there",
			  .choices = patterns),
	FRAG_PARAM_I64(struct scribbler, after, 20, .headline = "Ticks before it does so"),
};

static const struct frag_port ports[] = {{.name = "out", .dir = FRAG_OUT}};

/* The page that can be written; NULL: there is none. */
static unsigned char *find_page(size_t *out_size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned char *page = NULL;
	unsigned long from, to;
	char line[512], mode[8];

	while (maps != NULL && page == NULL && fgets(line, sizeof(line), maps) != NULL) {
		if (strstr(line, "memfd:frag-ledger") == NULL ||
		    sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3 || mode[1] != 'w')
			continue;
		page = (unsigned char *)from;
		*out_size = to - from;
	}
	if (maps != NULL)
		fclose(maps);
	return page;
}

/* It races with whoever counts, as it means to: ThreadSanitizer does not look. */
__attribute__((noinline, no_sanitize_thread)) static void scribble(const struct scribbler *s)
{
	size_t size, head = 128; /* the head is left alone, but by "everything" */
	unsigned char *page = find_page(&size);

	if (page == NULL)
		return;
	if (!strcmp(s->with, "everything"))
		head = 0;
	for (size_t i = head; i < size; i++)
		page[i] = (unsigned char)(s->with[0] == 'o'   ? 0xff
					  : s->with[0] == 'z' ? 0
							      : rand());
	printf("scribbled\n");
	fflush(stdout);
}

static int scribbler_compute(void *state, struct frag_tick *tick)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct scribbler *s = state;

	nanosleep(&pause, NULL);
	if (++s->seen == s->after)
		scribble(s);
	return frag_tick_emit_i64(tick, 0, s->seen);
}

static const struct frag_op_type scribbler = {
	FRAG_OP_TYPE_INIT,
	.name = "scribbler",
	.headline = "Overwrites what its host counts",
	.state_size = sizeof(struct scribbler),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.compute = scribbler_compute,
};
static const struct frag_op_type *const ops[] = {&scribbler};
FRAG_PLUGIN(.name = "scribbler", .version = "1.0.0", FRAG_OPS(ops));
