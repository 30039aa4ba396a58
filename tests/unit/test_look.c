// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <dirent.h>

#define RIG_FAIL(...) cr_assert_fail(__VA_ARGS__)
#include "rig_ops.h"

#include <base/look.h>
#include <run/state.h>
#include <sched/tap.h>

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

/* A picture, a value, metadata and more tensors than are shown, a tick. */
static int camera_compute(void *state, struct frag_tick *tick)
{
	static const int64_t picture[] = {600, 800, 3}, row[] = {12};
	const struct frag_dtype byte = {FRAG_DTYPE_UINT, 8, 1}, wide = {FRAG_DTYPE_INT, 32, 1};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor;
	char name[8];

	frag_message_set_value(message, &frag_type_i64, &(int64_t){3}, 8, NULL);
	for (int i = 0; i < 9; i++) {
		if (frag_tensor_create(NULL, i == 1 ? byte : wide, i == 1 ? 3 : 1,
				       i == 1 ? picture : row, &tensor) < 0)
			return -ENOMEM;
		for (int64_t k = 0; i == 1 && k < 600 * 800 * 3; k++)
			((uint8_t *)frag_tensor_writable(tensor))[k] = (uint8_t)(k / 2400 + k % 3);
		snprintf(name, sizeof(name), "t%d", i);
		frag_message_add_tensor(message, name, tensor);
	}
	frag_metadata_set_string(frag_tick_metadata(tick), "who \"me\"", "a\nb");
	return frag_tick_emit(tick, 0, message);
}
static const struct frag_port camera_ports[] = {{.name = "out", .dir = FRAG_OUT}};
TEST_OP(camera, FRAG_PORTS(camera_ports));

static int eater_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;

	return frag_tick_receive(tick, 0, &message);
}
static const struct frag_port eater_ports[] = {{.name = "in", .dir = FRAG_IN}};
TEST_OP(eater, FRAG_PORTS(eater_ports));

TEST_PLUGIN(look, &source_type, &sink_type, &hoarder_type, &camera_type, &eater_type);

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

/* Looks for that long. Returns how long that was at most, and sets how long at least. */
static int64_t look_for(struct rig *rig, int64_t ns, int64_t *out_least_ns)
{
	int64_t begun_ns = fragi_now_ns(), begins_ns;

	fragi_run_look(rig->run, 1);
	begins_ns = fragi_now_ns();
	fragi_run_look(rig->run, 1);
	while (fragi_now_ns() < begun_ns + ns)
		usleep(10000);
	cr_expect_eq(looking_threads(), 1);
	*out_least_ns = fragi_now_ns() - begins_ns;
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

/* Whether the operator was seen so for that many percent of the time. */
static bool is_use(const struct rig *rig, const char *name, enum fragi_use use, uint64_t percent)
{
	return use_of(rig, name, use) * 100 >= sum_of(rig, name) * percent;
}

/* Whether what is seen of busy is what the operator's own stamps say. */
static bool is_busy(const struct rig *rig, const char *name)
{
	uint64_t busy = use_of(rig, name, FRAGI_USE_BUSY), sum = sum_of(rig, name);
	const struct fragi_hist *compute = &row_of(rig, name)->compute;
	const uint64_t ns = fragi_hist_total(
		compute, (struct fragi_hist_buckets){compute->bucket, 8 * FRAGI_HIST_GROUP});

	return busy + sum / 6 >= ns && busy <= ns + sum / 6;
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
	int64_t looked_ns, least_ns;

	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		rig_prepare_good(&rig, &look_plugin, schedulers[s].text);
		rig_start(&rig);
		RIG_AWAIT(noted(0) > 2 && noted(1) == 1 && noted(2) == 1);
		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
			cr_expect_eq(sum_of(&rig, names[i]), 0, "nobody has looked");
		looked_ns = look_for(&rig, 300 * MS, &least_ns);
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
		cr_expect_geq(sum_of(&rig, "rx"), (uint64_t)least_ns);
		if (schedulers[s].tx == FRAGI_USE_ROOM) {
			cr_expect_geq(atomic_load(&rig_row(&rig, 0)->room_ns), 200 * MS);
		}
		cr_expect_eq(atomic_load(&rig_row(&rig, 1)->input_ns), sum_of(&rig, "quiet"));
		cr_expect_eq(atomic_load(&rig_row(&rig, 1)->full_ns), 0);
		end(&rig);
	}
}

/* A run in which the thread gets no processor shows other shares: then there is another one. */
#define RUNS 20

