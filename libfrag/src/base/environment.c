// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "environment"
#include <base/environment.h>
#include <base/log.h>
#include <base/may_write.h>
#include <base/trusted_path.h>
#include <base/units.h>

/* Flags of the programs (base/flags.h), then those that are variables only. */
static const char *const known[] = {
	"FRAG_ADDRESS",        "FRAG_APP",          "FRAG_APP_ROOT",
	"FRAG_CONFIG",         "FRAG_FRAGMENTS",    "FRAG_INSECURE",
	"FRAG_KEY_FILE",       "FRAG_LIBRARY_PATH", "FRAG_NAME",
	"FRAG_ONCE",           "FRAG_OUTPUT",       "FRAG_SET",
	"FRAG_START_TIMEOUT",  "FRAG_STATE_DIR",    "FRAG_SUMMARY",
	"FRAG_WORKER_ADDRESS", "FRAG_BEAT_MS",      "FRAG_CONFIG_PATH",
	"FRAG_DEAD_MS",        "FRAG_LOG_LEVEL",    "FRAG_PUMP",
	"FRAG_ALLOW_WRITE",    "FRAG_HOST_USER",    "FRAG_HOST_LIMIT",
	"FRAG_ALLOW_USER",     "FRAG_CA",           "FRAG_CERT",
	"FRAG_CERT_KEY",       "FRAG_DRIVER_NAME",  "FRAG_ENCRYPT_DATA",
	"FRAG_OPENVINO",       "FRAG_INVENTORY",    "FRAG_LABEL",
	"FRAG_LOG_FORMAT",     "FRAG_UCX",          "FRAG_EXPECT_WORKERS",
	"FRAG_LISTEN",         "FRAG_HOST_NAME",    "FRAG_CONTROL",
	"FRAG_TOKEN_FILE",     "FRAG_EVERY",        "FRAG_PYTHON",
	"FRAG_ONNXRUNTIME",    "FRAG_GRAPHS",       "FRAG_ANNOUNCE_ADDRESS",
	"FRAG_TRACK",          "FRAG_TESTS",        "FRAG_FORMAT",
};
/* That programs of frag set for each other, and those of its tests. */
static const char *const internal[] = {
	"FRAG_ADDRESS_FD", "FRAG_LIBRARY_PATHS",      FRAGI_OPERATOR_LOG_LEVEL,
	FRAGI_MAY_WRITE,   FRAGI_ENVIRONMENT_CHECKED,
};
static const char tests[] = "FRAG_TEST_";

static bool is_among(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

void fragi_environment_check(void)
{
	char name[80];
	const char *near;

	if (getenv(FRAGI_ENVIRONMENT_CHECKED) != NULL)
		return;
	for (char *const *variable = environ; *variable != NULL; variable++) {
		if (strncmp(*variable, "FRAG_", 5) != 0 ||
		    strncmp(*variable, tests, sizeof(tests) - 1) == 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*variable, "="), *variable);
		if (is_among(name, known, FRAG_COUNT_OF(known)) ||
		    is_among(name, internal, FRAG_COUNT_OF(internal)))
			continue;
		near = fragi_suggest(name, known, FRAG_COUNT_OF(known));
		log_warn(NULL, "nothing reads the variable %s%s%s%s", name,
			 near != NULL ? "; did you mean " : "", near != NULL ? near : "",
			 near != NULL ? "?" : "");
	}
}

int fragi_environment_trust(const char *file, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = file != NULL ? fragi_trusted_path_check(file, geteuid(), &why) : 0;

	return r == 0 || r == -ENOENT ? 0 : frag_err_set(err, -EINVAL, "--env-file: %s", why.text);
}
