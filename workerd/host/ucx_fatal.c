// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <run/crash.h>

/*
 * Where UCX does not know how to go on, it ends the process by this function of libucs: it prints a
 * line of its own form and aborts, which looks like a crash of the operator whose thread it was.
 * UCX calls it through the dynamic linker, which looks in the executable first, so this one reports
 * the reason instead. Its parameters are the same in UCX 1.12 to 1.22.
 */
__attribute__((visibility("default"))) _Noreturn void
ucs_fatal_error_message(const char *file, unsigned int line, const char *function, char *message);

void ucs_fatal_error_message(const char *file, unsigned int line, const char *function,
			     char *message)
{
	const char *slash = strrchr(file, '/');
	char text[FRAGI_CRASH_CAUSE_MAX];

	(void)function;
	snprintf(text, sizeof(text), "UCX gave up at %s:%u: %.200s",
		 slash != NULL ? slash + 1 : file, line,
		 message != NULL ? message : "it gives no reason");
	fragi_crash_give_up(text);
}
