// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/trusted_path.h>

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel follows */

struct walk {
	const char *path; /* as it was given */
	uid_t user;
	char done[PATH_MAX]; /* without links; "": the root folder */
	char rest[PATH_MAX];
	unsigned int links;
};

static bool is_trusted(uid_t owner, uid_t user)
{
	return owner == user || owner == 0;
}

/* Whether all members that this machine knows are trusted; false if it knows none. */
static bool is_group_of(gid_t number, uid_t user)
{
	const struct group *group = getgrgid(number);
	const struct passwd *entry;
	bool all = group != NULL, any = false;

	for (size_t i = 0; all && group->gr_mem[i] != NULL; i++) {
		entry = getpwnam(group->gr_mem[i]);
		all = entry != NULL && is_trusted(entry->pw_uid, user);
		any = true;
	}
	setpwent();
	while (all && (entry = getpwent()) != NULL) {
		if (entry->pw_gid != number)
			continue;
		all = is_trusted(entry->pw_uid, user);
		any = true;
	}
	endpwent();
	return all && any;
}

static bool others_may_write(const char *path, const struct stat *at, uid_t user)
{
	if (S_ISLNK(at->st_mode) || S_ISCHR(at->st_mode)) /* what a driver says is no file's */
		return false;
	if ((at->st_mode & S_IWOTH) != 0)
		return true;
	if ((at->st_mode & S_IWGRP) == 0)
		return false;
	/* with a list of users the bits of the group are the most that any of them may do */
	return lgetxattr(path, "system.posix_acl_access", NULL, 0) > 0 ||
	       !is_group_of(at->st_gid, user);
}

static int refuse(const struct walk *walk, struct frag_err *err, const char *why,
		  const char *remedy)
{
	return frag_err_set(err, -EPERM, "does not rely on %.200s: %s; %s, or give another path",
			    walk->path, why, remedy);
}

/* at: what done names. */
static int check(const struct walk *walk, const struct stat *at, bool is_last, struct frag_err *err)
{
	const char *path = walk->done[0] == '\0' ? "/" : walk->done;
	char why[300], remedy[300];
	bool is_sticky = S_ISDIR(at->st_mode) && (at->st_mode & S_ISVTX) != 0 && !is_last;

	if (!is_trusted(at->st_uid, walk->user)) {
		snprintf(why, sizeof(why),
			 "%.200s belongs to another user (%u), who could change it", path,
			 (unsigned int)at->st_uid);
		snprintf(remedy, sizeof(remedy), "see what it holds and run: chown -h %u %.200s",
			 (unsigned int)walk->user, path);
		return refuse(walk, err, why, remedy);
	}
	if (is_sticky || !others_may_write(path, at, walk->user))
		return 0;
	snprintf(why, sizeof(why), "other users may write to %.200s (mode %04o)", path,
		 (unsigned int)at->st_mode & 07777);
	snprintf(remedy, sizeof(remedy), "see what it holds and run: chmod go-w %.200s", path);
	return refuse(walk, err, why, remedy);
}

static int fail(const struct walk *walk, int code, struct frag_err *err)
{
	return frag_err_set(err, code, "cannot look at %.200s: %s", walk->path,
			    frag_strerror(code));
}

/* The next part of rest goes to out. Returns false: there is none. */
static bool next_part(struct walk *walk, char out[NAME_MAX + 1])
{
	size_t skipped = strspn(walk->rest, "/");
	size_t length = strcspn(walk->rest + skipped, "/");

	if (length == 0 || length > NAME_MAX)
		return false;
	memcpy(out, walk->rest + skipped, length);
	out[length] = '\0';
	memmove(walk->rest, walk->rest + skipped + length,
		strlen(walk->rest + skipped + length) + 1);
	return true;
}

static void leave_folder(struct walk *walk)
{
	char *slash = strrchr(walk->done, '/');

	if (slash != NULL)
		*slash = '\0';
}

/* Goes on with where the link of done leads, before the rest. */
static int follow(struct walk *walk)
{
	char target[PATH_MAX], rest[PATH_MAX];
	ssize_t n = readlink(walk->done, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if ((size_t)snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest) >= sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(walk->rest, rest);
	if (target[0] == '/')
		walk->done[0] = '\0';
	else
		leave_folder(walk);
	return 0;
}

/* Returns 1: it is what the kernel says; 0; negative errno. */
static int enter(struct walk *walk, const char *part, struct frag_err *err)
{
	size_t used = strlen(walk->done);
	struct stat at;
	int r;

	if (strcmp(part, ".") == 0)
		return 0;
	if (strcmp(part, "..") == 0) {
		leave_folder(walk);
		return 0;
	}
	if (used + 1 + strlen(part) >= sizeof(walk->done))
		return fail(walk, -ENAMETOOLONG, err);
	snprintf(walk->done + used, sizeof(walk->done) - used, "/%s", part);
	if (strncmp(walk->done, "/proc/", 6) == 0)
		return 1;
	if (lstat(walk->done, &at) < 0)
		return fail(walk, -errno, err);
	r = check(walk, &at, false, err);
	if (r < 0 || !S_ISLNK(at.st_mode))
		return r;
	r = follow(walk);
	return r < 0 ? fail(walk, r, err) : 0;
}

int fragi_trusted_path_check(const char *path, uid_t user, struct frag_err *err)
{
	struct walk walk = {.path = path, .user = user};
	char folder[PATH_MAX] = "", part[NAME_MAX + 1];
	struct stat at;
	int r = 0;

	if (path[0] != '/' && getcwd(folder, sizeof(folder)) == NULL)
		return fail(&walk, -errno, err);
	if ((size_t)snprintf(walk.rest, sizeof(walk.rest), "%s/%s", folder, path) >=
	    sizeof(walk.rest))
		return fail(&walk, -ENAMETOOLONG, err);
	if (stat("/", &at) < 0)
		return fail(&walk, -errno, err);
	r = check(&walk, &at, false, err);
	while (r == 0 && next_part(&walk, part))
		r = enter(&walk, part, err);
	if (r == 0 && walk.rest[strspn(walk.rest, "/")] != '\0')
		return fail(&walk, -ENAMETOOLONG, err);
	/* also where the path ends with "." or "..", or a link does */
	if (r == 0 && lstat(walk.done[0] == '\0' ? "/" : walk.done, &at) < 0)
		return fail(&walk, -errno, err);
	if (r == 0)
		r = check(&walk, &at, true, err);
	return r < 0 ? r : 0;
}
