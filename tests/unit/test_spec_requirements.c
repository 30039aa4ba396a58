// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "unit/graph_texts.h"

#define HEAD "frag: 1\napplication: app\nfragments:\n"
#define OPS "operators: {o: {type: t}}"

Test(spec_requirements, all_of_them_are_read)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		HEAD "  f1: {" OPS
		     ", requirements: {cpu: 2.5, cpuLimit: 4, gpu: 0.0001, memory: 1Gi, "
		     "memoryLimit: 1GB, sharedMemory: 64Mi, gpuMemory: 8G, gpuThreads: 25%}}\n"
		     "  f2: {" OPS
		     ", requirements: {labels: {zone: or1, slot: 3}, near: f1, apart: [f3]}}\n"
		     "  f3: {" OPS ", requirements: {}}\n"
		     "  f4: {" OPS ", requirements: {mig: 1g.10gb, gpuMemoryLimit: 9Gi}}\n"});
	const struct fragi_spec_requirements *f1 = &spec->fragments[0].requirements,
					     *f2 = &spec->fragments[1].requirements,
					     *f3 = &spec->fragments[2].requirements;

	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_CPU], 2500);
	cr_expect(f1->gives_cpu);
	cr_expect_eq(f1->limit[FRAGI_AMOUNT_CPU], 4000);
	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_GPU], 1, "a part of a thousandth is one");
	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_MEMORY], 1 << 30);
	cr_expect_eq(f1->limit[FRAGI_AMOUNT_MEMORY], 1 << 30);
	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_SHARED_MEMORY], 64 << 20);
	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(8) << 30);
	cr_expect_eq(f1->limit[FRAGI_AMOUNT_GPU_MEMORY], 0);
	cr_expect_eq(f1->wanted[FRAGI_AMOUNT_GPU_THREADS], 25000);
	cr_expect_null(f1->mig);
	cr_expect_str_eq(spec->fragments[3].requirements.mig->text, "1g.10gb");
	cr_expect_eq(f3->wanted[FRAGI_AMOUNT_GPU_THREADS], 0);
	cr_assert_eq(f2->label_count, 2);
	cr_expect_str_eq(f2->labels[1].key, "slot");
	cr_expect_str_eq(f2->labels[1].value, "3");
	cr_assert_eq(f2->near_count, 1);
	cr_expect_str_eq(f2->near[0]->text, "f1");
	cr_assert_eq(f2->apart_count, 1);
	cr_expect_str_eq(f2->apart[0]->text, "f3");
	cr_expect_not(f2->gives_cpu);
	cr_expect_eq(f3->near_count + f3->apart_count + f3->label_count, 0);
	fragi_spec_destroy(spec);
}

Test(spec_requirements, what_is_wrong_is_reported_at_once)
{
	bad_graph(
		&(const struct graph_text){
			HEAD "  f1:\n"
			     "    " OPS "\n"
			     "    requirements:\n"
			     "      cpu: -1\n"
			     "      cpuLimit: 0\n"
			     "      gpu: 5000\n"
			     "      memory: 9999Ti\n"
			     "      sharedMemory: 2Gi\n"
			     "      sharedMemoryLimit: 1Gi\n"
			     "      gpuMemory: -5Mi\n"
			     "      labls: {}\n"
			     "      near: [f1, f22, f2]\n"
			     "      apart: f2\n"
			     "      labels: {zone: \"or 1\", two words: x, list: [1]}\n"
			     "  f2: {" OPS
			     ", requirements: {near: {f1: 1}, apart: [[]], cpu: nan}}\n"},
		"app.yaml:7:12: f1.requirements: cpu \"-1\" is not a number from 0 up\n"
		"app.yaml:8:17: f1.requirements: cpuLimit is 0, with which nothing runs; leave it out for no limit\n"
		"app.yaml:9:12: f1.requirements: gpu \"5000\" is more than a worker can have; write at most 4096\n"
		"app.yaml:10:15: f1.requirements: memory \"9999Ti\" is more than a worker can have; write at most 8 TiB\n"
		"app.yaml:12:26: f1.requirements: sharedMemoryLimit is less than the 2 GiB of sharedMemory; give it at least that\n"
		"app.yaml:13:18: f1.requirements: gpuMemory \"-5Mi\" is not a valid size; write for example 512Mi or 2GB\n"
		"app.yaml:14:7: f1.requirements: unknown key \"labls\"; did you mean \"labels\"?\n"
		"app.yaml:15:14: f1: requirements: near names the fragment itself; name another one\n"
		"app.yaml:15:18: f1: requirements: near: no fragment \"f22\"; did you mean \"f2\"?\n"
		"app.yaml:16:14: f1: requirements: it is to run apart from f2, and near says that both run on one worker; remove one of the two\n"
		"app.yaml:17:22: f1.requirements: label zone has the value \"or 1\"; write 1 to 63 characters without spaces and commas\n"
		"app.yaml:17:30: f1.requirements: label \"two words\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n"
		"app.yaml:17:50: f1.requirements: a label is a list; it must be a single value\n"
		"app.yaml:18:56: f2.requirements: near is a map; it must be a list ([a, b])\n"
		"app.yaml:18:73: f2.requirements: a fragment is a list; it must be a single value\n"
		"app.yaml:18:83: f2.requirements: cpu \"nan\" is not a number from 0 up\n");
}

