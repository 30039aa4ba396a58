// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <wire/message.h>

static const char *const kind_names[] = {
	[FW_HELLO] = "HELLO",
	[FW_WELCOME] = "WELCOME",
	[FW_REFUSED] = "REFUSED",
	[FW_BEAT] = "BEAT",
	[FW_HOST_CREATE] = "HOST_CREATE",
	[FW_HOST_PREPARED] = "HOST_PREPARED",
	[FW_HOST_WIRE] = "HOST_WIRE",
	[FW_HOST_WIRED] = "HOST_WIRED",
	[FW_HOST_START] = "HOST_START",
	[FW_HOST_STARTED] = "HOST_STARTED",
	[FW_HOST_STOP] = "HOST_STOP",
	[FW_HOST_KILL] = "HOST_KILL",
	[FW_HOST_EVENT] = "HOST_EVENT",
	[FW_HOST_STATS] = "HOST_STATS",
	[FW_HOST_EXIT] = "HOST_EXIT",
};

const char *fw_kind_name(enum fw_kind kind)
{
	if ((int)kind <= 0 || (size_t)kind >= sizeof(kind_names) / sizeof(kind_names[0]))
		return "?";
	return kind_names[kind];
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
