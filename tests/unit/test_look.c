/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>

#define RIG_FAIL(...) cr_assert_fail(__VA_ARGS__)
#include "rig_ops.h"

#include <base/look.h>

/* What is counted of operators while somebody looks: one of them in each state. */

#define MS 1000000
#define APP "frag: 1\napplication: app\n"

struct hoarder {
	struct frag_resource *pool;
};
static const struct frag_param hoarder_params[] = {FRAG_PARAM_RESOURCE(struct hoarder, pool, NULL)};

static int hoarder_compute(void *state, struct frag_tick *tick)
{
	const struct hoarder *s = state;
	void *memory; /* the pool ends with it */

	(void)tick;
	return frag_alloc(s->pool, 64, &memory);
}
TEST_OP(hoarder, FRAG_PARAMS(hoarder_params), .state_size = sizeof(struct hoarder));

TEST_PLUGIN(look, &source_type, &sink_type, &hoarder_type);

static struct fragi_op_row *row_of(const struct rig *rig, const char *name)
{
	size_t count;
	const struct fragi_fragment_info *info = fragi_run_fragments(rig->run, &count);

	for (uint32_t i = 0; i < info->op_count; i++)
		if (strcmp(info->ops[i].name, name) == 0)
			return &fragi_run_ledger(rig->run)->ops[i];
	cr_assert_fail("no %s", name);
	return NULL;
}

static uint64_t use_of(const struct rig *rig, const char *name, enum fragi_use use)
{
	return atomic_load(&row_of(rig, name)->use_busy + use);
}

static uint64_t sum_of(const struct rig *rig, const char *name)
{
	uint64_t sum = 0;

	for (int use = 0; use < FRAGI_USES; use++)
		sum += use_of(rig, name, (enum fragi_use)use);
	return sum;
}

static int looking_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[300], name[32] = "";
	int count = 0;

	while ((entry = readdir(folder)) != NULL) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		count +=
			fgets(name, sizeof(name), file) != NULL && strcmp(name, "frag-look\n") == 0;
		fclose(file);
	}
	closedir(folder);
	return count;
}

/* Looks for that long. Returns how long it really was. */
static int64_t look_for(struct rig *rig, int64_t ns)
{
	int64_t begun_ns = fragi_now_ns();

	fragi_run_look(rig->run, 1);
	fragi_run_look(rig->run, 1);
	while (fragi_now_ns() < begun_ns + ns)
		usleep(10000);
	cr_expect_eq(looking_threads(), 1);
	fragi_run_look(rig->run, 0);
	fragi_run_look(rig->run, 0);
	cr_expect_eq(looking_threads(), 0);
	return fragi_now_ns() - begun_ns;
}

static void end(struct rig *rig)
{
	fragi_run_halt(rig->run);
	rig_wait(rig, rig_is_done, RIG_LIMIT_NS);
	rig_end(rig);
	notes_clear();
}

/* At least that many percent of the time. */
static void expect_use(const struct rig *rig, const char *name, enum fragi_use use,
		       uint64_t percent)
{
	uint64_t sum = sum_of(rig, name);

	cr_expect_geq(use_of(rig, name, use) * 100, sum * percent, "%s: use %d is %llu of %llu ns",
		      name, use, (unsigned long long)use_of(rig, name, use),
		      (unsigned long long)sum);
}

/* What is seen of busy is what the operator's own stamps say, so far as a busy machine lets. */
static void expect_busy(const struct rig *rig, const char *name)
{
	uint64_t busy = use_of(rig, name, FRAGI_USE_BUSY), sum = sum_of(rig, name);
	struct fragi_job job;

	fragi_op_row_job(row_of(rig, name), &job);
	cr_expect_geq(busy + sum / 6, job.time_ns);
	cr_expect_leq(busy, job.time_ns + sum / 6);
}

#define STATES                                                                                     \
	"resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 2}}\n"            \
	"operators:\n"                                                                             \
	"  tx: {type: source}\n"                                                                   \
	"  rx: {type: sink, parameters: {work_us: 3000}}\n"                                        \
	"  clock: {type: source, conditions: [{type: periodic, recess_period: 100s}]}\n"           \
	"  quiet: {type: sink, parameters: {slot: 1}}\n"                                           \
	"  hoarder: {type: hoarder, parameters: {pool: $pool},\n"                                  \
	"    conditions: [{type: memory_available, allocator: $pool, min_blocks: 1}]}\n"           \
	"  short: {type: source, parameters: {count: 1}}\n"                                        \
	"  last: {type: sink, parameters: {slot: 2}}\n"                                            \
	"flows:\n"                                                                                 \
	"  - {from: tx.out, to: rx.in, capacity: 1}\n"                                             \
	"  - {from: clock.out, to: quiet.in, capacity: 1}\n"                                       \
	"  - {from: short.out, to: last.in, capacity: 1}\n"

