/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_TABLES_H
#define HOST_TABLES_H

#include <run/run.h>
#include <wire/message.h>

/*
 * Conversions between the run's tables and those of the wire. Results lie in arena. All return 0 or
 * -ENOMEM.
 */
int host_tables_prepared(const struct fragi_run *run, struct fragi_arena *arena,
			 struct fw_host_prepared *out_prepared);
/*
 * The errors of a failed prepare, and what is known of the fragments of run (NULL: nothing).
 * Borrows diag's texts.
 */
int host_tables_errors(const struct fragi_diag *diag, const struct fragi_run *run,
		       struct fragi_arena *arena, struct fw_host_prepared *out_prepared);
/* Borrows the texts of wire. */
int host_tables_wire(const struct fw_host_wire *wire, struct fragi_arena *arena,
		     struct fragi_run_peer **out_peers, struct fragi_run_edge **out_edges);

#endif