/* Shares of GPUs, and instances: one of a fragment and of a process. */
Test(spec_requirements, wrong_parts_of_gpus_are_refused)
{
	bad_graph(
		&(const struct graph_text){
			HEAD
			"  f1: {" OPS ", requirements: {gpuThreads: 0%, mig: 1g10gb}}\n"
			"  f2: {" OPS ", requirements: {gpuThreads: 101%}}\n"
			"  f3: {" OPS ", requirements: {gpuThreads: 25}}\n"
			"  f4: {" OPS ", requirements: {gpuThreads: 12.5%}}\n"
			"  f5: {" OPS ", requirements: {gpuThreads: -3%, gpuThreadsLimit: 5%}}\n"
			"  f6: {" OPS ", requirements: {mig: [1g.10gb, 2g.20gb]}}\n"
			"  f7: {" OPS ", requirements: {mig: 1g.10gb, gpu: 1, gpuMemory: 1Gi}}\n"
			"  f8: {" OPS ", host: a, requirements: {mig: 1g.10gb}}\n"
			"  f9: {" OPS ", host: a, requirements: {mig: 2g.20gb}}\n"
			"  g1: {" OPS ", host: b, requirements: {gpuThreads: 25%}}\n"
			"  g2: {" OPS ", host: b, requirements: {mig: 1g.10gb}}\n"
			"  g3: {" OPS ", host: b, requirements: {gpu: 1, gpuMemory: 1Gi}}\n"
			"  h1: {" OPS ", host: c, requirements: {gpuThreads: 60%}}\n"
			"  h2: {" OPS ", host: c, requirements: {gpuThreads: 41%}}\n"
			"  h3: {" OPS ", host: c, requirements: {gpuThreads: 1%}}\n"
			"  h4: {" OPS ", requirements: {gpuThreads: 1e1%}}\n"
			"  h5: {" OPS ", requirements: {gpuThreads: 007%}}\n"
			"  h6: {" OPS ", requirements: {gpuThreads: 1000%}}\n"},
		"app.yaml:4:62: f1.requirements: gpuThreads is 0%, with which nothing runs; leave it out for no share\n"
		"app.yaml:4:62: f1.requirements: gpuThreads is given beside mig, which gives the fragment an instance instead of a share of GPUs; remove one of the two\n"
		"app.yaml:4:71: f1.requirements: mig \"1g10gb\" is not a profile of MIG; write one as nvidia-smi -L shows it, for example 1g.10gb\n"
		"app.yaml:5:62: f2.requirements: gpuThreads \"101%\" is more than a worker can have; write at most 100%\n"
		"app.yaml:6:62: f3.requirements: gpuThreads \"25\" is not a whole percentage; write for example 25%\n"
		"app.yaml:7:62: f4.requirements: gpuThreads \"12.5%\" is not a whole percentage; write for example 25%\n"
		"app.yaml:8:62: f5.requirements: gpuThreads \"-3%\" is not a whole percentage; write for example 25%\n"
		"app.yaml:8:67: f5.requirements: unknown key \"gpuThreadsLimit\"; did you mean \"gpuThreads\"?\n"
		"app.yaml:9:55: f6.requirements: mig is a list; it must be a single value\n"
		"app.yaml:10:69: f7.requirements: gpu is given beside mig, which gives the fragment an instance instead of a share of GPUs; remove one of the two\n"
		"app.yaml:10:83: f7.requirements: gpuMemory is given beside mig, which gives the fragment an instance instead of a share of GPUs; remove one of the two\n"
		"app.yaml:12:64: f9: requirements: mig is given to f8 too, which shares the host a, and a process has one MIG instance; give it once, or let each have a host of its own\n"
		"app.yaml:13:44: g1: requirements: gpuThreads is given, and g2, which shares the host b, has mig: its process sees no GPU but the MIG instance; remove gpuThreads, or let each have a host of its own\n"
		"app.yaml:15:44: g3: requirements: gpu is given, and g2, which shares the host b, has mig: its process sees no GPU but the MIG instance; remove gpu, or let each have a host of its own\n"
		"app.yaml:17:44: h2: requirements: with its gpuThreads those of the host c come to more than 100%, which no worker has; require less, or let each fragment have a host of its own\n"
		"app.yaml:19:62: h4.requirements: gpuThreads \"1e1%\" is not a whole percentage; write for example 25%\n"
		"app.yaml:20:62: h5.requirements: gpuThreads \"007%\" is not a whole percentage; write for example 25%\n"
		"app.yaml:21:62: h6.requirements: gpuThreads \"1000%\" is more than a worker can have; write at most 100%\n");
}