/* 3 ms of 10. */
static bool parts_are_seen(void)
{
	struct rig rig;
	int64_t least_ns;
	bool are_seen;

	rig_prepare_good(&rig, &look_plugin,
			 APP "scheduler: {type: event_based, worker_thread_number: 1}\n"
			     "operators:\n"
			     "  tx: {type: source, parameters: {work_us: 3000},\n"
			     "    conditions: [{type: periodic, recess_period: 10ms}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx.out -> rx.in]\n");
	rig_start(&rig);
	look_for(&rig, 600 * MS, &least_ns);
	are_seen = is_busy(&rig, "tx") && is_use(&rig, "rx", FRAGI_USE_INPUT, 90) &&
		   use_of(&rig, "tx", FRAGI_USE_BUSY) + use_of(&rig, "tx", FRAGI_USE_TIME) >=
			   sum_of(&rig, "tx") * 9 / 10;
	end(&rig);
	return are_seen;
}

static bool a_shared_thread_is_seen(void)
{
	struct rig rig;
	int64_t least_ns;
	bool is_seen;

	rig_prepare_good(&rig, &look_plugin,
			 APP "scheduler: {type: event_based, worker_thread_number: 1}\n"
			     "operators:\n"
			     "  a: {type: source, parameters: {work_us: 2000}}\n"
			     "  b: {type: source, parameters: {work_us: 2000}}\n"
			     "  rx: {type: sink, parameters: {slot: 1}}\n"
			     "  ry: {type: sink, parameters: {slot: 2}}\n"
			     "flows: [a.out -> rx.in, b.out -> ry.in]\n");
	rig_start(&rig);
	look_for(&rig, 600 * MS, &least_ns);
	is_seen = is_busy(&rig, "a") && is_busy(&rig, "b") &&
		  is_use(&rig, "a", FRAGI_USE_THREAD, 15) &&
		  is_use(&rig, "b", FRAGI_USE_THREAD, 15);
	end(&rig);
	return is_seen;
}

