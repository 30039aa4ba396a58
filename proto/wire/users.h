/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_USERS_H
#define FW_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <base/diag.h>

/* Its members trust each other's daemons. */
#define FW_USERS_GROUP "frag"

/*
 * The users of this machine whose processes a daemon trusts without a key: its own user, root,
 * those of --allow-user, and the members of the group frag if the daemon itself runs in that group.
 * A daemon outside the group, as root's usually is, does not trust its members: they could run what
 * they like as its user.
 */
struct fw_users {
	const char *program; /* for sentences: "workerd" */
	struct fw_user {
		uid_t user;
		uint32_t roles; /* FW_ROLE_BIT of each that it may take */
	} * items;              /* of --allow-user and fw_users_add, owned */
	size_t count;
	bool has_group; /* this process is in the group */
	gid_t group;
	bool insecure; /* --insecure: a peer on another machine needs no proof */
};

/*
 * Looks the names of --allow-user up: names or numbers of users.
 * - program: borrowed
 * - with_roles: a name may end with `=ROLE` (wire/keys.h)
 * Returns 0; -EINVAL with a sentence: no such user; -ENOMEM. fini in every case.
 */
int fw_users_init(struct fw_users *users, const char *program, const char *const *names,
		  size_t count, bool with_roles, struct frag_err *err);
void fw_users_fini(struct fw_users *users);
/* As --allow-user with this user. Returns 0 or -ENOMEM. */
int fw_users_add(struct fw_users *users, uid_t user);
/*
 * The roles of a user; 0: it is not trusted. Root and the user of this process have all of them.
 * May ask the machine's user database, for a user of whom nothing else is said.
 */
uint32_t fw_users_roles(const struct fw_users *users, uid_t user);
bool fw_users_allow(const struct fw_users *users, uid_t user);

/*
 * Whether the process at the other end of a connection may take part.
 * - is_accepted: this side accepted the connection; only the sentence depends on it
 * Returns 1 and its user; 0 when it is on another machine and needs no proof; or with a sentence:
 * -EACCES: it may not; -EAGAIN: ask again; another: the connection is of no use.
 */
int fw_users_judge(const struct fw_users *users, int fd, bool is_accepted, uid_t *out_user,
		   struct frag_err *err);

#define FW_USER_NAME_MAX 64
/* Writes "alice", or "1000" for a user without a name, into out. Returns out. */
const char *fw_user_name(uid_t user, char out[FW_USER_NAME_MAX]);

#endif
