/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRUSTED_PATH_H
#define FRAGI_TRUSTED_PATH_H

#include <sys/types.h>

#include <base/diag.h>

/*
 * Whether what a file or a folder holds may be believed, as ssh decides it for key files: the path,
 * every folder above it and every link on the way belong to the user or to root, and nobody else
 * may write to them. A group whose only member is the user counts as the user. A sticky folder
 * above, such as the one for temporary files, may be written by others, because what belongs to the
 * user or root in it cannot be exchanged by them.
 *
 * The answer holds as long as neither of these two users changes it, so the path may be opened by
 * its name afterwards. What lies below /proc comes from the kernel, or is a descriptor of this
 * process, and passes.
 * - user: for whom it is; geteuid() mostly
 * Returns 0; -EPERM with a sentence: somebody else could change it; -ENOENT and other errors of
 * lstat with a sentence.
 *
 * Thread: one at a time.
 */
FRAGI_API int fragi_trusted_path_check(const char *path, uid_t user, struct frag_err *err);

#endif
