/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_ELF_H
#define FRAGI_TYPE_ELF_H

#include <base/diag.h>

/*
 * Refuses a shared object that ends before its segments do, as a copy that was interrupted: the
 * dynamic linker maps it all the same, and the process ends by SIGBUS. Also refuses one for another
 * machine or another C library. What is no ELF file is left to dlopen. name: in the sentence.
 * Returns 0, or -ENOEXEC with a sentence.
 */
int fragi_elf_check(const char *path, const char *name, struct frag_err *err);

#endif