/* The sum of what fragments near one another require; the ones beside them do not count. */
Test(spec_requirements, fragments_that_are_near_require_no_more_than_a_worker_can_have)
{
	bad_graph(
		&(const struct graph_text){
			HEAD "  f1: {" OPS ", requirements: {gpuThreads: 60%, memory: 8Ti}}\n"
			     "  f2: {" OPS ", requirements: {gpuThreads: 40%, near: f1}}\n"
			     "  f3: {" OPS ", requirements: {gpuThreads: 100%, memory: 8Ti}}\n"
			     "  f4: {" OPS
			     ", requirements: {gpuThreads: 1%, memory: 1, near: f2}}\n"
			     "  f5: {" OPS ", requirements: {gpuThreads: 1%, near: f1}}\n"
			     "  f6: {" OPS ", requirements: {cpu: 4096, near: f7}}\n"
			     "  f7: {" OPS ", requirements: {gpu: 4096}}\n"},
		"app.yaml:7:35: f4: requirements: with its memory those of the fragments that near puts on its worker come to more than 8 TiB, which no worker has; require less, or remove near\n"
		"app.yaml:7:35: f4: requirements: with its gpuThreads those of the fragments that near puts on its worker come to more than 100%, which no worker has; require less, or remove near\n");
}

Test(spec_requirements, instances_have_hosts_of_their_own)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		HEAD "  f1: {" OPS ", requirements: {mig: 1g.10gb}}\n"
		     "  f2: {" OPS ", requirements: {mig: 1g.10gb}}\n"
		     "  f3: {" OPS "}\n"
		     "  f4: {" OPS "}\n"
		     "  f5: {" OPS ", host: a, requirements: {mig: 1g.10gb}}\n"
		     "  f6: {" OPS
		     ", host: a, requirements: {cpu: 1, gpu: 0, gpuMemoryLimit: 1Gi}}\n"
		     "  f7: {" OPS ", host: b, requirements: {mig: 1g.10gb}}\n"
		     "  f8: {" OPS ", host: c, requirements: {gpu: 1}}\n"
		     "  f9: {" OPS ", host: d, requirements: {gpuThreads: 60%}}\n"
		     "  g1: {" OPS ", host: d, requirements: {gpuThreads: 40%}}\n"
		     "  g2: {" OPS ", host: e, requirements: {gpuThreads: 100%}}\n"
		     "  g3: {" OPS ", requirements: {gpuThreads: 60%}}\n"
		     "  g4: {" OPS ", requirements: {gpuThreads: 60%}}\n"});
	const struct fragi_spec_fragment *f = spec->fragments;

	cr_expect_not(fragi_spec_share_host(&f[0], &f[1]));
	cr_expect_not(fragi_spec_share_host(&f[0], &f[2]));
	cr_expect_not(fragi_spec_share_host(&f[2], &f[0]));
	cr_expect(fragi_spec_share_host(&f[2], &f[3]));
	cr_expect(fragi_spec_share_host(&f[4], &f[5]), "by its name they share the instance");
	cr_expect_not(fragi_spec_share_host(&f[4], &f[6]));
	fragi_spec_destroy(spec);
}

