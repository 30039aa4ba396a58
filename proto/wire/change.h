/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_CHANGE_H
#define FW_CHANGE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bodies of messages (wire/message.h) about applications that run: parameters and graphs that
 * change, and what was written.
 */

/* A dynamic parameter changes while its application runs. */
struct fw_set {
	const char *name; /* of the application */
	const char *text; /* FRAGMENT.OPERATOR.PARAMETER=VALUE */
};
struct fw_host_set {
	uint64_t number; /* counts up in a run; the answer has the same */
	const char *text;
	const char *who; /* asks for it: "user alice" */
};

/*
 * What a host, or the operators in it, have written. A line that frag has logged has its level; all
 * others count as info.
 */
struct fw_line {
	uint64_t number;    /* of LOGS: counts up over all applications; gaps: lines of others */
	int64_t unix_ns;    /* of LOGS: when it came to the driver */
	uint32_t level;     /* enum fragi_log_level */
	const char *worker; /* of LOGS: its name; empty: the driver's own line */
	const char *fragment, *op; /* that it is about; empty: it does not say */
	const char *text;          /* without time, level and application */
};
/* Of one host; `run` and `host` of the message say of which. */
struct fw_host_lines {
	struct fw_line *rows;
	uint32_t count;
	uint64_t left_out; /* before them, because they were too many */
};
struct fw_watch_logs {
	const char *name;          /* of the application */
	const char *fragment, *op; /* only lines about it; empty: all */
	uint64_t after;            /* the number of the last line that is known; 0: none */
	bool follow;               /* later ones are sent as they come */
};
struct fw_logs {
	struct fw_line *rows; /* oldest first */
	uint32_t count;
	uint64_t last; /* number of the last line that was looked at, for `after` */
};

/* A library of a fragment is replaced while its application runs. ANSWER comes when it runs. */
#define FW_LIBRARY_MAX 255 /* bytes of its name */
struct fw_swap {
	const char *name; /* of the application */
	const char *fragment;
	const char *library;
	const char *replaces; /* the old one; empty: the only one of the fragment */
	int64_t probation_ns; /* so long after it runs a failure brings the old one back */
};

/* A changed graph for an application that runs. */
struct fw_apply {
	const char *name;
	const void *source; /* fragi_source_pack */
	uint32_t source_bytes;
	bool only_shows; /* nothing changes */
};
enum fw_effect {
	FW_EFFECT_NONE,
	FW_EFFECT_SET,      /* a parameter that may change while it runs: SET does so */
	FW_EFFECT_FRAGMENT, /* its host is started again */
	FW_EFFECT_APPLICATION,
};
struct fw_change {
	enum fw_effect effect;
	const char *what; /* "left.dial.value: 1 -> 7" */
	const char *set;  /* of SET: "left.dial.value=7" */
};
/* `run` of the message: that which runs, or of a new one if the application starts anew */
struct fw_changes {
	struct fw_change *rows;
	uint32_t count, more;  /* more: that there was no room for */
	enum fw_effect effect; /* the largest */
	const char *restarts;  /* hosts that are started again: "left; right" */
	const char *remark;    /* as of struct fw_answer */
};

#endif
