/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_INVENTORY_H
#define WRK_INVENTORY_H

#include <base/amounts.h>
#include <base/flags.h>
#include <wire/message.h>

/*
 * What this worker offers to fragments: what it may use of its machine, or what --inventory says
 * in its place, and its labels. Two workers of one machine each offer all of it, unless
 * --inventory divides it.
 */
struct wrk_inventory {
	int64_t has[FRAGI_AMOUNTS];
	bool is_given[FRAGI_AMOUNTS];
	const char **labels; /* "key=value"; owned, as are the texts */
	uint32_t label_count;
	char *texts;
	char limited[FW_LIMITED_MAX]; /* what it offers less of than its machine has, and why */
};

/*
 * Reads the flags.
 * - amounts: each "cpu=8,memory=16Gi"
 * - labels: each "zone=or1,camera=left"
 * Returns 0; -EINVAL with a sentence; -ENOMEM. fini in every case.
 */
int wrk_inventory_parse(struct wrk_inventory *inventory, const struct fragi_texts *amounts,
			const struct fragi_texts *labels, struct frag_err *err);
/*
 * Fills in what was not given. Where the driver of NVIDIA is, it starts fraghost, which asks the
 * driver for GPUs and their memory.
 * - proc, dev, groups: "/proc", "/dev", "/sys/fs/cgroup"
 * - program: fraghost
 * Returns 0; negative errno with the reason when that could not be asked: GPUs are then counted by
 * what the driver shows in proc, and their memory is not known.
 */
int wrk_inventory_find(struct wrk_inventory *inventory, const char *proc, const char *dev,
		       const char *groups, const char *program, struct frag_err *err);
/* Writes "cpu 8, gpu 1, memory 16 GiB, ..." into out. */
void wrk_inventory_text(const struct wrk_inventory *inventory, char *out, size_t size);
void wrk_inventory_fini(struct wrk_inventory *inventory);

#endif
