// SPDX-License-Identifier: Apache-2.0
/*
 * A plugin whose tables have other sizes than this build's: parameters as a newer frag would have
 * them (with members that nobody here knows), ports and the type as an older one had them.
 */
#include <frag/frag.h>

struct state {
	int64_t first, second;
};

struct newer_param {
	struct frag_param now;
	const char *later[3];
};
struct older_port {
	const char *name;
	enum frag_dir dir;
	const char *type;
};

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static const struct newer_param params[] = {
	{FRAG_PARAM_I64(struct state, first, 11), {"a", "b", "c"}},
	{FRAG_PARAM_I64(struct state, second, 22), {"a", "b", "c"}},
};
static const struct older_port ports[] = {{"in", FRAG_IN, "i64"}, {"out", FRAG_OUT, NULL}};
static const struct frag_op_type type = {
	.struct_size = offsetof(struct frag_op_type, stop),
	.name = "sizes",
	.state_size = sizeof(struct state),
	.ports = (const struct frag_port *)(const void *)ports,
	.port_count = 2,
	.port_size = sizeof(struct older_port),
	.params = (const struct frag_param *)(const void *)params,
	.param_count = 2,
	.param_size = sizeof(struct newer_param),
	.compute = compute,
	/* Beyond struct_size: what an older plugin has there is not ours to call. */
	.fini = (void (*)(void *, struct frag_op *))(uintptr_t)1,
};
static const struct frag_op_type *const ops[] = {&type};
FRAG_PLUGIN(.name = "sizes", FRAG_OPS(ops));