Test(spec_requirements, profiles_of_mig_are_known_by_their_form)
{
	static const struct {
		const char *profile;
		bool is_valid;
	} cases[] = {
		{"1g.5gb", true},
		{"1g.10gb", true},
		{"7g.141gb", true},
		{"1g.10gb+me", true},
		{"1c.3g.40gb", true},
		{"1g.12gb+gfx", true},
		{"1g.5gb-me", true},
		{"1g.10gb+me.all", true},
		{"", false},
		{"1g", false},
		{"g.10gb", false},
		{"0g.10gb", false},
		{"1g.gb", false},
		{"1g.10GB", false},
		{"1g.10gbx", false},
		{"1g.10gb me", false},
		{"1g.10gb+1", false},
		{"1g.10gb+..", false},
		{"1g.10gb+", false},
		{"1g.10gb+me.", false},
		{"1g.10gb+me..all", false},
		{"1g.10gb+.me", false},
		{"1g.10gb+-me", false},
		{"1g.10gb.me", false},
		{"1g.10gb+me-gfx", true},
		{"MIG-1", false},
		{"all-balanced", false},
		{"12345g.1gb", false},
		{"1c.1c.1g.5gb", false},
		{"1g.10gb+abcdefghijklmnopq", false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++)
		cr_expect_eq(fragi_mig_profile_is_valid(cases[i].profile), cases[i].is_valid, "%s",
			     cases[i].profile);
}

/* What workerd --label and a graph take as a value. */
Test(spec_requirements, a_label_has_a_value_of_up_to_63_characters)
{
	static const struct {
		const char *value;
		bool is_valid;
	} cases[] = {
		{"v", true},
		{"", false},
		{"a b", false},
		{"a,b", false},
		{"a\x7f"
		 "b",
		 false},
		{"a\x1f"
		 "b",
		 false},
		{"a!b~", true},
		{"\xc3\xa9", true},
	};
	char value[FRAG_NAME_MAX + 2] = "";

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++)
		cr_expect_eq(fragi_label_is_valid("zone", cases[i].value), cases[i].is_valid, "%zu",
			     i);
	memset(value, 'v', FRAG_NAME_MAX);
	cr_expect(fragi_label_is_valid("zone", value));
	cr_expect(fragi_label_is_valid(value, "v"));
	value[FRAG_NAME_MAX] = 'v';
	cr_expect_not(fragi_label_is_valid("zone", value));
	cr_expect_not(fragi_label_is_valid(value, "v"));
}

Test(spec_requirements, what_when_excludes_need_not_exist)
{
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		"frag: 1\napplication: app\narguments: {x: {default: no}}\nfragments:\n"
		"  f1: {" OPS ", requirements: {near: f2, apart: [f2]}}\n"
		"  f2: {when: {x: yes}, " OPS "}\n"});

	cr_expect_eq(spec->fragments[0].requirements.near_count, 1);
	fragi_spec_destroy(spec);
}

