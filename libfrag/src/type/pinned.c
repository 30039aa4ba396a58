// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <type/pinned.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <type/crypto.h>

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static int cannot_read(const char *file, struct frag_err *err)
{
	return frag_err_set(err, -ENOENT, "library %s cannot be read: %s", file, strerror(errno));
}

/* O_NONBLOCK: a file that was replaced by a pipe does not hold the host. */
static int open_file(const char *path, const char *file, int *out_fd, struct frag_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return cannot_read(file, err);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return frag_err_set(err, -ENOENT, "library %s is not a file", file);
	}
	*out_fd = fd;
	return 0;
}

/*
 * Returns the descriptor of a sealed copy, or -1 with errno. The flag against execve does not
 * concern what is mapped, and where the system demands it there is no memfd without it.
 */
static int sealed_copy(int from, const char *file)
{
	int fd = memfd_create(file, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL), cause;
	ssize_t n = 1;

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(file, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	while (fd >= 0 && n > 0)
		n = sendfile(fd, from, NULL, 1 << 20);
	if (fd >= 0 && n == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	cause = errno;
	if (fd >= 0)
		close(fd);
	errno = cause;
	return -1;
}

/* Of all that the descriptor holds, as digits. */
int fragi_sha256(const void *bytes, size_t size, const char *what, const char *advice,
		 char out[FRAGI_SHA256_DIGITS + 1], struct frag_err *err)
{
	const struct fragi_crypto_ops *crypto;
	uint8_t digest[FRAGI_SHA256_SIZE];
	int r = fragi_crypto_open(advice, &crypto, err);

	if (r < 0)
		return r;
	if (crypto->sha256(bytes, size, digest) < 0)
		return frag_err_set(
			err, -ENOENT,
			"OpenSSL does not compute the sha256 of %s; look at its configuration (openssl.cnf)",
			what);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static int hash(int fd, const char *file, char out[FRAGI_SHA256_DIGITS + 1], struct frag_err *err)
{
	char what[300];
	struct stat st;
	void *bytes = NULL;
	int r;

	if (fstat(fd, &st) < 0)
		return cannot_read(file, err);
	if (st.st_size > 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return cannot_read(file, err);
	snprintf(what, sizeof(what), "library %s", file);
	r = fragi_sha256(bytes, (size_t)st.st_size, what, "leave sha256 out", out, err);
	if (bytes != NULL)
		munmap(bytes, (size_t)st.st_size);
	return r;
}

int fragi_pinned_open(const char *path, const char *file, const char *sha256, int *out_fd,
		      struct frag_err *err)
{
	char found[FRAGI_SHA256_DIGITS + 1];
	int from, fd, r = open_file(path, file, &from, err);

	if (r < 0)
		return r;
	fd = sealed_copy(from, file);
	close(from);
	if (fd < 0)
		return errno == ENOMEM || errno == ENOSPC
			       ? frag_err_set(err, -ENOMEM, "out of memory for a copy of %s", file)
			       : cannot_read(file, err);
	r = hash(fd, file, found, err);
	if (r == 0 && strcmp(found, sha256) != 0)
		r = frag_err_set(
			err, -EBADMSG,
			"library %s (%.300s) is not the one that the graph asks for: it has sha256 %s, and the graph states %s; install that one, or, if this one is right, write its sha256 into the graph",
			file, path, found, sha256);
	if (r < 0)
		close(fd);
	else
		*out_fd = fd;
	return r;
}

int fragi_pinned_check(const struct fragi_library *library, const char *sha256,
		       struct frag_err *err)
{
	if (library->sha256 == NULL)
		return frag_err_set(
			err, -EBADMSG,
			"library %s (%.300s) was loaded before without a check of its sha256; state it wherever the graph names this library",
			library->file, library->path);
	if (strcmp(library->sha256, sha256) != 0)
		return frag_err_set(
			err, -EBADMSG,
			"library %s (%.300s) was loaded before with sha256 %s, and not %s; state the same one wherever the graph names this library",
			library->file, library->path, library->sha256, sha256);
	return 0;
}

int fragi_file_sha256(const char *path, char out[FRAGI_SHA256_DIGITS + 1], struct frag_err *err)
{
	int fd, r = open_file(path, path, &fd, err);

	if (r < 0)
		return r;
	r = hash(fd, path, out, err);
	close(fd);
	return r;
}
