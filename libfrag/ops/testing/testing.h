/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTING_TESTING_H
#define TESTING_TESTING_H

#include <frag/frag.h>

/* What fragctl test and fragctl doctor put into graphs. */
extern const struct frag_op_type testing_source_type;
extern const struct frag_op_type testing_sink_type;
extern const struct frag_op_type testing_connection_type;
extern const struct frag_condition_type testing_times_type;

#endif
