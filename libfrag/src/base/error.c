// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE 1
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/printable.h>
#include <base/sentence.h>
#include <frag/error.h>

/* Codes whose text from libc says nothing about a message or a graph. */
#define ERROR_TEXTS(X)                                                                             \
	X(ENOMSG, "no message is there")                                                           \
	X(ENOBUFS, "no room in the queue")                                                         \
	X(EMSGSIZE, "larger than the limit")                                                       \
	X(EBADMSG, "malformed bytes")                                                              \
	X(EPROTOTYPE, "a value of another type")                                                   \
	X(EXDEV, "the allocator has no memory of that device")                                     \
	X(EPROTO, "the peer does not follow the protocol")                                         \
	X(EEXIST, "already exists")                                                                \
	X(ENAMETOOLONG, "a name is too long (of tensors, operators and ports: 63 bytes at most)")  \
	X(E2BIG, "too many")                                                                       \
	X(ENOMEM, "out of memory")                                                                 \
	X(EMFILE, "Too many open files (raise the limit: ulimit -n)")                              \
	X(EINVAL, "invalid argument")

int frag_err_set(struct frag_err *err, int code, const char *format, ...)
{
	va_list args;
	size_t room;

	if (err == NULL || err->code != 0 || err->text[0] != '\0')
		return code;
	room = sizeof(err->text);
	if (err->struct_size != 0 && err->struct_size < sizeof(*err)) {
		if (err->struct_size <= offsetof(struct frag_err, text))
			return code;
		room = err->struct_size - offsetof(struct frag_err, text);
	}
	err->code = code;
	va_start(args, format);
	fragi_sentence_of(err->text, room, format, args);
	va_end(args);
	frag_hide_credentials(err->text, room);
	/* One printable line: a sentence may quote a file, or what an unknown peer sent. */
	for (char *c = err->text; *c != '\0'; c++)
		if (*c == '\n' || *c == '\r' || *c == '\t')
			*c = ' ';
	fragi_make_printable(err->text, '?');
	return code;
}

const char *frag_strerror(int code)
{
	const char *text;

	switch (code) {
#define ERROR_CASE(errno_, text_)                                                                  \
	case -errno_:                                                                              \
		return text_;
		ERROR_TEXTS(ERROR_CASE)
#undef ERROR_CASE
	case 0:
		return "no error";
	case FRAG_DONE:
		return "done";
	case FRAG_PENDING:
		return "pending";
	default:
		text = code < 0 && code > -4096 ? strerrordesc_np(-code) : NULL;
		return text != NULL ? text : "unknown error";
	}
}
