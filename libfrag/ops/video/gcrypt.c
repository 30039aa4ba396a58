// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

/*
 * FFmpeg is linked with libssh, whose constructor sets up libgcrypt. Where memory must not be
 * locked (RLIMIT_MEMLOCK, as in some containers) libgcrypt then prints "Warning: using insecure
 * memory!", although no operator has a secret. Only the warning is switched off: its memory is what
 * it would be otherwise.
 *
 * This constructor must run before libssh's, hence the library is linked with -z initfirst
 * (libs.mk); by then all references are bound. If no library here brings libgcrypt, the reference
 * is NULL.
 */
#define GCRYCTL_DISABLE_SECMEM_WARN 27 /* of gcrypt.h, which building would have to install */

extern int gcry_control(int command, ...) __attribute__((weak));

__attribute__((constructor)) static void gcrypt_warn_not(void)
{
	if (gcry_control != NULL)
		gcry_control(GCRYCTL_DISABLE_SECMEM_WARN);
}
