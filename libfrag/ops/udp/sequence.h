/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UDP_SEQUENCE_H
#define UDP_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Which packets of a numbered stream are missing, late or repeated. The window of the last 64
 * numbers is a bitmap, as that of RFC 4303, appendix A2: a number counts as lost when it leaves the
 * window without having come. Numbers come from the network and may be anything: one that is behind
 * the window, or ahead by more than UDP_SEQUENCE_JUMP, is stray, unless the next packet follows it.
 * Then the sender began anew (RFC 3550, appendix A.1).
 */
#define UDP_SEQUENCE_JUMP (1u << 20)

struct udp_sequence {
	bool started;
	uint64_t highest;    /* number taken */
	uint64_t seen, owed; /* bit i: number highest - i has come; counts as lost if it does not */
	bool has_stray;      /* the last packet was stray */
	uint64_t after_stray; /* the number that follows it */
	int64_t lost, late, repeated, stray, restarts;
};

enum udp_verdict {
	UDP_NEW,
	UDP_LATE, /* comes after a higher number */
	UDP_REPEATED,
	UDP_STRAY,
};

enum udp_verdict udp_sequence_take(struct udp_sequence *s, uint64_t number);

/* Returns what is lost, including the numbers of the window that have not come. */
int64_t udp_sequence_lost(const struct udp_sequence *s);

#endif
