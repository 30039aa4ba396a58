// SPDX-License-Identifier: Apache-2.0
#include "key_file.h"

#include <errno.h>
#include <stdbool.h>

#include <base/secret.h>
#include <wire/keys.h>

static int read_text(const char *text, struct fw_keys **out_keys, struct frag_err *err)
{
	struct key_file file;
	int r;

	key_file_init(&file, text);
	r = fw_keys_read(file.path, NULL, out_keys, err);
	key_file_fini(&file);
	return r;
}

Test(wire_keys, a_file_has_keys_comments_and_blank_lines)
{
	struct fw_keys *keys;
	const struct fw_key *key;

	cr_assert_eq(read_text("# of the laboratory\n\nfrag-key-1 a worker " SECRET_A
			       " # node 7\r\n\tfrag-key-1 b client " SECRET_B,
			       &keys, NULL),
		     0);
	cr_expect_eq(keys->count, 2);
	key = fw_keys_find(keys, "b", 1);
	cr_assert_not_null(key);
	cr_expect_eq(key->secret[0], 0xff);
	cr_expect_eq(key->secret[31], 0x00);
	cr_expect_eq(key->roles, fw_key_roles("client"));
	cr_expect_str_eq(fw_keys_first(keys, FW_ROLE_BIT(FW_ROLE_CLIENT))->name, "b");
	cr_expect_str_eq(fw_keys_first(keys, FW_ROLE_BIT(FW_ROLE_WORKER))->name, "a");
	cr_expect_null(fw_keys_find(keys, "c", 1));
	fw_keys_free(keys);
}

Test(wire_keys, what_is_printed_is_read_again)
{
	static const char *const roles[] = {"worker", "client", "any", "observer",
					    "observer+payload"};
	struct fw_key key = {.name = "node-7"}, *same;
	char line[FW_KEY_LINE_MAX];
	struct fw_keys *keys;

	for (size_t i = 0; i < sizeof(key.secret); i++)
		key.secret[i] = (uint8_t)(i * 9);
	for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++) {
		key.roles = fw_key_roles(roles[i]);
		cr_expect_neq(key.roles, 0);
		fw_key_print(&key, line);
		cr_assert_eq(read_text(line, &keys, NULL), 0);
		same = &keys->items[0];
		cr_expect_str_eq(same->name, key.name);
		cr_expect_eq(same->roles, key.roles);
		cr_expect(fragi_secret_equal(same->secret, key.secret, sizeof(key.secret)));
		fw_keys_free(keys);
		cr_expect_str_eq(fw_key_role_name(key.roles), roles[i]);
	}
}

Test(wire_keys, a_wrong_line_is_named_and_never_quoted)
{
	static const struct {
		const char *text, *sentence;
	} files[] = {
		{"\n# nothing\n", "holds no key; `fragctl key new >> "},
		{SECRET_A "\n", "line 1 is no key; `fragctl key new` prints one"},
		{"frag-key-2 a any " SECRET_A, "line 1 is no key"},
		{"frag-key-1 a any " SECRET_A " " SECRET_A, "line 1 is no key"},
		{"frag-key-1 a any", "line 1 is no key"},
		{"\nfrag-key-1 7a any " SECRET_A, "line 2 has no valid name for its key"},
		{"frag-key-1 a " SECRET_A " any",
		 "line 1 has a role that is none of " FW_KEY_ROLES},
		{"frag-key-1 a any " SECRET_A "0",
		 "line 1 has a secret that is not 64 hexadecimal digits"},
		{"frag-key-1 a any g" SECRET_A, "is not 64 hexadecimal digits"},
		{"frag-key-1 a any " SECRET_A "\nfrag-key-1 a client " SECRET_B,
		 "line 2 has the name of an earlier key"},
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct fw_keys *keys = NULL;

		cr_expect_eq(read_text(files[i].text, &keys, &err), -EINVAL, "%zu", i);
		cr_expect(strstr(err.text, files[i].sentence) != NULL, "%zu: %s", i, err.text);
		cr_expect(strstr(err.text, SECRET_A) == NULL, "%s", err.text);
		cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_USAGE);
		cr_expect_null(keys);
	}
}

Test(wire_keys, a_file_that_others_may_read_is_refused)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_keys *keys = NULL;
	struct key_file file;
	char sentence[256];

	key_file_init(&file, "frag-key-1 a any " SECRET_A "\n");
	for (mode_t bit = 1; bit <= 040; bit *= 2) {
		err = (struct frag_err)FRAG_ERR_INIT;
		cr_assert_eq(chmod(file.path, 0600 | bit), 0);
		cr_expect_eq(fw_keys_read(file.path, NULL, &keys, &err), -EACCES, "%o", bit);
	}
	snprintf(sentence, sizeof(sentence),
		 "%s holds secrets and is open to other users (mode 0640); run: chmod 600 %s",
		 file.path, file.path);
	cr_expect_str_eq(err.text, sentence);
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_FILE_MISSING);
	cr_assert_eq(chmod(file.path, 0400), 0);
	cr_assert_eq(fw_keys_read(file.path, NULL, &keys, &err), 0);
	fw_keys_free(keys);
	key_file_fini(&file);
}

Test(wire_keys, a_file_of_another_user_is_refused)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_keys *keys = NULL;
	struct key_file file;

	key_file_init(&file, "frag-key-1 a any " SECRET_A "\n");
	if (chown(file.path, 65534, (gid_t)-1) == 0) { /* as root only */
		cr_expect_eq(fw_keys_read(file.path, NULL, &keys, &err), -EACCES);
		cr_expect(strstr(err.text, "belongs to another user (65534)") != NULL, "%s",
			  err.text);
	}
	key_file_fini(&file);
}

Test(wire_keys, what_is_no_file_is_refused)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_keys *keys = NULL;

	cr_expect_eq(fw_keys_read("/nowhere/frag.key", NULL, &keys, &err), -ENOENT);
	cr_expect_str_eq(
		err.text,
		"cannot read /nowhere/frag.key: No such file or directory; `fragctl key new` makes a key file");
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fw_keys_read("/dev/null", NULL, &keys, &err), -EACCES);
	cr_expect_str_eq(err.text,
			 "/dev/null holds secrets and is not a regular file; give a file");
}

Test(wire_keys, a_key_keeps_its_number_until_it_changes)
{
	struct fw_keys *first, *second;
	struct key_file file;

	key_file_init(&file, "frag-key-1 a any " SECRET_A "\nfrag-key-1 b any " SECRET_A
			     "\nfrag-key-1 c any " SECRET_A "\n");
	cr_assert_eq(fw_keys_read(file.path, NULL, &first, NULL), 0);
	key_file_write(&file, "frag-key-1 c any " SECRET_A "\nfrag-key-1 a any " SECRET_B
			      "\nfrag-key-1 b worker " SECRET_A "\n");
	cr_assert_eq(fw_keys_read(file.path, first, &second, NULL), 0);
	cr_expect(!fw_keys_has(second, fw_keys_find(first, "a", 1)->serial), "another secret");
	cr_expect(!fw_keys_has(second, fw_keys_find(first, "b", 1)->serial), "another role");
	cr_expect(fw_keys_has(second, fw_keys_find(first, "c", 1)->serial), "only moved");
	fw_keys_free(first);
	fw_keys_free(second);
	key_file_fini(&file);
}
