/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_PLUGIN_H
#define FRAG_PLUGIN_H

#include <frag/compose.h>
#include <frag/condition.h>
#include <frag/data_logger.h>
#include <frag/subgraph.h>

FRAG_BEGIN_DECLS

/*
 * A plugin is a shared object with one symbol, frag_plugin_v1, that lists what it brings. frag
 * calls no function of the plugin when it loads it. The symbol is weak, so that several plugins can
 * be linked into one test program.
 */
struct frag_plugin {
	/* these three are set by FRAG_PLUGIN */
	size_t struct_size;
	uint32_t abi_major;
	uint32_t abi_minor;
	/* of the plugin */
	const char *name;
	/* for people: "1.0.0" */
	const char *version;
	/* see FRAG_OPS */
	const struct frag_op_type *const *ops;
	uint32_t op_count;
	/* see FRAG_COMPOSERS */
	const struct frag_composer *composers;
	uint32_t composer_count;
	uint32_t composer_size;
	/* see FRAG_TYPES */
	const struct frag_type *const *types;
	uint32_t type_count;
	/* see FRAG_CONDITIONS */
	const struct frag_condition_type *const *conditions;
	uint32_t condition_count;
	/* see FRAG_SUBGRAPHS */
	const struct frag_subgraph_type *subgraphs;
	uint32_t subgraph_count;
	uint32_t subgraph_size;
	/* see FRAG_RESOURCES */
	const struct frag_resource_type *const *resources;
	uint32_t resource_count;
	/* see FRAG_DATA_LOGGERS */
	const struct frag_data_logger_type *const *data_loggers;
	uint32_t data_logger_count;
};

/* The begin of FRAG_PLUGIN: the symbol has the linkage of C. */
#ifdef __cplusplus
#define FRAG_PLUGIN_EXTERN extern "C"
#else
#define FRAG_PLUGIN_EXTERN extern
#endif

/*
 * Defines the symbol, once in a plugin:
 *
 * 	FRAG_PLUGIN(.name = "scale", .version = "1.0.0", FRAG_OPS(scale_ops));
 */
#define FRAG_PLUGIN(...)                                                                           \
	FRAG_PLUGIN_EXTERN FRAG_API __attribute__((weak)) const struct frag_plugin frag_plugin_v1; \
	const struct frag_plugin frag_plugin_v1 = {.struct_size = sizeof(struct frag_plugin),      \
						   .abi_major = FRAG_ABI_MAJOR,                    \
						   .abi_minor = FRAG_ABI_MINOR,                    \
						   __VA_ARGS__}

/*
 * The tables of a plugin: FRAG_OPS, FRAG_CONDITIONS, FRAG_RESOURCES, FRAG_DATA_LOGGERS and
 * FRAG_TYPES take an array of pointers to tables, FRAG_COMPOSERS an array of struct frag_composer,
 * FRAG_SUBGRAPHS one of struct frag_subgraph_type.
 */
#define FRAG_OPS(table) .ops = (table), .op_count = (uint32_t)FRAG_COUNT_OF(table)
#define FRAG_CONDITIONS(table)                                                                     \
	.conditions = (table), .condition_count = (uint32_t)FRAG_COUNT_OF(table)
#define FRAG_RESOURCES(table) .resources = (table), .resource_count = (uint32_t)FRAG_COUNT_OF(table)
#define FRAG_DATA_LOGGERS(table)                                                                   \
	.data_loggers = (table), .data_logger_count = (uint32_t)FRAG_COUNT_OF(table)
#define FRAG_COMPOSERS(table)                                                                      \
	.composers = (table), .composer_count = (uint32_t)FRAG_COUNT_OF(table),                    \
	.composer_size = (uint32_t)sizeof((table)[0])
#define FRAG_SUBGRAPHS(table)                                                                      \
	.subgraphs = (table), .subgraph_count = (uint32_t)FRAG_COUNT_OF(table),                    \
	.subgraph_size = (uint32_t)sizeof((table)[0])
#define FRAG_TYPES(table) .types = (table), .type_count = (uint32_t)FRAG_COUNT_OF(table)

/*
 * Lets all graphs that this process runs from now on use what a plugin lists, as if they named it
 * under extensions. The plugin is part of the program, as with the operators that a program has
 * itself, or those of another language.
 * - plugin: borrowed until it is removed; a name that another plugin has too refuses the graphs
 * - err: NULL is accepted
 * Returns 0, also when it was added before; -ENOBUFS: 64 plugins are there.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_plugin_add(const struct frag_plugin *plugin, struct frag_err *err);
/*
 * Undoes frag_plugin_add, once the applications that use the plugin have ended.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_plugin_remove(const struct frag_plugin *plugin);

/*
 * Finds the folder of the libraries of another project, which a plugin opens if they are there.
 * - variable: of the environment: the folder, if it is set and not empty
 * - folder: else lib/frag/FOLDER beside libfrag, if that is there
 * - out: the path, of at most size bytes with the 0
 * Returns 0; -ENOENT: there is none; -ENAMETOOLONG. On failure out is untouched.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_library_folder(const char *variable, const char *folder, char *out, size_t size);

/*
 * Loads extensions that are no shared objects, such as modules of another language, for the graphs
 * that this process runs.
 */
struct frag_loader {
	/* set by FRAG_LOADER_INIT */
	size_t struct_size;
	/* with which the names of such files end: ".py" */
	const char *suffix;
	/*
	 * Loads the file and makes the table of what it brings, which stays until the process ends.
	 * Called once for each file, on any thread, one at a time.
	 * - path: its real path, in one of the folders that libraries may come from
	 * Returns 0 or a negative errno; frag_err_set words it.
	 */
	int (*load)(const char *path, const struct frag_plugin **out_plugin, struct frag_err *err);
};
/* The first member of a struct frag_loader. */
#define FRAG_LOADER_INIT .struct_size = sizeof(struct frag_loader)
/*
 * Registers a loader, which stays until the process ends.
 * - loader: copied; its texts are borrowed
 * - err: NULL is accepted
 * Returns 0, also when it is registered already; -EEXIST: the suffix has another one; -EINVAL: it
 * is not filled in; -ENOBUFS: 8 loaders are there.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_loader_register(const struct frag_loader *loader, struct frag_err *err);

FRAG_END_DECLS

#endif
