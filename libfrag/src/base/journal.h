/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_JOURNAL_H
#define FRAGI_BASE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * Log lines (base/log.h) as entries of systemd's journal, where stderr is connected to it
 * (JOURNAL_STREAM, systemd.exec(5)). The time and the level of a line become those of the entry,
 * its topic and subject become fields: FRAG_TOPIC, FRAG_APPLICATION, FRAG_FRAGMENT, FRAG_OPERATOR.
 * MESSAGE is the line from its topic on.
 */

/*
 * Sends a line, newline included, to the journal. Returns false when stderr is not connected to it
 * or the journal does not take it now: the line is then for the caller to write. Does not block.
 * Any thread.
 */
bool fragi_journal_send(const char *line, size_t size);

extern const char *fragi_journal_socket; /* where journald listens; tests change it */

#endif
