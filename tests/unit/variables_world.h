/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_VARIABLES_WORLD_H
#define TESTS_UNIT_VARIABLES_WORLD_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/failure.h>
#include <var/variable.h>

#include "unit/graph_texts.h"

/*
 * Two processes of an application, a and b, in one: each has its own descriptors, mappings and
 * locks, and gets the other's variables from its server.
 */
#define GRAPH                                                                                      \
	"frag: 1\napplication: app\n"                                                              \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: a}, other: {type: a}}}\n"                                   \
	"  f2: {operators: {rx: {type: b}, stranger: {type: b}}}\n"                                \
	"variables:\n"                                                                             \
	"  gain: {type: f32, shape: [2, 2], writer: f1, readers: [f2.rx, f1.other]}\n"             \
	"  rows: {type: i16, shape: [-1, 3], writer: f1.tx, readers: [f2.rx]}\n"                   \
	"  name: {type: string, writer: f1.tx, readers: [f2.rx]}\n"                                \
	"  data: {type: path, path: /data/in, readers: [f2.rx]}\n"

struct side {
	struct fragi_variables *variables;
	struct frag_fragment fragment;
	struct frag_op op, other;
};

static struct world {
	struct fragi_spec *spec;
	uint8_t key[FRAGI_VARIABLES_KEY_BYTES];
	struct side a, b;
	int stop_fd;
} world;

static void make_op(struct frag_op *op, struct side *side, const char *name)
{
	*op = (struct frag_op){.fragment = &side->fragment, .name = name};
}

static void make_side(struct side *side, const char *fragment, const char *op, const char *other)
{
	const struct fragi_variables_config config = {world.spec, world.key, world.stop_fd};

	cr_assert_eq(fragi_variables_create(&config, &side->variables), 0);
	side->fragment = (struct frag_fragment){
		.name = fragment, .spec = world.spec, .variables = side->variables};
	make_op(&side->op, side, op);
	make_op(&side->other, side, other);
}

static void declare(struct side *side, bool writes)
{
	struct frag_err err = FRAG_ERR_INIT;

	for (size_t i = 0; i < world.spec->variable_count; i++)
		if (world.spec->variables[i].path == NULL)
			cr_assert_eq(fragi_variables_declare(side->variables,
							     &world.spec->variables[i], writes,
							     writes, &err),
				     0, "%s", err.text);
}

static void fetch(struct side *side, const char *name)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_variables_fetch(side->variables, name, &err), 0, "%s", err.text);
}

static void world_init(void)
{
	const struct graph_text graph = {GRAPH};
	int r = open("/dev/urandom", O_RDONLY);

	cr_assert_eq(read(r, world.key, sizeof(world.key)), (ssize_t)sizeof(world.key));
	close(r);
	world.spec = good_graph(&graph);
	world.stop_fd = eventfd(0, EFD_NONBLOCK);
	make_side(&world.a, "f1", "tx", "other");
	make_side(&world.b, "f2", "rx", "stranger");
	declare(&world.a, true);
	declare(&world.b, false);
	fetch(&world.b, "gain");
	fetch(&world.b, "rows");
	fetch(&world.b, "name");
}

static void world_fini(void)
{
	fragi_variables_destroy(world.b.variables);
	fragi_variables_destroy(world.a.variables);
	fragi_spec_destroy(world.spec);
	close(world.stop_fd);
}

#endif
