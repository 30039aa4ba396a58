/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_INTERFACE_H
#define WRK_INTERFACE_H

#include <net/if.h>

#include <base/diag.h>

/*
 * The network device that has this IP address, as the data plane is told to use it. Returns 0, or
 * with a sentence: -ENOENT when no device has it (yet), -ENETDOWN when that device is down or has
 * no link, -EINVAL for what is no IP address.
 */
int wrk_interface_find(const char *address, char out_device[IF_NAMESIZE], struct frag_err *err);

#endif
