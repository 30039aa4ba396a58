// SPDX-License-Identifier: Apache-2.0
#include <base/may_write.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void fragi_may_write_hint(int code, char *out, size_t size)
{
	const char *where = getenv(FRAGI_MAY_WRITE);

	/* EXDEV: it moved or linked a file from one folder to another. */
	if (where == NULL || (code != -EACCES && code != -EXDEV))
		out[0] = '\0';
	else
		snprintf(
			out, size,
			"; hosts of this worker may write %.320s: if it needs another folder, give that to workerd with --allow-write",
			where);
}
