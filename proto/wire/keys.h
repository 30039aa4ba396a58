/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_KEYS_H
#define FW_KEYS_H

#include <sys/types.h>

#include <wire/message.h>

/*
 * Key files (--key-file). Each line is a key: the word frag-key-1, the key's name, the role that it
 * may be used for (FW_KEY_ROLES) and 64 hexadecimal digits. `#` begins a comment. The owner
 * alone may read the file. All of it is kept in memory for secrets (base/secret.h).
 */
#define FW_KEY_ROLES "worker, client, any, observer, observer+payload"
#define FW_KEY_BYTES 32
#define FW_KEY_NAME_MAX 63
#define FW_KEY_LINE_MAX 192
#define FW_KEY_FILE_MAX (256u << 10)

struct fw_key {
	char name[FW_KEY_NAME_MAX + 1]; /* as fragi_name_is_valid */
	uint32_t roles;                 /* FW_ROLE_BIT of each role that it may be used for */
	uint64_t serial;                /* of this name, role and secret in this process */
	uint8_t secret[FW_KEY_BYTES];
};

struct fw_keys {
	size_t size_bytes; /* of this memory */
	size_t count;
	struct fw_key items[];
};

/*
 * Reads a key file. A key that former (may be NULL) has as well keeps its serial. Returns 0, or
 * negative errno with a sentence and its class: no such file, others may read it, a line that is no
 * key, no key at all.
 */
int fw_keys_read(const char *path, const struct fw_keys *former, struct fw_keys **out_keys,
		 struct frag_err *err);
void fw_keys_free(struct fw_keys *keys); /* NULL is accepted */
/* NULL: there is none of that name. The name need not be terminated. */
const struct fw_key *fw_keys_find(const struct fw_keys *keys, const void *name, size_t length);
/* The first key for one of the roles (FW_ROLE_BIT of each); NULL: there is none. */
const struct fw_key *fw_keys_first(const struct fw_keys *keys, uint32_t roles);
bool fw_keys_has(const struct fw_keys *keys, uint64_t serial);

/* The roles of a word of FW_KEY_ROLES; 0: it is none. */
uint32_t fw_key_roles(const char *word);
const char *fw_key_role_name(uint32_t roles);
/* Writes the key's line, newline included; out is memory for secrets. */
void fw_key_print(const struct fw_key *key, char out[FW_KEY_LINE_MAX]);
/*
 * Reads a file of secrets into memory for secrets. advice: the end of the sentence when it cannot
 * be read. Returns its size, or negative errno with a sentence and its class.
 */
ssize_t fw_secret_file_read(const char *path, const char *advice, char *text, size_t room,
			    struct frag_err *err);
/* Whether only its owner can read a file of secrets; 0, or -EACCES with a sentence. */
int fw_secret_file_check(const char *path, int fd, struct frag_err *err);

#endif
