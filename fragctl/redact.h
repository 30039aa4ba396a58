/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_REDACT_H
#define CTL_REDACT_H

#include <stdio.h>

/*
 * Writes a text for strangers: in the place of what looks like a secret stands "***". These are
 * user and password of a URL, what follows a name such as password, token or secret, private keys
 * in PEM, and long hexadecimal numbers, as keys of frag have them. Rather too much than too little:
 * a digest is left out too.
 */
void ctl_redact(const char *text, FILE *out);

#endif
