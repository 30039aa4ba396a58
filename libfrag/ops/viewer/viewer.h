/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_VIEWER_H
#define VIEWER_VIEWER_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type viewer_viewer_type;

#endif
