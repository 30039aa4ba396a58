/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TRACE_H
#define CTL_TRACE_H

#include <stdio.h>

#include <base/trace.h>

/*
 * The trace of an application: what its hosts have sent, put together. Each process of a host is
 * one of its own. All times are placed on the clock of the host that was heard first, with what
 * the hosts know of each other's clocks at that time (docs/TIME.md).
 */
struct ctl_trace;

struct ctl_trace_sums {
	uint32_t hosts;
	uint64_t ticks, messages; /* that are in the trace, the latter with both ends */
	uint64_t backwards;       /* messages without an arrow, which would lead back in time */
	uint64_t lost_records;    /* overwritten in a host before they were sent */
	uint64_t lost_chunks;     /* dropped on the way */
	/* of hosts that have ended: records behind the last chunk that has come */
	uint64_t left_records;
	uint32_t open_hosts;   /* of which no last chunk has come */
	uint64_t cut;          /* ticks that made room for later ones */
	uint64_t unmatched;    /* messages without an arrow, because there are too many */
	int64_t error_ns;      /* between the clocks of two hosts at most */
	uint32_t unsure_hosts; /* whose clock was never compared: placed by their system clock */
};

/* NULL: there is no memory. */
struct ctl_trace *ctl_trace_create(void);
void ctl_trace_destroy(struct ctl_trace *trace); /* NULL is accepted */
/* Takes a chunk of a host. Any bytes are accepted. Returns 0, -EBADMSG or -ENOMEM. */
int ctl_trace_take(struct ctl_trace *trace, const uint8_t *bytes, uint32_t size);
/* Once, when nothing more comes: matches messages. Returns 0 or -ENOMEM. */
int ctl_trace_join(struct ctl_trace *trace);
void ctl_trace_sums(const struct ctl_trace *trace, struct ctl_trace_sums *out);
/* Whether a host was followed by another process and had not said that it ends. */
bool ctl_trace_has_crash(const struct ctl_trace *trace);
/* After ctl_trace_join. */
void ctl_trace_write(const struct ctl_trace *trace, FILE *out);

struct ctl_trace_wish {
	const char *application, *file;
	int64_t for_ns;  /* 0: until the application ends */
	bool on_failure; /* until something fails; without that nothing is written */
	bool is_quiet;
	/* of `fragctl run`: its summary has stdout; ready_fd gets a byte once it is under way */
	bool is_of_run;
	int ready_fd;
};

/* Traces an application of the driver at that address. Returns an exit code, complained. */
int ctl_trace_run(const struct ctl_trace_wish *wish, const char *address);

#endif
