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

int fw_hello_check(const struct fw_hello *hello, struct frag_err *err)
{
	if (hello->major == FW_PROTOCOL_MAJOR)
		return 0;
	return frag_err_set(
		err, -EPROTONOSUPPORT,
		"the peer speaks protocol %u.%u, this side %d.%d; install the same version of frag on both",
		hello->major, hello->minor, FW_PROTOCOL_MAJOR, FW_PROTOCOL_MINOR);
}
