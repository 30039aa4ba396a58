// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>

#include "unit/graph_texts.h"

static char folder[] = "/tmp/frag-source-XXXXXX";
static char path[3][64];

static const char *write_file(int i, const char *name, const char *text)
{
	FILE *file;

	snprintf(path[i], sizeof(path[i]), "%s/%s", folder, name);
	file = fopen(path[i], "w");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	return path[i];
}

static void make_folder(void)
{
	unsetenv("FRAG_CONFIG_PATH");
	cr_assert_not_null(mkdtemp(folder));
	write_file(0, "app.yaml",
		   "frag: 1\n"
		   "application: app\n"
		   "arguments: {labels: {default: labels.yaml}}\n"
		   "config: {labels: {from_file: \"${labels}\"}, again: {from_file: labels.yaml}}\n"
		   "operators: {x: {type: t, parameters: {from_config: [labels, again, more]}}}\n");
	write_file(1, "more.yaml", "more: {from_file: labels.yaml}\n");
	write_file(2, "labels.yaml", "[a, b]\n");
}

static void remove_folder(void)
{
	for (int i = 0; i < 3; i++)
		unlink(path[i]);
	rmdir(folder);
}

TestSuite(source, .init = make_folder, .fini = remove_folder);

Test(source, brings_all_texts_and_survives_the_wire)
{
	const char *const configs[] = {path[1]}, *const sets[] = {"app.x.p=1", ""},
			  *const args[] = {"--labels=labels.yaml"};
	struct fragi_source source, unpacked;
	struct fragi_diag diag = {0};
	struct fragi_spec *spec;
	void *bytes;
	size_t size;

	cr_assert_eq(fragi_source_read(&source, path[0], configs, 1, sets, 1, args, 1, NULL), 0);
	cr_expect_str_eq(source.source.app_folder, folder);
	cr_assert_eq(source.source.file_count, 1);
	cr_expect_str_eq(source.source.files[0].file, "labels.yaml");
	cr_assert_eq(fragi_source_pack(&source.source, &bytes, &size), 0);
	fragi_source_fini(&source);
	remove_folder(); /* a host does not need the files */
	cr_assert_eq(fragi_source_unpack(bytes, size, &unpacked), 0);
	fragi_free(bytes);
	cr_expect_eq(unpacked.source.set_count, 1);
	cr_expect_str_eq(unpacked.source.sets[0], "app.x.p=1");
	cr_expect_str_eq(unpacked.source.args[0], "--labels=labels.yaml");
	cr_expect_str_eq(unpacked.source.graph.file, path[0]);
	cr_assert_eq(fragi_spec_parse(&unpacked.source, &diag, &spec), 0);
	fragi_source_fini(&unpacked);
	cr_expect_str_eq(spec->app_folder, folder);
	cr_expect_eq(spec->fragments[0].operators[0].setting_count, 4);
	cr_expect_str_eq(fragi_node_at(spec->config, "more")->first->text, "a");
	fragi_spec_destroy(spec);
}

Test(source, says_which_file_is_missing)
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *const configs[] = {"/none/more.yaml"}, *const args[] = {"--labels",
									    "lables.yaml"};
	struct fragi_source source;
	char line[1400], wanted[1400];

	cr_expect_eq(fragi_source_read(&source, "/none/app.yaml", NULL, 0, NULL, 0, NULL, 0, &err),
		     -ENOENT);
	cr_expect_str_eq(
		err.text,
		"cannot read graph /none/app.yaml: No such file or directory; give the path of a file that exists");
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fragi_source_read(&source, path[0], configs, 1, NULL, 0, NULL, 0, &err),
		     -ENOENT);
	cr_expect_str_eq(
		err.text,
		"cannot read configuration /none/more.yaml: No such file or directory; give the path of a file that exists");
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fragi_source_read(&source, path[0], NULL, 0, NULL, 0, args, 2, &err), -ENOENT);
	snprintf(
		wanted, sizeof(wanted),
		"%s:4:30: cannot read config: from_file %s/lables.yaml: No such file or directory; give the path of a file that exists",
		path[0], folder);
	cr_expect_str_eq(fragi_err_line(&err, line, sizeof(line)), wanted);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fragi_source_read(&source, folder, NULL, 0, NULL, 0, NULL, 0, &err), -EISDIR);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fragi_source_read(&source, "/dev/zero", NULL, 0, NULL, 0, NULL, 0, &err),
		     -EFBIG);
	cr_expect_str_eq(err.text,
			 "cannot read graph /dev/zero: it is larger than 3 MiB; make it smaller");
}

/* Nobody writes to it: whoever opened it in the usual way would wait for ever. */
Test(source, a_file_of_the_graph_is_a_regular_one)
{
	const char *const args[] = {"--labels", "fifo"};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_source source;
	char fifo[1200];

	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_expect_lt(fragi_source_read(&source, path[0], NULL, 0, NULL, 0, args, 2, &err), 0);
	unlink(fifo);
	cr_expect_not_null(strstr(err.text, "/fifo: it is not a regular file"), "%s", err.text);
}

