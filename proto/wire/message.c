// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <wire/message.h>

const char *fw_kind_name(enum fw_kind kind)
{
	switch (kind) {
#define NAME(number, KIND, field, type, Type)                                                      \
	case FW_##KIND:                                                                            \
		return #KIND;
		FW_KIND_LIST(NAME)
#undef NAME
	}
	return "?";
}

const char *fw_event_name(enum fw_event_kind kind)
{
	switch (kind) {
#define NAME(NAME, name)                                                                           \
	case FW_EVENT_##NAME:                                                                      \
		return #name;
		FW_EVENT_LIST(NAME)
#undef NAME
	default:
		return "none";
	}
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
