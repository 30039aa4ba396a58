/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_TREE_H
#define FRAG_TREE_H

#include <frag/error.h>
#include <frag/param.h>

FRAG_BEGIN_DECLS

/*
 * Reads a text as a graph is read, such as "[{name: a, type: lines}]": YAML, of which JSON is a
 * part, up to 3 MiB.
 * - text: borrowed for the call
 * - out_tree: receives the tree, owned by the caller
 * - err: NULL, or receives a sentence with the line of the text
 * Returns 0; -EINVAL: the text is not YAML; -ENOMEM. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_tree_parse(const char *text, const struct frag_tree **out_tree,
			     struct frag_err *err);
/*
 * Frees a tree of frag_tree_parse.
 * - tree: NULL is accepted
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API void frag_tree_destroy(const struct frag_tree *tree);

FRAG_END_DECLS

#endif