/* Whom apart or a label keeps from the node of another, also by way of its group. */
Test(spec_requirements, some_may_meet_on_a_node)
{
	static const char *const rows[] = {
		"1111111", /* f1 */
		"1101111", /* f2, apart from f3 */
		"1011010", /* f3 has the label of f6, and other labels than f5 and f7 */
		"1111111", /* f4 */
		"1101101", /* f5, with the other label */
		"1111010", /* f6 */
		"1101101", /* f7 is near f5 */
	};
	struct fragi_spec *spec = good_graph(&(const struct graph_text){
		HEAD "  f1: {" OPS "}\n"
		     "  f2: {" OPS ", requirements: {apart: [f1x, f3]}}\n"
		     "  f3: {" OPS ", requirements: {labels: {room: a, floor: 1}}}\n"
		     "  f4: {" OPS ", requirements: {labels: {door: b}}}\n"
		     "  f5: {" OPS ", requirements: {labels: {room: b}}}\n"
		     "  f6: {" OPS ", requirements: {labels: {room: a}}}\n"
		     "  f7: {" OPS ", requirements: {near: f5}}\n"
		     "  f1x: {" OPS "}\n"});
	struct fragi_spec_group group = {0};

	cr_assert_eq(fragi_spec_group(spec, &group), 0);
	for (size_t a = 0; a < FRAG_COUNT_OF(rows); a++)
		for (size_t b = 0; b < FRAG_COUNT_OF(rows); b++)
			cr_expect_eq(fragi_spec_may_meet(spec, &group, a, b), rows[a][b] == '1',
				     "f%zu and f%zu", a + 1, b + 1);
	fragi_spec_group_fini(&group);
	fragi_spec_destroy(spec);
}

Test(spec_requirements, near_makes_groups_over_others)
{
	struct fragi_spec *spec = good_graph(
		&(const struct graph_text){HEAD "  f1: {" OPS "}\n"
						"  f2: {" OPS ", requirements: {near: f4}}\n"
						"  f3: {" OPS "}\n"
						"  f4: {" OPS ", requirements: {near: [f5]}}\n"
						"  f5: {" OPS ", requirements: {near: [f2, f4]}}\n"
						"  f6: {" OPS ", requirements: {near: f7}}\n"
						"  f7: {" OPS ", requirements: {near: f1}}\n"});
	struct fragi_spec_group group = {0};

	cr_assert_eq(fragi_spec_group(spec, &group), 0);
	cr_expect_eq(group.of[0], 0);
	cr_expect_eq(group.of[1], 1);
	cr_expect_eq(group.of[2], 2);
	cr_expect_eq(group.of[3], 1);
	cr_expect_eq(group.of[4], 1);
	cr_expect_eq(group.of[5], 0);
	cr_expect_eq(group.of[6], 0, "by way of f6, which joined f1 later");
	cr_expect_eq(fragi_spec_group_index(&group, "f3"), 2);
	cr_expect_eq(fragi_spec_group_index(&group, "f9"), SIZE_MAX);
	fragi_spec_group_fini(&group);
	fragi_spec_destroy(spec);
}

Test(spec_requirements, amounts_are_written_as_people_do)
{
	char text[FRAGI_AMOUNT_TEXT];
	int64_t value = 7;

	cr_expect_str_eq(fragi_amount_text(FRAGI_AMOUNT_CPU, 2500, text), "2.5");
	cr_expect_str_eq(fragi_amount_text(FRAGI_AMOUNT_CPU, 4000, text), "4");
	cr_expect_str_eq(fragi_amount_text(FRAGI_AMOUNT_MEMORY, 0, text), "0 B");
	cr_expect_str_eq(fragi_amount_text(FRAGI_AMOUNT_MEMORY, 1536 << 10, text), "1.5 MiB");
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU, "4096", &value), 0);
	cr_expect_eq(value, 4096000);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU, "4096.1", &value), -ERANGE);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU, "1 core", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU, "inf", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_MEMORY, "8Ti", &value), 0);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_MEMORY, "9Ti", &value), -ERANGE);
	cr_expect_eq(value, INT64_C(8) << 40);
	value = 7;
	cr_expect_str_eq(fragi_amount_text(FRAGI_AMOUNT_GPU_THREADS, 25000, text), "25%");
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "100.5%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "101%", &value), -ERANGE);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "25%%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "+5%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "50.5%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "nan%", &value), -EINVAL);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS,
					"00000000000000000000000000000025%", &value),
		     -EINVAL, "longer than a percentage is");
	cr_expect_eq(value, 7);
	cr_expect_eq(fragi_amount_parse(FRAGI_AMOUNT_GPU_THREADS, "100%", &value), 0);
	cr_expect_eq(value, 100000);
	cr_expect_eq(fragi_amount_named("memory", 6), FRAGI_AMOUNT_MEMORY);
	cr_expect_eq(fragi_amount_named("memoryLimit", 11), FRAGI_AMOUNTS);
}
