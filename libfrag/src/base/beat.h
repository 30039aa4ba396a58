/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_BEAT_H
#define FRAGI_BASE_BEAT_H

#include <stdint.h>

/*
 * The defaults of how often a side of a connection shows that it lives, on the control channel and
 * between hosts, and how long it may be silent before it counts as dead.
 */
#define FRAGI_BEAT_NS INT64_C(250000000)
#define FRAGI_DEAD_NS INT64_C(3000000000)

#endif
