// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/failure.h>
#include <built.h>
#include <left.h>
#include <type/crypto.h>
#include <type/pinned.h>

static const char *plugins; /* where the tests' plugins are */
static char scratch[] = "/tmp/frag-registry-XXXXXX";

static void set_up(void)
{
	plugins = built("tests/sample_plugins");
	cr_assert_not_null(mkdtemp(scratch));
	unsetenv("FRAG_LIBRARY_PATH");
}

static void tear_down(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -r %s", scratch);
	cr_expect_eq(system(command), 0);
}

TestSuite(registry, .init = set_up, .fini = tear_down);

static struct fragi_registry *make(const char *folder, enum fragi_library_paths paths,
				   const char *app_folder)
{
	struct fragi_registry *registry;

	cr_assert_eq(fragi_registry_create(
			     &(struct fragi_registry_config){
				     .library_path = (const char *const[]){folder, NULL},
				     .paths = paths,
				     .app_folder = app_folder},
			     &registry),
		     0);
	return registry;
}

static void refuses(struct fragi_registry *registry, const char *library, int code,
		    const char *format, ...) FRAG_PRINTF(4, 5);

static void refuses(struct fragi_registry *registry, const char *library, int code,
		    const char *format, ...)
{
	struct frag_err err = FRAG_ERR_INIT;
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cr_expect_eq(fragi_registry_load(registry, library, &err), code);
	cr_expect_str_eq(err.text, text);
	cr_expect_eq(err.code, code);
	cr_expect_eq(fragi_err_failure(&err), code == -ENOENT ? FRAGI_FAILURE_LIBRARY_MISSING
							      : FRAGI_FAILURE_LIBRARY_REFUSED);
}

Test(registry, brings_types_and_composers)
{
	struct fragi_registry *registry = make(plugins, FRAGI_LIBRARY_PATHS_NONE, NULL);
	struct frag_err err = FRAG_ERR_INIT;
	const struct fragi_library *const *libraries;
	size_t count;

	cr_assert_eq(fragi_registry_load(registry, "libgood.so", &err), 0, "%s", err.text);
	cr_expect_eq(fragi_registry_load(registry, "libgood.so", &err), 0);
	cr_assert_not_null(fragi_registry_op(registry, "scale", &err));
	cr_expect_str_eq(fragi_registry_op(registry, "scale", &err)->headline,
			 "Multiplies a number");
	cr_expect_str_eq(fragi_registry_composer(registry, "line", &err)->name, "line");
	libraries = fragi_registry_libraries(registry, false, &count);
	cr_assert_eq(count, 1);
	cr_expect_str_eq(libraries[0]->file, "libgood.so");
	cr_expect_str_eq(libraries[0]->version, "1.2.3");
	cr_expect_not(libraries[0]->built_in);
	fragi_registry_destroy(registry);
}

Test(registry, says_what_is_wrong_with_a_library)
{
	struct fragi_registry *registry = make(plugins, FRAGI_LIBRARY_PATHS_NONE, NULL);

	refuses(registry, "libmajor.so", -EPROTO,
		"library libmajor.so was built for plugin ABI 9, this is frag " FRAG_VERSION
		" with plugin ABI 1; build it again with this frag's headers");
	refuses(registry, "liblater.so", -EPROTO,
		"library liblater.so was built for plugin ABI 2, this is frag " FRAG_VERSION
		" with plugin ABI 1; build it again with this frag's headers");
	refuses(registry, "libnothing.so", -ENOENT,
		"library libnothing.so is not a plugin: it has no symbol frag_plugin_v1; define it with FRAG_PLUGIN(...)");
	refuses(registry, "libtables.so", -EINVAL,
		"library libtables.so: operator type \"short\": parameter \"b\" (i64 at offset 8) does not lie in the state of 8 bytes");
	cr_expect_eq(fragi_registry_load(registry, "libgood.so", NULL), 0);
	refuses(registry, "libtaken.so", -EEXIST,
		"library libtaken.so: operator type \"scale\" is already that of libgood.so");
	/* Nothing of a refused library is there. */
	cr_expect_null(fragi_registry_op(registry, "fresh", NULL));
	/* The second time as the first. */
	refuses(registry, "libtaken.so", -EEXIST,
		"library libtaken.so: operator type \"scale\" is already that of libgood.so");
	fragi_registry_destroy(registry);
}

