/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_BODY_H
#define FW_BODY_H

#include <base/arena.h>
#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/*
 * What encode.c and decode.c offer to the bodies (body_*.c): each kind of FW_KIND_LIST has a body,
 * and each message type of a body an fw_encode_TYPE and an fw_decode_TYPE.
 */
/*
 * The protobuf tree of one message is built in an arena, borrowing the message's texts, packed, and
 * dropped. The first failure is kept in error; what follows it builds on empty tables.
 */
struct fw_encoder {
	struct fragi_arena arena;
	int error;
};

void *fw_put_memory(struct fw_encoder *e, size_t size);
void *fw_put_body(struct fw_encoder *e, const ProtobufCMessageDescriptor *type);
/* A table of count initialised rows, NULL when it is empty, too long or there is no memory. */
void *fw_put_rows(struct fw_encoder *e, const ProtobufCMessageDescriptor *type, size_t count,
		  size_t max, size_t *out_count);
/* The text itself, or a copy cut to FW_TEXT_MAX, not within a UTF-8 character. */
char *fw_put_text(struct fw_encoder *e, const char *text);
char **fw_put_texts(struct fw_encoder *e, const char *const *texts, size_t count, size_t max,
		    size_t *out_count);
ProtobufCBinaryData fw_put_data(struct fw_encoder *e, const void *bytes, size_t size, size_t max);
void fw_put_failure_row(struct fw_encoder *e, const struct fw_failure *in, Frag__V1__Failure *out);
/* NULL, which is not sent, for NONE. */
Frag__V1__Failure *fw_put_failure(struct fw_encoder *e, const struct fw_failure *in);
/* What is 0 at the end takes no room. */
uint64_t *fw_put_numbers(struct fw_encoder *e, const uint64_t *numbers, size_t count,
			 size_t *out_count);
uint64_t *fw_put_realtime(struct fw_encoder *e, const struct fragi_realtime *in, size_t *out_count);
/* NULL, which is not sent, for none. */
Frag__V1__Quantiles *fw_put_quantiles(struct fw_encoder *e, const struct fragi_quantiles *in);

struct fw_decoder {
	struct fw_message *message;
	struct fragi_arena *arena; /* of the message and all it points to */
	struct frag_err *err;
	int error; /* 0, or the first failure */
};

/* Fails with -EBADMSG and "... holds `what`", unless something failed before. */
void fw_get_failed(struct fw_decoder *d, const char *what);
void *fw_get_memory(struct fw_decoder *d, size_t size);
/* Room for count rows; NULL when there are none, too many, or something failed before. */
void *fw_get_rows(struct fw_decoder *d, size_t count, size_t max, size_t row_bytes,
		  uint32_t *out_count);
const char *fw_get_text(struct fw_decoder *d, const char *in);
/* The name of an application, a fragment or an operator, or none. */
const char *fw_get_name(struct fw_decoder *d, const char *in, bool may_be_empty);
const char **fw_get_texts(struct fw_decoder *d, char **in, size_t count, size_t max,
			  uint32_t *out_count);
const void *fw_get_data(struct fw_decoder *d, ProtobufCBinaryData in, size_t max,
			uint32_t *out_size);
int32_t fw_get_exit_code(struct fw_decoder *d, int32_t code);
int64_t fw_get_duration(struct fw_decoder *d, int64_t ns);
/* One that only a newer peer knows is still a failure. */
enum fragi_failure fw_get_failure_code(uint32_t code);
enum fragi_summary_result fw_get_result(struct fw_decoder *d, uint32_t result);
void fw_get_failure(struct fw_decoder *d, const Frag__V1__Failure *in, struct fw_failure *out);
/* At most count of them; what a newer peer counts beside is not for this side. */
void fw_get_numbers(const uint64_t *in, size_t in_count, uint64_t *out, size_t count);
void fw_get_realtime(const uint64_t *in, size_t in_count, struct fragi_realtime *out);
void fw_get_quantiles(const Frag__V1__Quantiles *in, struct fragi_quantiles *out);

/* Of HOST_CREATE, which HOST_REPORT holds too. */
void fw_put_create(struct fw_encoder *e, const struct fw_host_create *in,
		   Frag__V1__HostCreate *out);
void fw_get_create(struct fw_decoder *d, const Frag__V1__HostCreate *in,
		   struct fw_host_create *out);

/* Encodes the body of message into out; decodes the body in into message. */
#define FW_BODY_FUNCTIONS(number, KIND, field, type, Type)                                         \
	void fw_encode_##type(struct fw_encoder *e, const struct fw_message *message,              \
			      Frag__V1__##Type *out);                                              \
	void fw_decode_##type(struct fw_decoder *d, const Frag__V1__##Type *in,                    \
			      struct fw_message *message);
FW_KIND_LIST(FW_BODY_FUNCTIONS)
#undef FW_BODY_FUNCTIONS

#endif
