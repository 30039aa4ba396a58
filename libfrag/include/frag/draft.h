/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_DRAFT_H
#define FRAG_DRAFT_H

#include <stdio.h>

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * A file that appears whole or not at all. It is written as a draft, a file beside it, which takes
 * its name when it is complete. The draft is a new file with a random name (.frag-draft-...), so
 * nothing that lies in the folder can redirect it, also where others may write into the folder.
 */
struct frag_draft;

/*
 * Creates a draft.
 * - path: the file that it is to become; its folder must exist
 * - out_draft: receives the draft; end it with frag_draft_commit or frag_draft_destroy
 * Returns 0; a negative errno: the draft cannot be created.
 * Thread: any. Blocks: on the disk. RT-safe: no.
 */
FRAG_API int frag_draft_create(const char *path, struct frag_draft **out_draft);
/*
 * Returns the stream to write to, borrowed until the draft ends.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API FILE *frag_draft_stream(struct frag_draft *draft);
/*
 * Gives the draft the name of its file, and replaces an older one. Takes the draft: when something
 * fails, also an earlier write to the stream, the draft is removed and an older file stays.
 * Returns 0; a negative errno: the file was not written.
 * Thread: any. Blocks: on the disk. RT-safe: no.
 */
FRAG_API int frag_draft_commit(struct frag_draft *draft);
/*
 * Removes a draft that is not to become a file. NULL is accepted.
 * Thread: any. Blocks: on the disk. RT-safe: no.
 */
FRAG_API void frag_draft_destroy(struct frag_draft *draft);

/*
 * Opens a file that others may read while it is written, such as a log: an empty new file takes the
 * name at once, in place of an older one, and of a link that lies there. What the path leads to and
 * is no regular file, such as a pipe or a terminal, is written as it is.
 * - path: its folder must exist
 * - out_stream: receives the stream; the caller closes it
 * Returns 0; a negative errno: nothing was changed.
 * Thread: any. Blocks: on the disk. RT-safe: no.
 */
FRAG_API int frag_output_open(const char *path, FILE **out_stream);

FRAG_END_DECLS

#endif
