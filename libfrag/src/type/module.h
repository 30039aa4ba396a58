/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_MODULE_H
#define FRAGI_TYPE_MODULE_H

#include <base/diag.h>

/*
 * Modules are shared objects of this frag, in LIB/frag/modules beside LIB/libfrag.so, in the build
 * tree as where it is installed. Each is opened when something needs it and is never closed. Its
 * one symbol is a table that begins with struct fragi_module_head.
 */
struct fragi_module_head {
	size_t struct_size;
	const char *name; /* of the module's file, without .so */
};

struct fragi_module {
	const char *name;
	const char *kind;   /* for sentences: "transport module" */
	const char *advice; /* what helps where it is not installed */
	const char *symbol;
	size_t table_size; /* in this build */
	/*
	 * Libraries that are opened before it, from this folder, so that the module is linked with
	 * these and not with those of the system: file names, in an order in which each needs those
	 * before it alone (the first ones may also call later ones), ended by NULL. folder: NULL:
	 * those of the system.
	 */
	const char *folder;
	const char *const *libraries;
};

/*
 * Opens a module and finds its table. Returns 0; -ENOENT with a sentence: there is none of that
 * name, it cannot be opened, or it is of another build.
 */
FRAGI_API int fragi_module_open(const struct fragi_module *module, const void **out_table,
				struct frag_err *err);

#endif
