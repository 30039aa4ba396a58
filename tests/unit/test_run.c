// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "rig_ops.h"

Test(run, hello)
{
	struct rig rig;

	rig_run(&rig, &rig_plugin,
		"frag: 1\n"
		"application: hello\n"
		"operators:\n"
		"  tx: {type: source, parameters: {count: 10}}\n"
		"  rx: {type: sink}\n"
		"flows: [tx -> rx]\n");
	cr_expect_eq(notes[0]->count, 10);
	cr_expect(rig_balances(&rig));
	cr_expect_lt(rig.done_ns - rig.start_ns, 1000000000);
	fprintf(stderr, "%lld us\n", (long long)(rig.done_ns - rig.start_ns) / 1000);
	rig_end(&rig);
}
