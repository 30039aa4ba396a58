/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_INTERPRETER_H
#define WRK_INTERPRETER_H

#include <limits.h>
#include <stdbool.h>

#include <base/arena.h>
#include <wire/message.h>

/* Finds a program as a shell does, by a path or by a name in PATH. Returns whether there is one. */
bool wrk_interpreter_find(const char *name, char out_path[PATH_MAX]);

/*
 * Fragments that list modules in Python (`extensions: [x.py]`) run in the interpreter that the
 * worker names, and not in fraghost: `python -m frag.host`.
 * - python: of --python: a path, or a name in PATH; NULL: none
 * - out_arguments: in arena: program and arguments, NULL-ended; NULL: fraghost will do
 * Returns 0; -ENOENT: such a fragment without python, or there is no such program; -ENOMEM.
 */
int wrk_interpreter_choose(const struct fw_host_create *create, const char *python,
			   struct fragi_arena *arena, char *const **out_arguments,
			   struct frag_err *err);

#endif
