/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_FAIL_H
#define CTL_FAIL_H

#include <fragctl/ctl.h>
#include <fragctl/json.h>
#include <wire/failure.h>

/* Failures in JSON, by docs/service.schema.json. ctl.h has those for people. */

/* The member "failure"; null where nothing failed. */
void ctl_fail_put(struct ctl_json *json, const struct fw_failure *failure);
/* {"failure": ..., "exit_code": ...} */
void ctl_fail_put_document(const struct fw_failure *failure, int exit_code, FILE *out);

#endif
