// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/secret.h>
#include <base/units.h>
#include <fragctl/ctl.h>
#include <fragctl/json.h>
#include <type/crypto.h>
#include <wire/keys.h>

#define FINGERPRINT_BYTES 8
#define FINGERPRINT_CHARS (2 * FINGERPRINT_BYTES + 1)

/* A key stays in memory for secrets and goes to the file with write(2): stdio would keep a copy. */
struct made {
	struct fw_key key;
	char line[FW_KEY_LINE_MAX];
};

static int draw(void *bytes, size_t size)
{
	return getrandom(bytes, size, 0) == (ssize_t)size
		       ? CTL_OK
		       : ctl_fail(CTL_FAILED, "the system gives no random bytes: %s",
				  strerror(errno));
}

static int make(struct made *made, const char *name, const char *role)
{
	uint32_t number;

	made->key.roles = fw_key_roles(role);
	if (made->key.roles == 0)
		return ctl_fail(CTL_USAGE, "--role \"%.40s\" is none of " FW_KEY_ROLES, role);
	if (name != NULL && !fragi_name_is_valid(name))
		return ctl_fail(
			CTL_USAGE,
			"--name \"%.80s\" is not a valid name; give a letter, then letters, digits, _ and -",
			name);
	if (draw(&number, sizeof(number)) != CTL_OK ||
	    draw(made->key.secret, sizeof(made->key.secret)) != CTL_OK)
		return CTL_FAILED;
	if (name != NULL)
		snprintf(made->key.name, sizeof(made->key.name), "%s", name);
	else
		snprintf(made->key.name, sizeof(made->key.name), "key-%08x", number);
	fw_key_print(&made->key, made->line);
	return CTL_OK;
}

/* `> FILE` of a shell makes a file that others may read. */
static int close_to_others(int fd)
{
	struct stat file;

	if (fstat(fd, &file) < 0 || !S_ISREG(file.st_mode) ||
	    (file.st_mode & (S_IRWXG | S_IRWXO)) == 0)
		return CTL_OK;
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0)
		return ctl_fail(CTL_MISSING,
				"other users may read the file of stdout, and chmod 600 failed: %s",
				strerror(errno));
	fragi_log_print("fragctl: gave the file mode 0600, since other users could read it\n");
	return CTL_OK;
}

static int put(int fd, const char *where, const char *line)
{
	size_t size = strlen(line);

	if (write(fd, line, size) == (ssize_t)size)
		return CTL_OK;
	return ctl_fail(CTL_MISSING, "cannot write the key to %s: %s", where, strerror(errno));
}

/* Adds the key to a file, which is made if there is none. */
static int add_to_file(const char *path, const struct made *made)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC), code;
	struct frag_err err = FRAG_ERR_INIT;

	if (fd < 0 && errno == ENOENT) /* not by a link that leads nowhere */
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return ctl_fail(CTL_MISSING, "cannot write %s: %s", path, strerror(errno));
	code = fw_secret_file_check(path, fd, &err) < 0 ? ctl_fail(CTL_MISSING, "%s", err.text)
							: put(fd, path, made->line);
	if (close(fd) < 0 && code == CTL_OK)
		code = ctl_fail(CTL_MISSING, "cannot write %s: %s", path, strerror(errno));
	return code;
}

static int key_new(const char *path, const char *name, const char *role)
{
	struct made *made = fragi_secret_alloc(sizeof(*made));
	int code;

	if (made == NULL)
		return ctl_fail(CTL_FAILED, "out of memory");
	code = make(made, name, role != NULL ? role : "any");
	if (code == CTL_OK && path != NULL)
		code = add_to_file(path, made);
	else if (code == CTL_OK && close_to_others(STDOUT_FILENO) == CTL_OK)
		code = put(STDOUT_FILENO, "stdout", made->line);
	fragi_secret_free(made, sizeof(*made));
	return code;
}

