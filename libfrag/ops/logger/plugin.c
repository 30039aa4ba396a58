// SPDX-License-Identifier: Apache-2.0
#include "logger.h"

static const struct frag_data_logger_type *const logger_types[] = {
	&logger_basic_console_type, &logger_async_console_type, &logger_basic_json_type,
	&logger_async_json_type,    &logger_basic_csv_type,     &logger_async_csv_type,
	&logger_basic_npy_type,     &logger_async_npy_type,
};

FRAG_PLUGIN(.name = "logger", .version = FRAG_VERSION, FRAG_DATA_LOGGERS(logger_types));
