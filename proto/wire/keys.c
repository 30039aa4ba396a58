// SPDX-License-Identifier: Apache-2.0
#include <wire/keys.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/secret.h>
#include <base/trusted_path.h>
#include <base/units.h>

/*
 * The file is read into memory for secrets and taken apart there: no other copy of a secret is
 * made, and no sentence quotes what stands in the file.
 */
#define FORMAT "frag-key-1"
#define WORDS_MAX 5

static const struct {
	const char *word;
	uint32_t roles;
} role_words[] = {
	{"worker", FW_ROLE_BIT(FW_ROLE_WORKER)},
	{"client", FW_ROLE_BIT(FW_ROLE_CLIENT)},
	{"any", FW_ROLE_BIT(FW_ROLE_WORKER) | FW_ROLE_BIT(FW_ROLE_CLIENT)},
	{"observer", FW_ROLE_BIT(FW_ROLE_OBSERVER)},
	{"observer+payload", FW_ROLE_BIT(FW_ROLE_OBSERVER) | FW_ROLE_BIT(FW_ROLE_PAYLOAD)},
};

uint32_t fw_key_roles(const char *word)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(role_words); i++)
		if (strcmp(role_words[i].word, word) == 0)
			return role_words[i].roles;
	return 0;
}

const char *fw_key_role_name(uint32_t roles)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(role_words); i++)
		if (role_words[i].roles == roles)
			return role_words[i].word;
	return "none";
}

void fw_keys_free(struct fw_keys *keys)
{
	if (keys != NULL)
		fragi_secret_free(keys, keys->size_bytes);
}

const struct fw_key *fw_keys_find(const struct fw_keys *keys, const void *name, size_t length)
{
	for (size_t i = 0; i < keys->count; i++)
		if (strlen(keys->items[i].name) == length &&
		    memcmp(keys->items[i].name, name, length) == 0)
			return &keys->items[i];
	return NULL;
}

const struct fw_key *fw_keys_first(const struct fw_keys *keys, uint32_t roles)
{
	for (size_t i = 0; i < keys->count; i++)
		if ((keys->items[i].roles & roles) != 0)
			return &keys->items[i];
	return NULL;
}

bool fw_keys_has(const struct fw_keys *keys, uint64_t serial)
{
	for (size_t i = 0; i < keys->count; i++)
		if (keys->items[i].serial == serial)
			return true;
	return false;
}

void fw_key_print(const struct fw_key *key, char out[FW_KEY_LINE_MAX])
{
	static const char digits[] = "0123456789abcdef";
	size_t used = (size_t)snprintf(out, FW_KEY_LINE_MAX, FORMAT " %s %s ", key->name,
				       fw_key_role_name(key->roles));

	for (size_t i = 0; i < FW_KEY_BYTES; i++) {
		out[used++] = digits[key->secret[i] >> 4];
		out[used++] = digits[key->secret[i] & 15];
	}
	out[used++] = '\n';
	out[used] = '\0';
}

/* The file may be its owner's, and still be exchanged for another one of his. */
static int check_folders(const char *path, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = fragi_trusted_path_check(path, geteuid(), &why);

	return r < 0 ? fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, r,
				      "%s holds secrets: frag %s", path, why.text)
		     : 0;
}

int fw_secret_file_check(const char *path, int fd, struct frag_err *err)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -errno,
				      "cannot read %s: %s", path, frag_strerror(-errno));
	if (!S_ISREG(file.st_mode))
		return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -EACCES,
				      "%s holds secrets and is not a regular file; give a file",
				      path);
	if (file.st_uid != geteuid() && file.st_uid != 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_FILE_MISSING, NULL, -EACCES,
			"%s holds secrets and belongs to another user (%u), who could change it; run: chown %u %s",
			path, (unsigned int)file.st_uid, (unsigned int)geteuid(), path);
	if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_FILE_MISSING, NULL, -EACCES,
			"%s holds secrets and is open to other users (mode %04o); run: chmod 600 %s",
			path, (unsigned int)(file.st_mode & 07777), path);
	return 0;
}

ssize_t fw_secret_file_read(const char *path, const char *advice, char *text, size_t room,
			    struct frag_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;
	size_t size = 0;
	ssize_t n = 1;

	if (fd < 0)
		return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -errno,
				      "cannot read %s: %s%s", path, frag_strerror(-errno), advice);
	r = fw_secret_file_check(path, fd, err);
	if (r == 0)
		r = check_folders(path, err);
	while (r == 0 && n > 0 && size < room) {
		n = read(fd, text + size, room - size);
		if (n < 0)
			r = fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -errno,
					   "cannot read %s: %s", path, frag_strerror(-errno));
		else
			size += (size_t)n;
	}
	close(fd);
	if (r == 0 && size == room)
		r = fragi_err_fail(err, FRAGI_FAILURE_USAGE, NULL, -EFBIG,
				   "the file %s is larger than %zu KiB", path, room >> 10);
	return r < 0 ? r : (ssize_t)size;
}

