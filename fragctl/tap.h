/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TAP_H
#define CTL_TAP_H

#include <fragctl/driver.h>
#include <fragctl/json.h>

/* A tap on a flow: copies of messages that pass, for people who look at them. */
struct ctl_tap {
	uint64_t seq;                       /* of its TAP: that is what TAPPED answers */
	char output[3 * FRAG_NAME_MAX + 3]; /* "fragment1.tx.out" */
	uint64_t number;                    /* of the last message */
};

/*
 * Asks the driver for one, and waits for the answer.
 * - flow: one of its ends, or as much of it as is unique, or "f1.tx.out -> f2.rx.in"
 * - every_ns: between two messages; 0: the least, FW_TAP_MIN_NS
 * - pictures: also the picture in a message
 * Returns CTL_OK, or the exit code, complained.
 */
int ctl_tap_begin(struct ctl_driver *driver, const char *application, const char *flow,
		  int64_t every_ns, bool pictures, bool json, struct ctl_tap *out_tap);
/*
 * Reads a TAPPED of that tap, which any host may have filled.
 * - out_passed: the PASSED within it; freed with fw_message_free
 * - out_dropped: messages that were due after the one before, and dropped on the way
 * Returns false: it holds no such message.
 */
bool ctl_tap_read(struct ctl_tap *tap, const struct fw_message *tapped,
		  struct fw_message **out_passed, uint64_t *out_dropped);
/* Writes "output", "seen", "dropped", "unix_ns" and "message" of the document of fragctl echo. */
void ctl_tap_json(struct ctl_json *json, const struct ctl_tap *tap,
		  const struct fragi_passed *passed, uint64_t dropped);
/* Ends it; what is under way may still come. Does not wait. */
void ctl_tap_end(struct ctl_driver *driver, const struct ctl_tap *tap);

#endif
