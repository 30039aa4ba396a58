/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOW_WINDOW_H
#define WINDOW_WINDOW_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type window_window_type;

#endif
