/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_PAGE_H
#define WRK_PAGE_H

#include <edge/ledger.h>
#include <wire/message.h>

/*
 * A host's ledger as its workerd sees it: the memfd is made here, the host fills it, and it is read
 * here also after the host is gone. The host may write anything into it at any time, so its counts
 * are taken once, when the page has been checked, and nothing that is read later decides where to
 * read.
 */
struct wrk_page {
	int fd;
	struct fragi_ledger ledger;
	struct fw_host_stats stats; /* what the last read found; its rows are owned */
};

/* Makes the memfd (closed on exec). Returns 0 or negative errno. */
int wrk_page_init(struct wrk_page *page);
/*
 * Reads all rows. *out_stats points into page, valid until the next read. Returns 0, -ENOENT (the
 * host has not made the page yet), -EBADMSG (it is no ledger), -ENOMEM.
 */
int wrk_page_read(struct wrk_page *page, struct fw_host_stats *out_stats);
/*
 * What was read last is needed no longer. Many rows give their memory back, and keep their
 * addresses, so that no later read fails for want of memory.
 */
void wrk_page_rest(struct wrk_page *page);
void wrk_page_fini(struct wrk_page *page);

#endif
