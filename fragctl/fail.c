// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>

#include <base/log.h>
#include <base/printable.h>
#include <base/sentence.h>
#include <fragctl/fail.h>

#define SENTENCE_MAX 2048

static bool has_documents;

void ctl_fail_put(struct ctl_json *json, const struct fw_failure *failure)
{
	if (failure->code == FRAGI_FAILURE_NONE) {
		ctl_json_text(json, "failure", NULL);
		return;
	}
	ctl_json_open(json, "failure", '{');
	ctl_json_text(json, "code", fragi_failure_name(failure->code));
	ctl_json_text(json, "scope", fragi_failure_scope(failure->code));
	ctl_json_text(json, "sentence", failure->sentence);
	ctl_json_close(json, '}');
}

void ctl_fail_put_document(const struct fw_failure *failure, int exit_code, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_fail_put(&json, failure);
	ctl_json_number(&json, "exit_code", exit_code);
	ctl_json_end(&json);
}

bool ctl_fail_as_documents(bool on)
{
	bool before = has_documents;

	has_documents = on;
	return before;
}

void ctl_fail_document(int code, enum fragi_failure failure, const char *sentence)
{
	if (has_documents)
		ctl_fail_put_document(&(struct fw_failure){.code = failure, .sentence = sentence},
				      code, stdout);
}

FRAG_PRINTF(4, 0)
static int fail(const char *program, int code, enum fragi_failure failure, const char *format,
		va_list args)
{
	char text[SENTENCE_MAX];

	fragi_sentence_of(text, sizeof(text), format, args);
	fragi_make_printable(text, '?');
	fragi_log_print("%s: %s\n", program, text);
	ctl_fail_document(code, failure, text);
	return code;
}

int ctl_fail(int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail("fragctl", code, code == CTL_USAGE ? FRAGI_FAILURE_USAGE : FRAGI_FAILURE_OTHER, format,
	     args);
	va_end(args);
	return code;
}

int ctl_fail_with(enum fragi_failure failure, const char *format, ...)
{
	va_list args;
	int code;

	va_start(args, format);
	code = fail("fragctl", fragi_failure_exit(failure), failure, format, args);
	va_end(args);
	return code;
}

int ctl_refuse(const char *program, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fail(program, CTL_USAGE, FRAGI_FAILURE_USAGE, format, args);
	va_end(args);
	return CTL_USAGE;
}

void ctl_complain(const char *format, ...)
{
	char text[SENTENCE_MAX];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(text, sizeof(text), format, args);
	va_end(args);
	fragi_make_printable(text, '?');
	fragi_log_print("fragctl: %s\n", text);
}
