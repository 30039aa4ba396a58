// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* A driver that keeps state: nobody hears of an epoch that is not reserved on the disk. */

static void world_with_state(struct world *w, uint64_t epoch)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .clock = "node",
					       .address = "127.0.0.1:1",
					       .ends_with_app = true,
					       .keeps_state = true});
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
								    .epoch = epoch}),
		     0);
}

static void persisted(struct world *w, uint64_t change, const char *why_not)
{
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = change, .text = why_not});
}

WORLD_TEST(driver_epoch, no_worker_hears_of_an_epoch_before_the_disk_has_it, NULL)
{
	const struct fw_message *m;

	world_with_state(w, 41);
	both_come(w);
	app(w, two_fragments);
	cr_expect_geq(w->epochs, 42);
	cr_expect_eq(w->kept_count, 1, "numbers and nothing else");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_NEW);
	pass_beating(w, 2 * SECOND, 1, 2);
	cr_expect_str_eq(w->progress, "writing to the state folder");
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	persisted(w, w->persist - 1, NULL);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE), "of an earlier one");
	persisted(w, w->persist, NULL);
	m = must_take(w, 1, FW_HOST_CREATE);
	cr_expect_eq(m->epoch, 42);
	cr_expect_eq(taken(w, 2, FW_HOST_CREATE)->epoch, 42);
}

WORLD_TEST(driver_epoch, each_application_has_a_higher_one, NULL)
{
	uint64_t first;

	world_with_state(w, 0);
	app(w, two_fragments);
	first = w->persist;
	app(w, two_fragments);
	cr_expect_gt(w->persist, first);
	persisted(w, w->persist, NULL); /* the later stands for the earlier */
	cr_expect_eq(drv_core_app_count(w->core), 2);
	hello(w, 1, "a", NULL);
	cr_expect_eq(taken(w, 1, FW_HOST_CREATE)->epoch + taken(w, 1, FW_HOST_CREATE)->epoch, 3);
}

WORLD_TEST(driver_epoch, all_epochs_that_are_given_are_reserved, NULL)
{
	world_with_state(w, 0);
	for (uint64_t epoch = 1; epoch <= 3000; epoch++) {
		app(w, "frag: 1\napplication: app\n");
		w->ended = false;
		cr_assert(epoch < 512 || w->epochs > epoch, "epoch %d, reserved up to %d",
			  (int)epoch, (int)w->epochs);
	}
}

WORLD_TEST(driver_epoch, an_application_whose_epoch_cannot_be_kept_fails_and_nothing_ran, NULL)
{
	world_with_state(w, 0);
	hello(w, 1, "a", NULL);
	app(w, two_fragments);
	persisted(w, w->persist, "cannot keep state in /s: No space left on device");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_eq(w->exit_code, 3);
	cr_expect_str_eq(w->reason, "cannot keep state in /s: No space left on device");
	assert_has(w->json, "{\"code\": \"state_unwritable\", \"scope\": \"driver\"");
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
}

Test(driver_epoch, a_stop_or_the_start_timeout_does_not_wait_for_the_disk)
{
	struct world w;

	world_with_state(&w, 0);
	app(&w, two_fragments);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	cr_assert(w.ended);
	cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
	persisted(&w, w.persist, NULL); /* late news */
	world_fini(&w);

	world_with_state(&w, 0);
	app_timed(&w, two_fragments, 5 * SECOND);
	pass(&w, 5 * SECOND);
	cr_assert(w.ended);
	cr_expect_eq(w.exit_code, 4);
	cr_expect_str_eq(w.reason,
			 "not started within 5.0 s: the state folder has not taken its epoch");
	persisted(&w, w.persist, "late news");
	world_fini(&w);
}
