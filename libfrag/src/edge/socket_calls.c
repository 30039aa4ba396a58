// SPDX-License-Identifier: Apache-2.0
#include <edge/socket_calls.h>

static struct fragi_socket_switch *the_switch; /* written before main */

void fragi_socket_switch_offer(struct fragi_socket_switch *offered)
{
	the_switch = offered;
}

struct fragi_socket_switch *fragi_socket_switch(void)
{
	return the_switch;
}
