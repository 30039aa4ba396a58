// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/layout.h>

#define SAME(number, KIND, type)                                                                   \
	_Static_assert((int)FW_##KIND == (int)FRAG__V1__ENVELOPE__BODY_##KIND,                     \
		       "a kind is the number of its field");
FW_KIND_LIST(SAME)
#undef SAME

const char *fw_kind_name(enum fw_kind kind)
{
	switch (kind) {
#define KIND_NAME(number, KIND, type)                                                              \
	case FW_##KIND:                                                                            \
		return #KIND;
		FW_KIND_LIST(KIND_NAME)
#undef KIND_NAME
	}
	return "?";
}

const struct fw_layout *fw_layout(enum fw_kind kind)
{
	switch (kind) {
#define KIND_LAYOUT(number, KIND, type)                                                            \
	case FW_##KIND:                                                                            \
		return &fw_layout_##type;
		FW_KIND_LIST(KIND_LAYOUT)
#undef KIND_LAYOUT
	}
	return NULL;
}

const char *fw_notice_name(enum fw_notice_kind kind)
{
	switch (kind) {
#define EVENT_NAME(NAME, name)                                                                     \
	case FW_NOTICE_##NAME:                                                                     \
		return #name;
		FW_NOTICE_LIST(EVENT_NAME)
#undef EVENT_NAME
	default:
		return "none";
	}
}

/* What is too long for the wire is too long to be kept. */
int fw_message_copy(const struct fw_message *message, struct fw_message **out_message,
		    size_t *out_size)
{
	const size_t prefix = sizeof(uint32_t);
	uint8_t *frame;
	int r = fw_encode(message, &frame, out_size);

	if (r < 0)
		return r;
	r = fw_decode(frame + prefix, *out_size - prefix, out_message, NULL);
	explicit_bzero(frame, *out_size);
	fragi_free(frame);
	return r;
}

int fw_hello_check(const struct fw_hello *hello, struct frag_err *err)
{
	if (hello->major == FW_PROTOCOL_MAJOR)
		return 0;
	return frag_err_set(
		err, -EPROTONOSUPPORT,
		"the peer speaks protocol %u.%u, this side %d.%d; install the same version of frag on both",
		hello->major, hello->minor, FW_PROTOCOL_MAJOR, FW_PROTOCOL_MINOR);
}
