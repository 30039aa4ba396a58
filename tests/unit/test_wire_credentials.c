// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <wire/credentials.c> /* over keys that this file plays */

#include "logged.h"

/* Keys of a daemon: when they are read, who is told of them, and of what people are warned. */
static FILE *out;
static uv_loop_t loop;
static struct fw_credentials credentials;
static struct fw_tls *const first = (struct fw_tls *)&loop, *const next = (struct fw_tls *)&out;
static int create_result, read_result, owner;
static int64_t left_s;

int fw_tls_create(const struct fw_tls_config *config, struct fw_tls **out_tls, struct frag_err *err)
{
	fprintf(out, "  reads %s\n",
		config->key_file != NULL ? config->key_file : config->certificate);
	if (create_result < 0)
		return frag_err_set(err, create_result, "no such file");
	*out_tls = first;
	return 0;
}

int fw_tls_read_again(struct fw_tls *tls, struct fw_tls **out_next, struct frag_err *err)
{
	cr_expect_eq(tls, first);
	fprintf(out, "  reads again\n");
	if (read_result < 0)
		return frag_err_set(err, read_result, "no key in it");
	*out_next = next;
	return 0;
}

int64_t fw_tls_left_s(const struct fw_tls *tls)
{
	fprintf(out, "  looks at the %s\n", tls == first ? "first" : "next");
	return left_s;
}

void fw_tls_replace(struct fw_tls *tls, struct fw_tls *with)
{
	cr_expect(tls == first && with == next);
	fprintf(out, "  replaces them\n");
}

void fw_tls_destroy(struct fw_tls *tls)
{
	fprintf(out, "  gives back %s\n", tls == first ? "them" : "nothing");
}

static void on_changed(void *arg, struct fw_tls *with)
{
	cr_expect(arg == &owner && with == next);
	fprintf(out, "  owner: changed\n");
}

static void on_kept(void *arg)
{
	cr_expect_eq(arg, &owner);
	fprintf(out, "  owner: kept\n");
}

static void begin(const struct fw_tls_config *config, void (*kept)(void *arg))
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	cr_assert_eq(uv_loop_init(&loop), 0);
	credentials = (struct fw_credentials){.tls = NULL};
	logged_begin();
	r = fw_credentials_open(&credentials, &loop, config, on_changed, kept, &owner, &err);
	logged_end(out);
	fprintf(out, "  opened: %s %s\n", r < 0 ? strerrorname_np(-r) : "0", err.text);
}

static void finish(void)
{
	fw_credentials_close(&credentials);
	fw_credentials_close(&credentials);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&loop), 0);
	fw_credentials_fini(&credentials);
	cr_expect_null(credentials.tls);
}

static void hang_up(void)
{
	fprintf(out, "SIGHUP\n");
	logged_begin();
	credentials.hangup.signal_cb(&credentials.hangup, SIGHUP);
	logged_end(out);
	fprintf(out, "  %s\n",
		credentials.why_kept[0] != '\0' ? credentials.why_kept : "all is well");
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(wire_credentials, lives)
{
	static const struct fw_tls_config none = {.is_server = true}, key = {.key_file = "key"},
					  certificate = {.certificate = "cert.pem"};
	const uint64_t day_ms = 86400000;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	left_s = INT64_MAX;
	fprintf(out, "none\n");
	begin(&none, on_kept);
	cr_expect_null(credentials.tls);
	finish();
	fprintf(out, "a key file that is not there\n");
	create_result = -ENOENT;
	begin(&key, on_kept);
	finish();
	create_result = 0;
	fprintf(out, "a key file\n");
	begin(&key, on_kept);
	cr_expect(uv_is_active((uv_handle_t *)&credentials.hangup) &&
		  credentials.hangup.signum == SIGHUP);
	cr_expect_eq(uv_timer_get_repeat(&credentials.daily), day_ms);
	cr_expect(uv_timer_get_due_in(&credentials.daily) > day_ms - 60000 &&
		  uv_timer_get_due_in(&credentials.daily) <= day_ms);
	hang_up();
	read_result = -EBADMSG;
	hang_up();
	fprintf(out, "nobody takes them\n");
	logged_begin();
	fw_credentials_keep(&credentials, "the driver refuses it");
	logged_end(out);
	fw_credentials_use(&credentials, next);
	cr_expect_str_eq(credentials.why_kept, "");
	finish();
	fprintf(out, "a certificate, and an owner who does not ask\n");
	begin(&certificate, NULL);
	hang_up();
	read_result = 0;
	hang_up();
	finish();
	compare("transports/credentials", &text);
}

Test(wire_credentials, days)
{
	static const struct fw_tls_config certificate = {.certificate = "cert.pem"};
	static const int64_t left[] = {-90000, 0, 86399, 86400, 30 * 86400 - 1, 30 * 86400};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(left); i++) {
		left_s = left[i];
		fprintf(out, "%lld s\n", (long long)left_s);
		begin(&certificate, on_kept);
		logged_begin();
		credentials.daily.timer_cb(&credentials.daily);
		logged_end(out);
		finish();
	}
	compare("transports/credentials_days", &text);
}

Test(wire_credentials, flags_that_fit)
{
	static const char flag[] = "x";
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (int k = 0; k < 32; k++) {
		const struct fw_tls_config config = {.certificate = (k & 1) != 0 ? flag : NULL,
						     .certificate_key = (k & 2) != 0 ? flag : NULL,
						     .ca = (k & 4) != 0 ? flag : NULL,
						     .key_file = (k & 8) != 0 ? flag : NULL};
		struct frag_err err = FRAG_ERR_INIT;
		int r = fw_credentials_check(&config, (k & 16) != 0, &err);

		fprintf(out, "%s%s%s%s%s: given %d, %s %s\n", (k & 1) != 0 ? "--cert " : "",
			(k & 2) != 0 ? "--cert-key " : "", (k & 4) != 0 ? "--ca " : "",
			(k & 8) != 0 ? "--key-file " : "", (k & 16) != 0 ? "--insecure" : "",
			fw_credentials_given(&config), r < 0 ? strerrorname_np(-r) : "0", err.text);
	}
	compare("transports/credentials_flags", &text);
}
