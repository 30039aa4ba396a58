// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

Test(driver_memory, every_failure_of_memory_is_told)
{
	for (int64_t skip = 0;; skip++) {
		struct world *w = calloc(1, sizeof(*w));
		struct fw_message *hello_message;
		struct fragi_spec_source source = {
			.graph = {"app.yaml", two_fragments, strlen(two_fragments)}};
		struct drv_event event = {.kind = DRV_EVENT_APP};
		struct fw_message message = {.kind = FW_HELLO};
		uint8_t *frame;
		size_t size;
		void *packed;
		int r;

		world_init(w);
		cr_assert_eq(fragi_source_pack(&source, &packed, &event.app.source_bytes), 0);
		event.app.source = packed;
		message.hello = (struct fw_hello){.major = 1, .role = FW_ROLE_WORKER, .name = "a"};
		cr_assert_eq(fw_encode(&message, &frame, &size), 0);
		cr_assert_eq(fw_decode(frame + 4, size - 4, &hello_message, NULL), 0);
		fragi_alloc_fail_after(skip, 1);
		r = drv_core_step(w->core, &event, w->now_ns, &w->actions);
		if (r == 0) {
			event = (struct drv_event){
				.kind = DRV_EVENT_MESSAGE, .connection = 1, .message = hello_message};
			hello_message = NULL;
			drv_actions_reset(&w->actions);
			r = drv_core_step(w->core, &event, w->now_ns, &w->actions);
		}
		fw_message_free(hello_message);
		cr_assert(r == 0 || r == -ENOMEM);
		if (fragi_alloc_fail_off() == 0)
			skip = INT64_MAX - 1;
		fragi_free(packed);
		fragi_free(frame);
		world_fini(w);
		free(w);
		if (skip == INT64_MAX - 1)
			break;
	}
}
