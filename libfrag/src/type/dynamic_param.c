// SPDX-License-Identifier: Apache-2.0
#include <type/params.h>

/*
 * A value that points to memory of its own would have to outlive what the operator does with it.
 * So only values that need none can change: numbers, and texts that are among the choices.
 */
bool fragi_param_is_dynamic(const struct frag_param *param)
{
	if ((param->flags & FRAG_PARAM_DYNAMIC) == 0)
		return false;
	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_F64:
	case FRAG_PARAM_KIND_SIZE:
	case FRAG_PARAM_KIND_DURATION:
		return true;
	case FRAG_PARAM_KIND_STRING:
		return param->choices != NULL;
	default:
		return false;
	}
}