Test(source, frag_config_path_stands_in_for_a_configuration)
{
	struct fragi_source source;
	const char *const configs[] = {path[2]};

	setenv("FRAG_CONFIG_PATH", path[1], 1);
	cr_assert_eq(fragi_source_read(&source, path[0], NULL, 0, NULL, 0, NULL, 0, NULL), 0);
	cr_assert_eq(source.source.config_count, 1);
	cr_expect_str_eq(source.source.configs[0].file, path[1]);
	fragi_source_fini(&source);
	cr_assert_eq(fragi_source_read(&source, path[0], configs, 1, NULL, 0, NULL, 0, NULL), 0);
	cr_expect_str_eq(source.source.configs[0].file, path[2]);
	fragi_source_fini(&source);
	unsetenv("FRAG_CONFIG_PATH");
}

Test(source, what_is_wrong_inside_is_left_to_the_parser)
{
	struct fragi_source source;
	struct fragi_diag diag = {0};
	struct fragi_spec *spec;

	write_file(0, "app.yaml", "frag: [1\n");
	cr_assert_eq(fragi_source_read(&source, path[0], NULL, 0, NULL, 0, NULL, 0, NULL), 0);
	cr_expect_eq(fragi_spec_parse(&source.source, &diag, &spec), -EINVAL);
	cr_expect_eq(diag.count, 1);
	fragi_diag_fini(&diag);
	fragi_source_fini(&source);
}

Test(source, hostile_bytes_are_refused)
{
	const char *const sets[] = {"app.x.p=1", "app.x.q=2"}, *const configs[] = {path[1]};
	struct fragi_source source, unpacked;
	unsigned char *bytes, *bent;
	void *packed;
	size_t size;
	int r;

	cr_assert_eq(fragi_source_read(&source, path[0], configs, 1, sets, 2, sets, 2, NULL), 0);
	cr_assert_eq(fragi_source_pack(&source.source, &packed, &size), 0);
	bytes = packed;
	bent = malloc(size + 1);
	for (size_t i = 0; i < size; i++) /* every prefix */
		cr_assert_eq(fragi_source_unpack(bytes, i, &unpacked), -EBADMSG, "%zu", i);
	memcpy(bent, bytes, size);
	bent[size] = 0;
	cr_expect_eq(fragi_source_unpack(bent, size + 1, &unpacked), -EBADMSG);
	for (size_t i = 0; i < size; i++) { /* every byte bent: refused, or another text */
		for (int bit = 0; bit < 8; bit++) {
			memcpy(bent, bytes, size);
			bent[i] ^= (unsigned char)(1 << bit);
			r = fragi_source_unpack(bent, size, &unpacked);
			if (r == 0)
				fragi_source_fini(&unpacked);
			else
				cr_assert_eq(r, -EBADMSG);
		}
	}
	for (size_t i = 0; i + 4 <= size; i++) { /* every length made the largest */
		memcpy(bent, bytes, size);
		memset(bent + i, 0xff, 4);
		r = fragi_source_unpack(bent, size, &unpacked);
		if (r == 0)
			fragi_source_fini(&unpacked);
		else
			cr_assert_eq(r, -EBADMSG);
	}
	cr_expect_eq(fragi_source_unpack(bytes, FRAGI_SOURCE_MAX + 1, &unpacked), -EBADMSG);
	fragi_source_fini(&source);
	fragi_free(packed);
	free(bent);
}

Test(source, what_cannot_be_sent_is_refused_before)
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *const configs[] = {path[1]};
	struct fragi_source source;
	size_t large = 3000000;
	char *text = malloc(large + 1);

	memset(text, '#', large);
	text[large] = '\0';
	write_file(0, "app.yaml", text);
	write_file(1, "more.yaml", text);
	cr_expect_eq(fragi_source_read(&source, path[0], configs, 1, NULL, 0, NULL, 0, &err),
		     -EFBIG);
	cr_expect_str_eq(
		err.text,
		"the graph, its configurations and files have 6000000 bytes in all; at most 4 MiB can be sent; make them smaller");
	/* The largest that can be sent, and a byte more. */
	text[2000000] = '\0';
	write_file(1, "more.yaml", text);
	text[2000000] = '#';
	for (size_t more = 0; more < 2; more++) {
		text[FRAGI_SOURCE_MAX - 65536 - 2000000 + more] = '\0';
		write_file(0, "app.yaml", text);
		text[FRAGI_SOURCE_MAX - 65536 - 2000000 + more] = '#';
		cr_expect_eq(
			fragi_source_read(&source, path[0], configs, 1, NULL, 0, NULL, 0, NULL),
			more == 0 ? 0 : -EFBIG);
		if (more == 0)
			fragi_source_fini(&source);
	}
	free(text);
}

Test(source, every_failure_of_memory_is_told)
{
	const char *const configs[] = {path[1]};
	const int longer_than_a_read = 70000;
	char text[70100];
	int r = -ENOMEM;

	snprintf(text, sizeof(text), "#%*s\nmore: {from_file: labels.yaml}\n", longer_than_a_read,
		 "");
	write_file(1, "more.yaml", text);
	for (int64_t skip = 0; r != 0; skip++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct fragi_source source;

		cr_assert_lt(skip, 2000000);
		fragi_alloc_fail_after(skip, 1);
		r = fragi_source_read(&source, path[0], configs, 1, NULL, 0, NULL, 0, &err);
		if (fragi_alloc_fail_off() > 0)
			cr_assert_eq(r, -ENOMEM, "%lld: %d %s", (long long)skip, r, err.text);
		if (r == 0)
			fragi_source_fini(&source);
		else
			cr_expect_neq(err.text[0], '\0');
	}
}
