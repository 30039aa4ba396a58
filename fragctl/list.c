// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>

static void show(const struct fw_reply *reply, bool json)
{
	if (json)
		ctl_service_json_applications(reply, NULL, stdout);
	else
		ctl_service_print_applications(reply);
}

int ctl_list(int argc, char **argv)
{
	return ctl_service_show(
		argc, argv, "fragctl list",
		"Lists the applications of a driver: those that run, and how others ended.", show);
}