Test(registry, reads_tables_of_other_sizes)
{
	struct fragi_registry *registry = make(plugins, FRAGI_LIBRARY_PATHS_NONE, NULL);
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_op_type *type;

	cr_assert_eq(fragi_registry_load(registry, "libsizes.so", &err), 0, "%s", err.text);
	type = fragi_registry_op(registry, "sizes", &err);
	cr_assert_not_null(type);
	cr_expect_eq(type->param_count, 2);
	cr_expect_str_eq(type->params[1].name, "second");
	cr_expect_eq(type->params[1].def_int, 22);
	cr_expect_eq(type->port_count, 2);
	cr_expect_str_eq(type->ports[1].name, "out");
	cr_expect_eq(type->ports[1].flags, 0);
	cr_expect_null(type->ports[1].headline);
	cr_expect_null(type->fini);
	fragi_registry_destroy(registry);
}

Test(registry, looks_only_in_allowed_folders)
{
	struct fragi_registry *registry;
	char path[PATH_MAX + 40], target[PATH_MAX + 40], lib[PATH_MAX];
	char machine[HOST_NAME_MAX + 1];

	cr_assert_eq(gethostname(machine, sizeof(machine)), 0);
	snprintf(lib, sizeof(lib), "%s", fragi_library_folder());
	registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	refuses(registry, "libgood.so", -ENOENT,
		"library libgood.so is not in %s, %s/frag/extensions, %s/frag/plugins on %s; put it there, or its folder into --library-path or FRAG_LIBRARY_PATH",
		scratch, lib, lib, machine);
	refuses(registry, "../libgood.so", -EINVAL,
		"library ../libgood.so: a path is only accepted from a driver of the same user on the same machine, or below workerd's --app-root; write the name alone and put its folder into --library-path");
	snprintf(path, sizeof(path), "%s/libgood.so", scratch);
	snprintf(target, sizeof(target), "%s/libgood.so", plugins);
	refuses(registry, target, -EINVAL,
		"library %s: a path is only accepted from a driver of the same user on the same machine, or below workerd's --app-root; write the name alone and put its folder into --library-path",
		target);
	cr_assert_eq(symlink(target, path), 0);
	refuses(registry, "libgood.so", -ENOENT,
		"library libgood.so: %s leads to %s, outside the folders that libraries may come from; put the file itself there",
		path, target);
	refuses(registry, ".", -ENOENT,
		"library . is not in %s, %s/frag/extensions, %s/frag/plugins on %s; put it there, or its folder into --library-path or FRAG_LIBRARY_PATH",
		scratch, lib, lib, machine);
	fragi_registry_destroy(registry);

	/* A link from one allowed folder into another is fine. */
	snprintf(path, sizeof(path), "/nowhere::%s", plugins);
	setenv("FRAG_LIBRARY_PATH", path, 1);
	registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	cr_expect_eq(fragi_registry_load(registry, "libgood.so", NULL), 0);
	fragi_registry_destroy(registry);
}

Test(registry, takes_relative_paths_that_stay_in_the_app_folder)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_IN_APP, plugins);
	struct frag_err err = FRAG_ERR_INIT;
	char path[PATH_MAX + 32];

	cr_expect_eq(fragi_registry_load(registry, "./libgood.so", &err), 0, "%s", err.text);
	snprintf(path, sizeof(path), "%s/libgood.so", plugins);
	refuses(registry, path, -EINVAL,
		"library %s: only a relative path below --app-root is accepted here, because the driver is another user's or on another machine; write one, or the name alone",
		path);
	fragi_registry_destroy(registry);
	registry = make(scratch, FRAGI_LIBRARY_PATHS_IN_APP, scratch);
	snprintf(path, sizeof(path), "%s/link", scratch);
	cr_assert_eq(symlink(plugins, path), 0);
	cr_expect_eq(fragi_registry_load(registry, "link/libgood.so", &err), -EINVAL);
	cr_expect(strstr(err.text, "outside --app-root") != NULL, "%s", err.text);
	fragi_registry_destroy(registry);
}

Test(registry, takes_paths_where_all_is_one_process)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_ANY, plugins);
	struct frag_err err = FRAG_ERR_INIT;
	char lib[PATH_MAX], path[PATH_MAX + 32];

	snprintf(lib, sizeof(lib), "%s", fragi_library_folder());
	refuses(registry, "libgood.so", -ENOENT,
		"library libgood.so is not in %s, %s/frag/extensions, %s/frag/plugins; for the one in the app folder write ./libgood.so",
		scratch, lib, lib);
	cr_expect_eq(fragi_registry_load(registry, "./libgood.so", &err), 0, "%s", err.text);
	snprintf(path, sizeof(path), "%s/libgood.so", plugins);
	cr_expect_eq(fragi_registry_load(registry, path, &err), 0, "%s", err.text);
	snprintf(path, sizeof(path), "%s/./libnone.so", plugins);
	refuses(registry, "./libnone.so", -ENOENT,
		"library ./libnone.so cannot be found: %s: No such file or directory", path);
	fragi_registry_destroy(registry);
}

