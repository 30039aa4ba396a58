/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DRAFT_H
#define FRAGI_DRAFT_H

#include <sys/types.h>

#include <frag/draft.h>

/*
 * frag_draft_create with a path that starts, unless it is absolute, in an open folder (or
 * AT_FDCWD), and with the permissions of the file before the umask. The folder stays open until the
 * draft ends.
 */
int fragi_draft_create(int folder, const char *path, mode_t mode, struct frag_draft **out_draft);

#endif
