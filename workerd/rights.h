/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_RIGHTS_H
#define WRK_RIGHTS_H

#include <stdio.h>

#include <base/arena.h>
#include <base/flags.h>
#include <workerd/confine.h>
#include <workerd/seccomp.h>

/*
 * What the hosts of this worker may do on its machine. The flags and the kernel decide it once;
 * only the folders that a host may write differ from driver to driver.
 *
 * Without --allow-write these are the app root and this process's working folder, unless that is
 * the root of the file system. A driver that is not of this user may only name libraries from
 * certain folders: of those, and of all above and below, its hosts may then write none, or such a
 * driver could have a library written there and name it afterwards.
 */
struct wrk_rights_config {
	const struct fragi_texts *allow_write; /* each DIR:DIR */
	const char *host_user;                 /* NULL: not given */
	const struct fragi_texts *host_limits;
	const char *library_path, *app_root, *ucx_folder, *python; /* NULL: not given */
};

struct wrk_rights {
	const struct wrk_rights_config *config;
	int landlock_abi;          /* negative errno: the kernel has none */
	int seccomp_refused;       /* 0, or negative errno: the kernel has none */
	char working_folder[4096]; /* empty: hosts may not write there */
	struct wrk_host_user user;
	struct wrk_host_limits limits;
	struct wrk_seccomp seccomp;
	struct wrk_confine confine;
};

/*
 * config is borrowed. Returns 0, or negative errno with a classified sentence: a folder of
 * --allow-write or a user that does not exist, a limit that is none, or no memory.
 */
int wrk_rights_init(struct wrk_rights *rights, const struct wrk_rights_config *config,
		    struct frag_err *err);
void wrk_rights_fini(struct wrk_rights *rights);

/* Returns 0; -EPERM with a sentence: others than the hosts' user could change this interpreter. */
int wrk_rights_check_python(const struct wrk_rights *rights, const char *path,
			    struct frag_err *err);

/* Logs what hosts may do, and warns of what the kernel cannot restrict. */
void wrk_rights_log(const struct wrk_rights *rights);
/* Prints what the kernel can restrict, for --version -v. */
void wrk_rights_print_kernel(FILE *out);
/*
 * What a kernel cannot restrict, a part of a sentence for each, newest first.
 * - abi: of Landlock, or negative errno: there is none
 * - seccomp: 0, or negative errno: there are no filters
 * Returns their number.
 */
#define WRK_RIGHTS_LACKS_MAX 8
#define WRK_RIGHTS_LACK_SIZE 160
size_t wrk_rights_lacks(int abi, int seccomp,
			char out_texts[WRK_RIGHTS_LACKS_MAX][WRK_RIGHTS_LACK_SIZE]);

/*
 * The paths that a host may write.
 * - is_own_user: the driver is a process of this user, on this machine
 * - graph_folder: of that driver's graph; NULL: unknown
 * Returns 0 and an array in arena, or -ENOMEM.
 */
int wrk_rights_writable(const struct wrk_rights *rights, bool is_own_user, const char *graph_folder,
			struct fragi_arena *arena, const char *const **out_paths,
			size_t *out_count);
/* "below /a, /b only", for sentences; in arena, or a static text. */
const char *wrk_rights_list(struct fragi_arena *arena, const char *const *paths, size_t count);
/*
 * Makes ready how the next host is confined. It holds until the next call. Returns 0 or negative
 * errno with a sentence.
 */
int wrk_rights_apply(struct wrk_rights *rights, const char *const *paths, size_t count,
		     struct frag_err *err);

#endif
