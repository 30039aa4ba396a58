// SPDX-License-Identifier: Apache-2.0
#include "format_converter.h"
#include "raw.h"

static const struct converter_format formats[] = {
	{"rgb888", 3, 8, true},     {"uint8", 0, 8, true},         {"float32", 0, 32, true},
	{"rgba8888", 4, 8, true},   {"gray8", 1, 8, true},         {"gray32f", 1, 32, true},
	{"rgb161616", 3, 16, true}, {"rgba16161616", 4, 16, true}, {"uint16", 0, 16, true},
	{"gray16", 1, 16, true},    {"yuv420", 0, 8, false},       {"nv12", 0, 8, false},
	{"yuyv", 0, 8, false},
};

int converter_find_format(struct frag_op *op, const char *parameter, const char *name,
			  const struct converter_format **out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(formats); i++) {
		if (strcmp(name, formats[i].name) != 0)
			continue;
		if (!formats[i].built)
			return frag_op_fail(op, -ENOTSUP,
					    "%s %s is not built yet; use one of " CONVERTER_FORMATS,
					    parameter, name);
		*out = &formats[i];
		return 0;
	}
	return frag_op_fail(op, -EINVAL,
			    "%s \"%s\" is not a valid format; it is one of " CONVERTER_FORMATS "%s",
			    parameter, name,
			    strcmp(parameter, "in_dtype") == 0 ? ", " RAW_FORMATS : "");
}
