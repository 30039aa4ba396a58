/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPS_H
#define TESTS_OPS_H

#include <frag/plugin.h>

/* The operator type op_type, which is called op and computes by op_compute; and what else it has */
#define TEST_OP(op, ...) TEST_OP_BY(op, op##_compute, __VA_ARGS__)
#define TEST_OP_BY(op, by, ...)                                                                    \
	static const struct frag_op_type op##_type = {FRAG_OP_TYPE_INIT, .name = #op,              \
						      .compute = by, __VA_ARGS__}

/* What every plugin begins with. */
#define TEST_PLUGIN_INIT                                                                           \
	.struct_size = sizeof(struct frag_plugin), .abi_major = FRAG_ABI_MAJOR,                    \
	.abi_minor = FRAG_ABI_MINOR, .version = "1"

/* The plugin that brings these operator types. */
#define TEST_PLUGIN(plugin, ...)                                                                   \
	static const struct frag_op_type *const plugin##_ops[] = {__VA_ARGS__};                    \
	static const struct frag_plugin plugin##_plugin = {TEST_PLUGIN_INIT, .name = #plugin,      \
							   FRAG_OPS(plugin##_ops)}

#endif