static const struct {
	const char *text;
	enum fragi_use tx; /* greedy has no thread for it while rx computes */
} schedulers[] = {
	{APP "scheduler: {type: greedy}\n" STATES, FRAGI_USE_THREAD},
	{APP "scheduler: {type: event_based, worker_thread_number: 3}\n" STATES, FRAGI_USE_ROOM},
	{APP "scheduler: {type: event_based, worker_thread_number: 2}\n"
	     "thread_pools: {p: {initial_size: 2, add: [{operators: [tx, rx, quiet]}]}}\n" STATES,
	 FRAGI_USE_ROOM},
};

Test(look, each_operator_is_seen_in_its_state)
{
	static const char *const names[] = {"tx",      "rx",    "clock", "quiet",
					    "hoarder", "short", "last"};
	struct rig rig;
	int64_t looked_ns;

	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		rig_prepare_good(&rig, &look_plugin, schedulers[s].text);
		rig_start(&rig);
		RIG_AWAIT(noted(0) > 2 && noted(1) == 1 && noted(2) == 1);
		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
			cr_expect_eq(sum_of(&rig, names[i]), 0, "nobody has looked");
		looked_ns = look_for(&rig, 300 * MS);
		expect_use(&rig, "rx", FRAGI_USE_BUSY, 80);
		expect_use(&rig, "tx", schedulers[s].tx, 75);
		expect_use(&rig, "clock", FRAGI_USE_TIME, 100);
		expect_use(&rig, "quiet", FRAGI_USE_INPUT, 100);
		expect_use(&rig, "hoarder", FRAGI_USE_MEMORY, 100);
		expect_use(&rig, "short", FRAGI_USE_SUSPENDED, 100);
		expect_use(&rig, "last", FRAGI_USE_SUSPENDED, 100);
		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
			cr_expect_eq(sum_of(&rig, names[i]), sum_of(&rig, "rx"), "%s", names[i]);
		cr_expect_leq(sum_of(&rig, "rx"), (uint64_t)looked_ns);
		cr_expect_geq(sum_of(&rig, "rx"), 200 * MS);
		if (schedulers[s].tx == FRAGI_USE_ROOM) {
			cr_expect_geq(atomic_load(&rig_row(&rig, 0)->room_ns), 200 * MS);
		}
		cr_expect_eq(atomic_load(&rig_row(&rig, 1)->input_ns), sum_of(&rig, "quiet"));
		cr_expect_eq(atomic_load(&rig_row(&rig, 1)->full_ns), 0);
		end(&rig);
	}
}

/* Rates that differ: 3 ms of 10, and two that share a thread. */
Test(look, shares_of_time_are_seen)
{
	struct rig rig;

	rig_prepare_good(&rig, &look_plugin,
			 APP "scheduler: {type: event_based, worker_thread_number: 1}\n"
			     "operators:\n"
			     "  tx: {type: source, parameters: {work_us: 3000},\n"
			     "    conditions: [{type: periodic, recess_period: 10ms}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx.out -> rx.in]\n");
	rig_start(&rig);
	look_for(&rig, 600 * MS);
	expect_busy(&rig, "tx");
	cr_expect_geq(use_of(&rig, "tx", FRAGI_USE_BUSY) + use_of(&rig, "tx", FRAGI_USE_TIME),
		      sum_of(&rig, "tx") * 9 / 10);
	expect_use(&rig, "rx", FRAGI_USE_INPUT, 90);
	end(&rig);

	rig_prepare_good(&rig, &look_plugin,
			 APP "scheduler: {type: event_based, worker_thread_number: 1}\n"
			     "operators:\n"
			     "  a: {type: source, parameters: {work_us: 2000}}\n"
			     "  b: {type: source, parameters: {work_us: 2000}}\n"
			     "  rx: {type: sink, parameters: {slot: 1}}\n"
			     "  ry: {type: sink, parameters: {slot: 2}}\n"
			     "flows: [a.out -> rx.in, b.out -> ry.in]\n");
	rig_start(&rig);
	look_for(&rig, 600 * MS);
	expect_busy(&rig, "a");
	expect_busy(&rig, "b");
	expect_use(&rig, "a", FRAGI_USE_THREAD, 15);
	expect_use(&rig, "b", FRAGI_USE_THREAD, 15);
	end(&rig);
}

/* Hundreds of hosts that look would take all cores for it. */
Test(look, one_of_very_many_hosts_looks_less_often)
{
	int64_t begun_ns;
	struct rig rig;

	rig_prepare_good(&rig, &look_plugin, schedulers[1].text);
	rig_start(&rig);
	begun_ns = fragi_now_ns();
	fragi_run_look(rig.run, 100000);
	usleep(30000);
	cr_expect(sum_of(&rig, "tx") == 0 || fragi_now_ns() - begun_ns > 70 * MS);
	fragi_run_look(rig.run, 1);
	usleep(300000);
	cr_expect_gt(sum_of(&rig, "tx"), 0);
	end(&rig);
}

/* A run ends while somebody looks. */
Test(look, an_end_ends_the_look)
{
	struct rig rig;

	rig_prepare_good(&rig, &look_plugin, schedulers[1].text);
	rig_start(&rig);
	fragi_run_look(rig.run, 1);
	end(&rig);
	cr_expect_eq(looking_threads(), 0);
}
