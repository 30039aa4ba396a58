/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_MIG_H
#define DRV_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/arena.h>
#include <text/spec.h>

/* How many MIG instances of each profile a worker has, and how many of them fragments have. */

#define DRV_MIG_MAX 16 /* profiles of a worker; others are not looked at */

struct drv_mig {
	struct drv_mig_profile {
		char name[FRAGI_MIG_PROFILE_MAX];
		uint32_t has, used;
	} profiles[DRV_MIG_MAX];
	size_t count;
};

/* What the worker offers now, as in HELLO; what is used stays. */
void drv_mig_offer(struct drv_mig *mig, const char *text);
/* NULL: the worker has never had one of that name. */
const struct drv_mig_profile *drv_mig_find(const struct drv_mig *mig, const char *name);
/* Takes one (1) or gives it back (-1). */
void drv_mig_take(struct drv_mig *mig, const char *name, int sign);
/* Whether one is free. */
bool drv_mig_is_free(const struct drv_mig *mig, const char *name);
/* "2 of 1g.10gb, 1 of 3g.40gb", in the arena; NULL: it has none, or there is no memory. */
const char *drv_mig_text(const struct drv_mig *mig, struct fragi_arena *arena);

#endif