/* Tells two secrets apart, and nothing about them: the begin of the secret's sha256. */
static int fingerprint(const struct fragi_crypto_ops *crypto, const struct fw_key *key,
		       char out[FINGERPRINT_CHARS])
{
	uint8_t digest[FRAGI_SHA256_SIZE];

	if (crypto->sha256(key->secret, sizeof(key->secret), digest) < 0)
		return ctl_fail(CTL_FAILED, "OpenSSL does not compute a sha256");
	for (size_t i = 0; i < FINGERPRINT_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return CTL_OK;
}

static void print_table(const struct fw_keys *keys, char (*fingerprints)[FINGERPRINT_CHARS])
{
	int width = 0; /* of the longest name */

	for (size_t i = 0; i < keys->count; i++)
		if ((int)strlen(keys->items[i].name) > width)
			width = (int)strlen(keys->items[i].name);
	for (size_t i = 0; i < keys->count; i++)
		printf("%-*s %-16s %s\n", width, keys->items[i].name,
		       fw_key_role_name(keys->items[i].roles), fingerprints[i]);
}

static void print_json(const struct fw_keys *keys, char (*fingerprints)[FINGERPRINT_CHARS])
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_json_open(&json, "keys", '[');
	for (size_t i = 0; i < keys->count; i++) {
		ctl_json_open(&json, NULL, '{');
		ctl_json_text(&json, "name", keys->items[i].name);
		ctl_json_text(&json, "role", fw_key_role_name(keys->items[i].roles));
		ctl_json_text(&json, "fingerprint", fingerprints[i]);
		ctl_json_close(&json, '}');
	}
	ctl_json_close(&json, ']');
	ctl_json_end(&json);
}

/* root lists the file of a daemon's user as that user, to whom it is to belong. */
static void become_owner(const char *path)
{
	struct stat file;

	if (geteuid() == 0 && stat(path, &file) == 0 && file.st_uid != 0)
		(void)!seteuid(file.st_uid);
}

static int key_list(const char *path, const char *output)
{
	char(*fingerprints)[FINGERPRINT_CHARS];
	const struct fragi_crypto_ops *crypto;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_keys *keys;
	int code = CTL_OK;
	bool json;

	if (!ctl_output(output, &json))
		return CTL_USAGE;
	if (path == NULL)
		return ctl_fail(CTL_USAGE, "fragctl key list needs a key file");
	become_owner(path);
	if (fw_keys_read(path, NULL, &keys, &err) < 0)
		return ctl_fail(fragi_failure_exit(fragi_err_failure(&err)), "%s", err.text);
	if (fragi_crypto_open("install it to list keys", &crypto, &err) < 0)
		code = ctl_fail(CTL_MISSING, "%s", err.text);
	fingerprints = fragi_calloc(keys->count, sizeof(*fingerprints));
	if (fingerprints == NULL && code == CTL_OK)
		code = ctl_fail(CTL_FAILED, "out of memory");
	for (size_t i = 0; code == CTL_OK && i < keys->count; i++)
		code = fingerprint(crypto, &keys->items[i], fingerprints[i]);
	if (code == CTL_OK)
		(json ? print_json : print_table)(keys, fingerprints);
	fragi_free(fingerprints);
	fw_keys_free(keys);
	return code;
}

/* given: a flag of the other one */
static int refuse_flags(bool given, const char *sentence)
{
	return given ? ctl_fail(CTL_USAGE, "%s", sentence) : CTL_OK;
}

int ctl_key(int argc, char **argv)
{
	const char *name = NULL, *role = NULL, *output = NULL, *what, *path;
	struct fragi_texts operands = {0};
	struct ctl_common common = {0};
	const struct fragi_flag table[] = {
		{.name = "role",
		 .value = "ROLE",
		 .no_env = true,
		 .help = "new: what the key may be used for, of " FW_KEY_ROLES "; default any",
		 .text = &role},
		{.name = "name",
		 .value = "NAME",
		 .no_env = true,
		 .help = "new: how logs call the key; default: a random name",
		 .text = &name},
		{.name = "output",
		 .letter = 'o',
		 .value = "table|json",
		 .no_env = true,
		 .help = "list: what stdout gets; default table",
		 .text = &output},
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl key",
		.usage = "new [--role ROLE] [--name NAME] [FILE] | list [-o json] FILE",
		.headline =
			"new prints a new key, or adds it to FILE; list prints the names, roles and fingerprints of a key file. driverd and workerd take the file by --key-file.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code))
		goto end;
	what = operands.count > 0 ? operands.items[0] : "";
	path = operands.count > 1 ? operands.items[1] : NULL;
	if (operands.count > 2)
		code = ctl_fail(CTL_USAGE, "fragctl key takes one file");
	else if (strcmp(what, "new") == 0)
		code = refuse_flags(output != NULL, "--output is for fragctl key list") == CTL_OK
			       ? key_new(path, name, role)
			       : CTL_USAGE;
	else if (strcmp(what, "list") == 0)
		code = refuse_flags(name != NULL || role != NULL,
				    "--name and --role are for fragctl key new") == CTL_OK
			       ? key_list(path, output)
			       : CTL_USAGE;
	else
		code = ctl_fail(CTL_USAGE, "fragctl key needs new or list; fragctl key --help");
end:
	fragi_texts_fini(&operands);
	return code;
}