Test(registry, says_what_a_library_lacks)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	char path[100];
	FILE *file;

	snprintf(path, sizeof(path), "%s/libtext.so", scratch);
	file = fopen(path, "w");
	cr_assert_not_null(file);
	fputs("not a library, whatever its name says, and long enough for a header\n", file);
	fclose(file);
	refuses(registry, "libtext.so", -ENOEXEC,
		"library libtext.so is no shared object: it does not begin as an ELF file; name the one that the linker has made");
	fragi_registry_destroy(registry);
}

Test(registry, advises_on_unknown_names)
{
	struct fragi_registry *registry = make(plugins, FRAGI_LIBRARY_PATHS_NONE, NULL);
	struct frag_err err = FRAG_ERR_INIT;

	fragi_registry_load(registry, "libgood.so", NULL);
	cr_expect_null(fragi_registry_op(registry, "scal", &err));
	cr_expect_str_eq(err.text, "unknown operator type \"scal\"; did you mean \"scale\"?");
	cr_expect_eq(err.code, -EINVAL);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_null(fragi_registry_composer(registry, "zzzzz", &err));
	cr_expect_str_eq(
		err.text,
		"unknown composer \"zzzzz\"; valid: line, forgetful, failing, equipped, thrifty");
	fragi_registry_destroy(registry);
}

/* A copy of libgood.so in the scratch folder, and its sha256. Returns false without the module. */
static bool copy_good(char path[100], char sha256[FRAGI_SHA256_DIGITS + 1])
{
	struct frag_err err = FRAG_ERR_INIT;
	char command[PATH_MAX + 100];

	snprintf(path, 100, "%s/libgood.so", scratch);
	snprintf(command, sizeof(command), "cp %s/libgood.so %s", plugins, path);
	cr_assert_eq(system(command), 0);
	if (fragi_file_sha256(path, sha256, &err) == 0)
		return true;
	cr_expect_not_null(strstr(err.text, "the module crypto is not there ("), "%s", err.text);
	cr_expect_not_null(strstr(err.text, "install frag with it, or leave sha256 out"), "%s",
			   err.text);
	return false;
}

/* The bytes that were hashed run, whatever happens to the file, and under the file's name. */
Test(registry, a_pinned_library_is_the_file_that_was_hashed)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	char path[100], sha256[FRAGI_SHA256_DIGITS + 1];
	const struct frag_op_type *type;
	struct frag_err err = FRAG_ERR_INIT;
	Dl_info info;

	if (!copy_good(path, sha256))
		cr_skip_test("this build has no module crypto");
	left_own = (struct left){.descriptors = 1, .shared_maps = 5}; /* it is not unloaded */
	cr_assert_eq(fragi_registry_load_pinned(registry, "libgood.so", sha256, &err), 0, "%s",
		     err.text);
	cr_expect_eq(fragi_registry_load_pinned(registry, "libgood.so", sha256, &err), 0);
	cr_expect_eq(fragi_registry_load(registry, "libgood.so", &err), 0, "named without it");
	cr_assert_eq(truncate(path, 0), 0);
	type = fragi_registry_op(registry, "scale", &err);
	cr_assert_not_null(type);
	cr_expect_str_eq(type->headline, "Multiplies a number");
	cr_assert_neq(dladdr((void *)(uintptr_t)type->compute, &info), 0);
	cr_expect_str_eq(info.dli_fname, path);
	fragi_registry_destroy(registry);
}

/* with a sentence that begins so */
static void refuses_pinned(struct fragi_registry *registry, const char *sha256,
			   const char *beginning)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(fragi_registry_load_pinned(registry, "libgood.so", sha256, &err), -EBADMSG);
	cr_expect_eq(strncmp(err.text, beginning, strlen(beginning)), 0, "%s", err.text);
	cr_expect_eq(fragi_err_failure(&err), FRAGI_FAILURE_LIBRARY_DIFFERS);
}

Test(registry, a_library_with_another_sha256_is_refused)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	char path[100], sha256[FRAGI_SHA256_DIGITS + 1], other[sizeof(sha256)], text[600];

	if (!copy_good(path, sha256))
		cr_skip_test("this build has no module crypto");
	strcpy(other, sha256);
	other[0] = other[0] == '0' ? '1' : '0';
	snprintf(
		text, sizeof(text),
		"library libgood.so (%s) is not the one that the graph asks for: it has sha256 %s, and the graph states %s; install that one, or,",
		path, sha256, other);
	refuses_pinned(registry, other, text);
	cr_expect_null(fragi_registry_op(registry, "scale", NULL));
	refuses_pinned(registry, other, text);
	fragi_registry_destroy(registry);
}