Test(look, shares_of_time_are_seen)
{
	bool parts = false, shared = false;

	for (int i = 0; i < RUNS && !(parts && shared); i++) {
		parts = parts || parts_are_seen();
		shared = shared || a_shared_thread_is_seen();
	}
	cr_expect(parts);
	cr_expect(shared);
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

/* Taps on flows. */

static struct fragi_passed last;
static char last_value[64], last_metadata[256], last_text[256], last_name[32];
static uint8_t last_pixels[FRAGI_PASSED_PIXELS_MAX];
static uint32_t passed_count;
static bool takes = true;

static bool take(void *arg, uint32_t id, const struct fragi_passed *passed)
{
	(void)arg;
	if (!takes)
		return false;
	cr_expect_gt(passed->number, last.number);
	cr_expect_geq(passed->seen, passed->number);
	last = *passed;
	cr_expect_eq(id, 5);
	snprintf(last_value, sizeof(last_value), "%s %s", passed->type, passed->value);
	snprintf(last_metadata, sizeof(last_metadata), "%s", passed->metadata);
	if (passed->tensor_count > 1) {
		snprintf(last_name, sizeof(last_name), "%s", passed->tensors[1].name);
		snprintf(last_text, sizeof(last_text), "%s", passed->tensors[1].text);
	}
	memcpy(last_pixels, passed->pixels != NULL ? passed->pixels : "", passed->pixel_bytes);
	passed_count++;
	return true;
}

static void begin_taps(struct rig *rig, const char *text)
{
	rig_prepare_good(rig, &look_plugin, text);
	rig_start(rig);
	last = (struct fragi_passed){0};
	passed_count = 0;
	takes = true;
}

static const struct fragi_exec *exec_of(const struct rig *rig, uint32_t op)
{
	return rig->run->fragments[0].fragment->ops[op]->exec;
}

static const struct fragi_run_tap_wish tx_out = {
	.id = 5, .every_ns = 10 * MS, .for_ns = 10000ll * MS};

static const char *const tapped[] = {
	APP "scheduler: {type: event_based, worker_thread_number: 2}\n"
	    "operators: {tx: {type: source}, rx: {type: sink}}\n"
	    "flows: [tx.out -> rx.in]\n",
	APP "scheduler: {type: greedy}\n"
	    "operators: {tx: {type: source}, rx: {type: sink}}\n"
	    "flows: [tx.out -> rx.in]\n",
};

/* Some messages are copied, all are counted; and when it has ended nothing of it is left. */
Test(look, a_tap_copies_some_messages_and_leaves_nothing)
{
	struct fragi_run_tap_wish wish = tx_out;
	struct rig rig;
	uint32_t before;
	uint64_t sent;

	for (size_t s = 0; s < FRAG_COUNT_OF(tapped); s++) {
		begin_taps(&rig, tapped[s]);
		RIG_AWAIT(noted(0) > 10);
		cr_expect_eq(exec_of(&rig, 0)->tick.attaches, 0);
		cr_expect_not(fragi_run_passed(rig.run, take, NULL));
		cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
		RIG_AWAIT((fragi_run_passed(rig.run, take, NULL), passed_count >= 5));
		cr_expect_str_neq(last_value, "");
		cr_expect_eq(strncmp(last_value, "i64 ", 4), 0, "%s", last_value);
		cr_expect_eq(last.tensor_count, 0);
		cr_expect_gt(last.seen, 5 * last.number, "of thousands a second");
		cr_expect_geq(last.number, passed_count);
		/* Nobody takes what is copied: the flow goes on, and what is due is counted. */
		for (int i = 0; i < RUNS && last.number <= passed_count; i++) {
			takes = false;
			sent = noted(0);
			usleep(100000);
			cr_expect(fragi_run_passed(rig.run, take, NULL));
			RIG_AWAIT(noted(0) > sent + 100);
			takes = true;
			before = passed_count;
			RIG_AWAIT((fragi_run_passed(rig.run, take, NULL),
				   passed_count >= before + 2));
		}
		cr_expect_gt(last.number, passed_count);
		wish.for_ns = 0;
		cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
		wish.for_ns = tx_out.for_ns;
		RIG_AWAIT(fragi_tap_is_free(rig.run->taps[0].tap));
		cr_expect_not(fragi_run_passed(rig.run, take, NULL));
		sent = noted(0);
		RIG_AWAIT(noted(0) > sent + 10);
		cr_expect_eq(exec_of(&rig, 0)->tick.attaches, 0, "its emits are as before");
		cr_expect_not(atomic_load(&exec_of(&rig, 0)->needs_full_check));
		cr_expect_null(exec_of(&rig, 0)->taps);
		end(&rig);
	}
}

Test(look, a_tap_shows_what_is_in_a_message)
{
	struct fragi_run_tap_wish wish = tx_out;
	struct rig rig;

	wish.pictures = true;
	begin_taps(&rig,
		   APP "operators:\n"
		       "  tx: {type: camera, conditions: [{type: periodic, recess_period: 5ms}]}\n"
		       "  rx: {type: eater}\n"
		       "flows: [tx.out -> rx.in]\n");
	cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
	RIG_AWAIT((fragi_run_passed(rig.run, take, NULL), passed_count >= 2));
	cr_expect_str_eq(last_metadata, "{\"who \\\"me\\\"\": \"a\\u000ab\"}");
	cr_expect_eq(last.tensor_count, 8);
	cr_expect_eq(last.tensors_left_out, 1);
	cr_expect_str_eq(last_name, "t1");
	cr_expect_str_eq(last_text,
			 "{\"dtype\": \"uint8\", \"shape\": [600, 800, 3], \"device\": "
			 "\"cpu\", \"data\": [0, 1, 2, 0, 1, 2, 0, 1, \"... 1440000 in all\"]}");
	cr_expect_str_eq(last.picture_of, "t1");
	cr_assert_eq(last.step, 4);
	cr_expect_eq(last.width, 200);
	cr_expect_eq(last.height, 150);
	cr_expect_eq(last.channels, 3);
	cr_assert_eq(last.pixel_bytes, 200 * 150 * 3);
	for (uint32_t i = 0; i < last.pixel_bytes; i++)
		if (last_pixels[i] != (uint8_t)(i / 600 * 4 + i % 3))
			cr_assert_fail("byte %u is %u", i, last_pixels[i]);
	wish.pictures = false;
	wish.id = 5;
	end(&rig);
}

Test(look, taps_are_bounded_and_end_by_themselves)
{
	struct fragi_run_tap_wish wish = tx_out;
	struct rig rig;

	begin_taps(&rig, tapped[0]);
	wish.fragment = 1;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EINVAL);
	wish = tx_out;
	wish.op = 2;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EINVAL);
	wish.op = 1;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EINVAL, "an input");
	wish.op = 0;
	wish.port = 1;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EINVAL);
	wish = tx_out;
	wish.id = 0;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EINVAL);
	wish.for_ns = 50 * MS;
	for (wish.id = 1; wish.id <= FRAGI_RUN_TAPS_MAX; wish.id++)
		cr_expect_eq(fragi_run_tap(rig.run, &wish), 0);
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -EBUSY);
	wish.id = 1;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), 0, "it is there already");
	takes = false;
	usleep(60000);
	cr_expect_not(fragi_run_passed(rig.run, take, NULL), "nobody has wanted them any more");
	RIG_AWAIT(fragi_tap_is_free(rig.run->taps[FRAGI_RUN_TAPS_MAX - 1].tap));
	wish = tx_out;
	cr_expect_eq(fragi_run_tap(rig.run, &wish), 0);
	takes = true;
	RIG_AWAIT((fragi_run_passed(rig.run, take, NULL), passed_count >= 2));
	end(&rig); /* while it is wanted */
	/* of an operator that has ended */
	begin_taps(&rig,
		   APP "operators: {tx: {type: source, parameters: {count: 3}}, rx: {type: sink}}\n"
		       "flows: [tx.out -> rx.in]\n");
	rig_wait(&rig, rig_is_done, RIG_LIMIT_NS);
	cr_expect_eq(fragi_run_tap(rig.run, &wish), -ESRCH);
	rig_end(&rig);
	notes_clear();
}
