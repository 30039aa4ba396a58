/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASIC_BASIC_H
#define BASIC_BASIC_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type basic_ping_tx_type;
extern const struct frag_op_type basic_ping_rx_type;
extern const struct frag_op_type basic_ping_tensor_tx_type;
extern const struct frag_op_type basic_ping_tensor_rx_type;
extern const struct frag_op_type basic_forward_type;

#endif
