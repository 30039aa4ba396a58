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

FRAG_END_DECLS

#endif
