/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_ALIAS_H
#define FRAGI_TEXT_ALIAS_H

#include <base/diag.h>

/*
 * The name here of a class of Holoscan ("CountCondition": "count"), whether or not it is built; any
 * other name is returned as it is. Static or the caller's storage. Operators, conditions, resources
 * and schedulers share the one table.
 */
FRAGI_API const char *fragi_alias(const char *name);

#endif