Test(registry, a_library_that_was_not_checked_is_not_taken_for_a_pinned_one)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	char path[100], sha256[FRAGI_SHA256_DIGITS + 1], text[300];

	if (!copy_good(path, sha256))
		cr_skip_test("this build has no module crypto");
	cr_expect_eq(fragi_registry_load(registry, "libgood.so", NULL), 0);
	snprintf(text, sizeof(text),
		 "library libgood.so (%s) was loaded before without a check of its sha256; ", path);
	refuses_pinned(registry, sha256, text);
	fragi_registry_destroy(registry);
}

/* What the program brings itself: a plugin, and a loader of files that are no shared objects. */

static int nothing(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static int context_marker;
static const struct frag_op_type own_type = {FRAG_OP_TYPE_INIT, .name = "mine:own.Type",
					     .compute = nothing, .context = &context_marker};
static const struct frag_op_type *const own_ops[] = {&own_type};
static const struct frag_plugin own_plugin = {.struct_size = sizeof(own_plugin),
					      .abi_major = FRAG_ABI_MAJOR,
					      .name = "own",
					      FRAG_OPS(own_ops)};
static unsigned int loads;

static int load_own(const char *path, const struct frag_plugin **out_plugin, struct frag_err *err)
{
	loads++;
	if (strstr(path, "bad") != NULL)
		return frag_err_set(err, -EINVAL, "it is bad");
	*out_plugin = &own_plugin;
	return 0;
}

static int load_none(const char *path, const struct frag_plugin **out_plugin, struct frag_err *err)
{
	return -ENOENT;
}

Test(registry, plugins_of_the_program_are_found)
{
	struct fragi_registry *registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	const struct frag_op_type *type;

	cr_expect_eq(fragi_registry_add_linked(registry, NULL), 0);
	cr_expect_null(fragi_registry_op(registry, "mine:own.Type", NULL));
	cr_expect_eq(frag_plugin_add(&own_plugin, NULL), 0);
	cr_expect_eq(frag_plugin_add(&own_plugin, NULL), 0, "again");
	cr_expect_eq(fragi_registry_add_linked(registry, NULL), 0);
	type = fragi_registry_op(registry, "mine:own.Type", NULL);
	cr_assert_not_null(type);
	cr_expect_eq(type->context, &context_marker);
	fragi_registry_destroy(registry);
	frag_plugin_remove(&own_plugin);
	registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	cr_expect_eq(fragi_registry_add_linked(registry, NULL), 0);
	cr_expect_null(fragi_registry_op(registry, "mine:own.Type", NULL));
	fragi_registry_destroy(registry);
}

Test(registry, a_loader_of_the_program_loads_its_files)
{
	struct frag_loader loader = {FRAG_LOADER_INIT, .suffix = ".own", .load = load_own};
	struct frag_loader other = {FRAG_LOADER_INIT, .suffix = ".own", .load = load_none};
	struct fragi_registry *registry;
	static const char *const files[] = {"good.own", "bad.own", ".own", "own"};
	char path[400];

	for (size_t i = 0; i < FRAG_COUNT_OF(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", scratch, files[i]);
		fclose(fopen(path, "we"));
	}
	registry = make(scratch, FRAGI_LIBRARY_PATHS_NONE, NULL);
	cr_expect_eq(frag_loader_register(&loader, NULL), 0);
	cr_expect_eq(frag_loader_register(&loader, NULL), 0, "again");
	cr_expect_eq(frag_loader_register(&other, NULL), -EEXIST);
	loader.suffix = "own";
	cr_expect_eq(frag_loader_register(&loader, NULL), -EINVAL);
	cr_expect_eq(fragi_registry_load(registry, "good.own", NULL), 0);
	cr_expect_not_null(fragi_registry_op(registry, "mine:own.Type", NULL));
	cr_expect_eq(fragi_registry_load(registry, "good.own", NULL), 0);
	cr_expect_eq(loads, 1, "once for each file");
	refuses(registry, "bad.own", -EINVAL, "library bad.own cannot be loaded: it is bad");
	cr_expect_neq(fragi_registry_load(registry, ".own", NULL), 0, "a name and a suffix");
	cr_expect_neq(fragi_registry_load(registry, "own", NULL), 0);
	cr_expect_eq(loads, 2);
	fragi_registry_destroy(registry);
}
