/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LINKS_H
#define DRV_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fw_connection;

/*
 * The connections of the control port, by id. Ids count up and are never used again, so the table
 * stays sorted by itself.
 */
struct drv_link {
	uint64_t id;
	struct fw_connection *connection;
	void *shell;
	bool admitted; /* it has sent HELLO, and was accepted */
	bool closing;  /* the core has given it up, or we have */
};

/* zeroed: empty */
struct drv_links {
	struct drv_link **items;
	size_t count, capacity;
	uint64_t last_id;
	size_t strangers; /* not admitted, not closing */
};

struct drv_link *drv_links_add(struct drv_links *links);               /* NULL: no memory */
void drv_links_remove(struct drv_links *links, struct drv_link *link); /* frees it */
struct drv_link *drv_links_find(const struct drv_links *links, uint64_t id);
struct drv_link *drv_links_oldest_stranger(const struct drv_links *links);
void drv_links_admit(struct drv_links *links, struct drv_link *link);
void drv_links_close(struct drv_links *links, struct drv_link *link); /* marks it as closing */
void drv_links_fini(struct drv_links *links);

#endif