/* Cuts a line into words, in place. Returns how many there are; WORDS_MAX: too many. */
static size_t split(char *line, char *words[WORDS_MAX])
{
	size_t count = 0;
	char *rest = line, *word;

	line[strcspn(line, "#")] = '\0';
	while ((word = strsep(&rest, " \t\r")) != NULL && count < WORDS_MAX)
		if (*word != '\0')
			words[count++] = word;
	return count;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns NULL, or what is wrong with it. */
static const char *parse_key(char *words[WORDS_MAX], size_t count, struct fw_key *out)
{
	const char *hex = words[3];

	if (count != 4 || strcmp(words[0], FORMAT) != 0)
		return "is no key; `fragctl key new` prints one";
	if (!fragi_name_is_valid(words[1]))
		return "has no valid name for its key";
	out->roles = fw_key_roles(words[2]);
	if (out->roles == 0)
		return "has a role that is none of " FW_KEY_ROLES;
	if (strlen(hex) != (size_t)2 * FW_KEY_BYTES)
		return "has a secret that is not 64 hexadecimal digits";
	for (size_t i = 0; i < FW_KEY_BYTES; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return "has a secret that is not 64 hexadecimal digits";
		out->secret[i] = (uint8_t)(high << 4 | low);
	}
	strcpy(out->name, words[1]);
	return NULL;
}

static void number_key(struct fw_key *key, const struct fw_keys *former)
{
	static uint64_t last_serial;
	const struct fw_key *same =
		former != NULL ? fw_keys_find(former, key->name, strlen(key->name)) : NULL;

	if (same != NULL && same->roles == key->roles &&
	    fragi_secret_equal(same->secret, key->secret, FW_KEY_BYTES))
		key->serial = same->serial;
	else
		key->serial = ++last_serial;
}

/* Takes the text apart. Returns 0, or negative errno with a sentence. */
static int parse(const char *path, char *text, const struct fw_keys *former, struct fw_keys *keys,
		 struct frag_err *err)
{
	char *rest = text, *line, *words[WORDS_MAX];
	const char *wrong = NULL;
	int number = 0;

	while (wrong == NULL && (line = strsep(&rest, "\n")) != NULL) {
		struct fw_key *key = &keys->items[keys->count];
		size_t count = split(line, words);

		number++;
		if (count == 0)
			continue;
		wrong = parse_key(words, count, key);
		if (wrong == NULL && fw_keys_find(keys, key->name, strlen(key->name)) != NULL)
			wrong = "has the name of an earlier key";
		if (wrong != NULL)
			break;
		number_key(key, former);
		keys->count++;
	}
	if (wrong != NULL)
		return fragi_err_fail(err, FRAGI_FAILURE_USAGE, NULL, -EINVAL,
				      "the key file %s: line %d %s", path, number, wrong);
	if (keys->count == 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_USAGE, NULL, -EINVAL,
			"the key file %s holds no key; `fragctl key new >> %s` adds one", path,
			path);
	return 0;
}

static size_t count_lines(const char *text)
{
	size_t count = 1;

	for (; *text != '\0'; text++)
		count += *text == '\n';
	return count;
}

static struct fw_keys *make_keys(const char *text)
{
	size_t size = sizeof(struct fw_keys) + count_lines(text) * sizeof(struct fw_key);
	struct fw_keys *keys = fragi_secret_alloc(size);

	if (keys != NULL)
		keys->size_bytes = size;
	return keys;
}

int fw_keys_read(const char *path, const struct fw_keys *former, struct fw_keys **out_keys,
		 struct frag_err *err)
{
	char *text = fragi_secret_alloc(FW_KEY_FILE_MAX + 1);
	struct fw_keys *keys = NULL;
	ssize_t size = text != NULL
			       ? fw_secret_file_read(path, "; `fragctl key new` makes a key file",
						     text, FW_KEY_FILE_MAX, err)
			       : -ENOMEM;
	int r = size < 0 ? (int)size : 0;

	if (r == 0) {
		keys = make_keys(text);
		r = keys != NULL ? parse(path, text, former, keys, err) : -ENOMEM;
	}
	fragi_secret_free(text, FW_KEY_FILE_MAX + 1);
	if (r == -ENOMEM)
		fragi_err_fail(err, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, r,
			       "there is no memory left to read the key file %s", path);
	if (r < 0) {
		fw_keys_free(keys);
		return r;
	}
	*out_keys = keys;
	return 0;
}
