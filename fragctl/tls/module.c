// SPDX-License-Identifier: Apache-2.0
#include <fragctl/tls/tls.h>

const struct ctl_tls_module ctl_tls_v1 = {
	.head = {.struct_size = sizeof(struct ctl_tls_module), .name = "tls"},
	.create = fw_tls_create,
	.destroy = fw_tls_destroy,
	.certificate_left_s = fw_certificate_left_s,
};
