/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_KEY_FILE_H
#define TESTS_KEY_FILE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECRET_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SECRET_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

struct key_file {
	char path[64];
};

static inline void key_file_write(const struct key_file *file, const char *text)
{
	FILE *out = fopen(file->path, "w");

	cr_assert_not_null(out);
	cr_assert_geq(fputs(text, out), 0);
	cr_assert_eq(fclose(out), 0);
}

static inline void key_file_init(struct key_file *file, const char *text)
{
	int fd;

	strcpy(file->path, "/tmp/frag-key-XXXXXX");
	fd = mkstemp(file->path); /* mode 0600 */
	cr_assert_geq(fd, 0);
	close(fd);
	key_file_write(file, text);
}

static inline void key_file_fini(const struct key_file *file)
{
	unlink(file->path);
}

#endif
