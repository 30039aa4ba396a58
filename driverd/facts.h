/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_FACTS_H
#define DRV_FACTS_H

#include <driverd/core/core.h>
#include <wire/tls.h>

/* What a driver knows of its machine, for those who watch: clock, state folder, certificate. */
struct drv_facts {
	int64_t read_ns; /* 0: never */
	struct drv_machine machine;
};

/*
 * Tells the core; the folder and the certificate are read every 10 s.
 * - folder: -1: there is none
 * - tls: NULL: there is none
 */
void drv_facts_tell(struct drv_facts *facts, struct drv_core *core, int folder,
		    const struct fw_tls *tls, int64_t now_ns);

#endif
