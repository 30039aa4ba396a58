/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_TLS_MEMORY_H
#define FW_TLS_MEMORY_H

/*
 * Makes OpenSSL allocate memory for secrets (base/secret.h): it copies keys into its sessions and
 * keeps what it derives from them, wherever it likes. Nothing of it is in a core file or in a
 * child. Before the first call of OpenSSL; again: nothing.
 */
void fw_tls_memory_use(void);

#endif
