// SPDX-License-Identifier: Apache-2.0
#include <run/state.h>

/* Services of the application: where and when their callbacks are called (frag/service.h). */

uint32_t fragi_run_service_count(const struct fragi_run *run)
{
	return run->shared != NULL ? run->shared->service_count : 0;
}

bool fragi_run_is_driver(const struct fragi_run *run)
{
	return run->config.spec->fragment_count > 0 &&
	       fragi_run_has_fragment(run, run->config.spec->fragments[0].name);
}

const char *fragi_run_announced(const struct fragi_run *run, uint32_t i)
{
	const char *text = run->shared->services[i].resource->announced;

	return text != NULL ? text : "";
}

int fragi_run_connect_services(struct fragi_run *run, const char *const *announced, uint32_t count,
			       struct frag_err *err)
{
	return fragi_services_connect(run->shared, announced, count, err);
}
