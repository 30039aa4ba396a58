/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_FRAG_H
#define FRAG_FRAG_H

/*
 * All that an operator or a composer needs. Unit tests of operators also include <frag/harness.h>,
 * and programs that run applications <frag/run.h>. Callbacks return the errors of <errno.h>.
 */
#include <errno.h>

#include <frag/abi.h>
#include <frag/error.h>
#include <frag/type.h>
#include <frag/collection.h>
#include <frag/tensor.h>
#include <frag/kernel.h>
#include <frag/metadata.h>
#include <frag/message.h>
#include <frag/npy.h>
#include <frag/value.h>
#include <frag/condition.h>
#include <frag/resource.h>
#include <frag/clock.h>
#include <frag/param.h>
#include <frag/tree.h>
#include <frag/operator.h>
#include <frag/cuda.h>
#include <frag/data_logger.h>
#include <frag/status.h>
#include <frag/flow.h>
#include <frag/variable.h>
#include <frag/compose.h>
#include <frag/timing.h>
#include <frag/deadline.h>
#include <frag/config.h>
#include <frag/subgraph.h>
#include <frag/thread_pool.h>
#include <frag/service.h>
#include <frag/track.h>
#include <frag/plugin.h>
#include <frag/draft.h>

#endif
