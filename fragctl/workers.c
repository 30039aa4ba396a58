// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>

static void show(const struct fw_reply *reply, bool json)
{
	if (json)
		ctl_service_json_workers(reply, stdout);
	else
		ctl_service_print_workers(reply);
}

int ctl_workers(int argc, char **argv)
{
	return ctl_service_show(argc, argv, "fragctl workers", "Lists the workers of a driver.",
				show);
}
