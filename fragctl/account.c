/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/policy.h>
#include <base/stamp.h>
#include <fragctl/account.h>
#include <track/account.h>

static int copy_fragments(struct ctl_account *account, const struct fragi_fragment_info *infos,
			  size_t count)
{
	struct fragi_arena *arena = &account->arena;
	struct fragi_summary_operator *ops;

	account->fragments = fragi_arena_alloc(arena, (count + 1) * sizeof(*account->fragments));
	if (account->fragments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		ops = fragi_arena_alloc(arena, (infos[i].op_count + 1) * sizeof(*ops));
		if (ops == NULL)
			return -ENOMEM;
		for (size_t j = 0; j < infos[i].op_count; j++) {
			ops[j].name = fragi_arena_strdup(arena, infos[i].ops[j].name);
			ops[j].type = fragi_arena_strdup(arena, infos[i].ops[j].type);
		}
		account->fragments[i] = (struct fragi_summary_fragment){
			.name = fragi_arena_strdup(arena, infos[i].name),
			.host_pid = getpid(),
			.epoch = 1,
			.operators = ops,
			.operator_count = infos[i].op_count,
		};
	}
	account->fragment_count = count;
	return 0;
}

static int copy_flows(struct ctl_account *account, const struct fragi_fragment_info *infos,
		      const struct fragi_flow_info *flows, size_t count)
{
	char end[3 * FRAG_NAME_MAX + 3];

	account->flows = fragi_arena_alloc(&account->arena, (count + 1) * sizeof(*account->flows));
	if (account->flows == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		account->flows[i] = (struct fragi_summary_flow){
			.from = fragi_arena_strdup(
				&account->arena,
				fragi_flow_from(infos, &flows[i], end, sizeof(end))),
			.to = fragi_arena_strdup(&account->arena,
						 fragi_flow_to(infos, &flows[i], end, sizeof(end))),
			.edge = "inproc",
			.capacity = flows[i].capacity,
			.policy = fragi_policy(flows[i].policy)->name,
		};
	account->flow_count = count;
	return 0;
}

int ctl_account_open(struct ctl_account *account, const struct fragi_run *run, int ledger_fd)
{
	size_t fragment_count, flow_count, op_count = 0;
	const struct fragi_fragment_info *infos = fragi_run_fragments(run, &fragment_count);
	const struct fragi_flow_info *flows = fragi_run_flows(run, &flow_count);
	int r = fragi_ledger_open(&account->ledger, ledger_fd);

	if (r == 0)
		r = copy_fragments(account, infos, fragment_count);
	if (r == 0)
		r = copy_flows(account, infos, flows, flow_count);
	for (size_t i = 0; i < fragment_count; i++)
		op_count += infos[i].op_count;
	if (r == 0 && (account->ledger.head->op_count < op_count ||
		       account->ledger.head->flow_count < flow_count))
		r = -EBADMSG;
	return r;
}

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_acquire);
}

void ctl_account_totals(const struct ctl_account *account, uint64_t *out_sent,
			uint64_t *out_delivered)
{
	*out_sent = *out_delivered = 0;
	for (size_t i = 0; i < account->flow_count; i++) {
		*out_delivered += load(&account->ledger.flows[i].delivered);
		*out_sent += load(&account->ledger.flows[i].sent);
	}
}

static void read_flow(const struct fragi_flow_row *row, uint32_t capacity,
		      struct fragi_summary_flow *flow)
{
	struct fragi_flow_stats stats;

	fragi_flow_row_read(row, &stats);
	fragi_account_inner(&(struct fragi_account_end){&stats, true, true}, capacity, flow);
}

static const char *state_name(const struct fragi_op_row *rows, size_t count,
			      enum fragi_summary_result result)
{
	for (size_t i = 0; i < count; i++)
		if (load(&rows[i].state) == FRAGI_OP_FAILED)
			return "failed";
	return result == FRAGI_SUMMARY_DONE ? "done" : "stopped";
}

void ctl_account_read(struct ctl_account *account, struct fragi_summary *out_summary)
{
	int64_t now_ns = fragi_now_ns(), first_ns = INT64_MAX, ns;
	const struct fragi_op_row *row = account->ledger.ops;
	struct fragi_summary_operator *op;

	for (size_t i = 0; i < account->fragment_count; i++) {
		struct fragi_summary_fragment *fragment = &account->fragments[i];

		fragment->state = state_name(row, fragment->operator_count, out_summary->result);
		for (size_t j = 0; j < fragment->operator_count; j++, row++) {
			op = (struct fragi_summary_operator *)(uintptr_t)&fragment->operators[j];
			op->ticks = load(&row->ticks);
			fragi_hist_read(&row->compute, &op->compute);
		}
	}
	for (size_t i = 0; i < account->flow_count; i++) {
		read_flow(&account->ledger.flows[i], account->flows[i].capacity,
			  &account->flows[i]);
		ns = (int64_t)load(&account->ledger.flows[i].first_ns);
		if (ns > 0 && ns < first_ns)
			first_ns = ns;
	}
	out_summary->started_unix_ns = account->started_unix_ns;
	out_summary->first_message_ns = first_ns != INT64_MAX ? first_ns - account->started_ns : 0;
	out_summary->duration_ns = account->started_ns > 0 ? now_ns - account->started_ns : 0;
	out_summary->shutdown_ns = account->end_begun_ns > 0 ? now_ns - account->end_begun_ns : 0;
	out_summary->fragments = account->fragments;
	out_summary->fragment_count = account->fragment_count;
	out_summary->flows = account->flows;
	out_summary->flow_count = account->flow_count;
}

void ctl_account_close(struct ctl_account *account)
{
	fragi_ledger_close(&account->ledger);
	fragi_arena_fini(&account->arena);
	memset(account, 0, sizeof(*account));
}
