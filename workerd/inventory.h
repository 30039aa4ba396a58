/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_INVENTORY_H
#define WRK_INVENTORY_H

#include <base/amounts.h>
#include <base/flags.h>
#include <wire/message.h>
#include <workerd/core/core.h>
#include <workerd/gpu_share.h>

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
	char mig[WRK_MIG_TEXT_MAX];   /* MIG instances, "1g.10gb=4,3g.40gb=1"; empty: none */
	bool asks_gpus; /* the driver of NVIDIA knows more of its GPUs than proc shows */
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
 * Fills in what was not given, GPUs as the driver of NVIDIA shows them in proc: without their
 * memory.
 * - proc, dev, groups: "/proc", "/dev", "/sys/fs/cgroup"
 */
void wrk_inventory_find(struct wrk_inventory *inventory, const char *proc, const char *dev,
			const char *groups);
/* What that driver said when it was asked (gpus.h), where asks_gpus. */
void wrk_inventory_take_gpus(struct wrk_inventory *inventory, uint32_t count, uint64_t bytes,
			     const char *mig);
/*
 * Asks it, and waits for it.
 * - program: fraghost
 * Returns 0; negative errno with the reason, and nothing has changed.
 */
int wrk_inventory_ask_gpus(struct wrk_inventory *inventory, const char *program,
			   struct frag_err *err);
/* What HELLO says of it; borrows its texts. */
void wrk_inventory_offer(const struct wrk_inventory *inventory, struct wrk_config *out);
/* Writes "cpu 8, gpu 1, memory 16 GiB, ..." into out. */
void wrk_inventory_text(const struct wrk_inventory *inventory, char *out, size_t size);
void wrk_inventory_fini(struct wrk_inventory *inventory);

#endif
