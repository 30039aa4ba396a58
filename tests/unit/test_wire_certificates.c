// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"

#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <base/arena.h>
#include <wire/keys.h>
#include <wire/tls.h>

/*
 * Certificates of all kinds, as two ends without a network see them, and files that hold none. The
 * dates are fixed ones of the past and of a far future.
 */
static FILE *out;
static struct fragi_arena names; /* of files */

#define PAST "20200102030405Z"
#define EARLIER "20190102030405Z"
#define FUTURE "29990102030405Z"
#define LATER "29990203040506Z"

struct kind {
	const char *name, *issuer; /* issuer: NULL: itself */
	const char *common, *units[3], *san;
	const char *from, *until;
};
static const struct kind kinds[] = {
	{"ca", NULL, "authority", {NULL}, NULL, EARLIER, FUTURE},
	{"other-ca", NULL, "another authority", {NULL}, NULL, EARLIER, FUTURE},
	{"old-ca", NULL, "old authority", {NULL}, NULL, EARLIER, PAST},
	{"driver", "ca", "driver", {"worker"}, "DNS:driver.lan,IP:127.0.0.1,IP:::1", PAST, FUTURE},
	{"worker", "ca", "node7", {"worker"}, NULL, PAST, FUTURE},
	{"person", "ca", "a person", {"client", "nothing", "observer"}, NULL, PAST, FUTURE},
	{"nobody", "ca", NULL, {NULL}, NULL, PAST, FUTURE},
	{"odd", "ca", "bell\a", {"work"}, NULL, PAST, FUTURE},
	{"large",
	 "ca",
	 "a234567890123456789012345678901234567890123456789012345678901234",
	 {NULL},
	 NULL,
	 PAST,
	 FUTURE},
	{"expired", "ca", "too old", {"worker"}, "DNS:driver.lan", EARLIER, PAST},
	{"early", "ca", "too young", {"worker"}, "DNS:driver.lan", FUTURE, LATER},
	{"stranger", "other-ca", "stranger", {"worker"}, "DNS:driver.lan", PAST, FUTURE},
	{"by-old", "old-ca", "by an old one", {"worker"}, "DNS:driver.lan", PAST, FUTURE},
	{"itself", NULL, "itself", {"worker"}, "DNS:driver.lan", PAST, FUTURE},
	{"wild", "ca", "wild", {"worker"}, "DNS:*.lan,DNS:dr*.net", PAST, FUTURE},
	{"subject", "ca", "driver.lan", {"worker"}, NULL, PAST, FUTURE},
};
#define KINDS FRAG_COUNT_OF(kinds)
static EVP_PKEY *keys[KINDS];
static X509 *made[KINDS];

static size_t place_of(const char *name)
{
	size_t i = 0;

	while (i < KINDS && strcmp(kinds[i].name, name) != 0)
		i++;
	cr_assert_lt(i, KINDS, "%s", name);
	return i;
}

static void extend(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;

	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, kind, value);
	cr_assert_not_null(extension, "%s", value);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

static const char *file_of(const char *name, const char *kind)
{
	char file[64];

	snprintf(file, sizeof(file), "%s.%s", name, kind);
	return at(file);
}

static void write_key(const char *path, EVP_PKEY *key, const char *password)
{
	FILE *file = fopen(path, "w");

	cr_assert_eq(chmod(path, 0600), 0);
	cr_assert_eq(PEM_write_PrivateKey(file, key, password != NULL ? EVP_aes_128_cbc() : NULL,
					  (const unsigned char *)password,
					  password != NULL ? (int)strlen(password) : 0, NULL, NULL),
		     1);
	fclose(file);
}

static void make(size_t i)
{
	const struct kind *kind = &kinds[i];
	X509 *certificate = made[i] = X509_new();
	size_t by = kind->issuer != NULL ? place_of(kind->issuer) : i;
	X509_NAME *subject = X509_get_subject_name(certificate);
	FILE *file;

	keys[i] = EVP_EC_gen("P-256");
	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), (long)i + 1);
	ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kind->from);
	ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kind->until);
	X509_set_pubkey(certificate, keys[i]);
	if (kind->common != NULL && i % 2 == 0)
		X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
					   (const unsigned char *)kind->common, -1, -1, 0);
	for (size_t k = 0; k < 3 && kind->units[k] != NULL; k++)
		X509_NAME_add_entry_by_txt(subject, "OU", MBSTRING_UTF8,
					   (const unsigned char *)kind->units[k], -1, -1, 0);
	if (kind->common != NULL && i % 2 == 1)
		X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
					   (const unsigned char *)kind->common, -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(made[by]));
	if (strstr(kind->name, "ca") != NULL)
		extend(certificate, made[by], NID_basic_constraints, "critical,CA:TRUE");
	if (kind->san != NULL)
		extend(certificate, made[by], NID_subject_alt_name, kind->san);
	cr_assert_gt(X509_sign(certificate, keys[by], EVP_sha256()), 0);
	file = fopen(file_of(kind->name, "pem"), "w");
	cr_assert_eq(PEM_write_X509(file, certificate), 1);
	fclose(file);
	write_key(file_of(kind->name, "key"), keys[i], NULL);
}

static void begin(void)
{
	umask(022);
	scratch_make();
	for (size_t i = 0; i < KINDS; i++)
		make(i);
}

static void finish(void)
{
	for (size_t i = 0; i < KINDS; i++) {
		X509_free(made[i]);
		EVP_PKEY_free(keys[i]);
	}
	fragi_arena_fini(&names);
	scratch_remove();
}
TestSuite(wire_certificates, .init = begin, .fini = finish);

/* Without the name of the folder. */
static void show(const char *sentence)
{
	for (const char *found; (found = strstr(sentence, scratch)) != NULL;
	     sentence = found + strlen(scratch))
		fprintf(out, "%.*sFOLDER", (int)(found - sentence), sentence);
	fprintf(out, "%s\n", sentence);
}

static int create(bool is_server, const char *name, const char *ca, const char *peer_name,
		  struct fw_tls **out_tls, struct frag_err *err)
{
	const struct fw_tls_config config = {
		.is_server = is_server,
		.certificate = fragi_arena_strdup(&names, file_of(name, "pem")),
		.certificate_key = fragi_arena_strdup(&names, file_of(name, "key")),
		.ca = fragi_arena_strdup(&names, file_of(ca, "pem")),
		.peer_name = peer_name};

	return fw_tls_create(&config, out_tls, err);
}

struct end {
	struct fw_tls *tls;
	void *session;
	int r;
	struct frag_err err;
};

static void advance(struct end *e)
{
	uint8_t clear[64];
	ssize_t n = 1;

	while (n > 0 && e->r == 0)
		n = e->tls->ops->read(e->session, clear, sizeof(clear), &e->err);
	if (e->r == 0 && n < 0)
		e->r = (int)n;
}

static size_t move(struct end *from, struct end *to)
{
	uint8_t *bytes = NULL;
	ssize_t size = from->tls->ops->output(from->session, &bytes);

	cr_assert_geq(size, 0);
	if (size > 0 && to->r == 0)
		to->r = to->tls->ops->take(to->session, bytes, (size_t)size, &to->err);
	if (size > 0)
		free(bytes);
	return (size_t)size;
}

static void show_end(const char *who, struct end *e)
{
	const struct fw_identity *identity = e->tls->ops->identity(e->session);

	fprintf(out, "  %s: ", who);
	if (e->r < 0) {
		fprintf(out, "%s, ", strerrorname_np(-e->r));
		show(e->err.text);
	} else if (identity != NULL) {
		fprintf(out, "'%s', roles %s, serial %d\n", identity->name,
			fw_key_role_name(identity->roles), (int)identity->serial);
	} else {
		fprintf(out, "waits\n");
	}
	e->tls->ops->end(e->session);
	fw_tls_destroy(e->tls);
}

static void meet(const char *client_name, const char *server_name, const char *peer_name,
		 const char *ca)
{
	struct end client = {.err = FRAG_ERR_INIT}, server = {.err = FRAG_ERR_INIT};
	struct frag_err err = FRAG_ERR_INIT;
	size_t moved;

	fprintf(out, "%s meets %s as %s, by %s\n", client_name, server_name, peer_name, ca);
	cr_assert_eq(create(false, client_name, ca, peer_name, &client.tls, &err), 0, "%s",
		     err.text);
	cr_assert_eq(create(true, server_name, "ca", NULL, &server.tls, &err), 0, "%s", err.text);
	cr_assert_eq(client.tls->ops->begin(client.tls, &client.session), 0);
	cr_assert_eq(server.tls->ops->begin(server.tls, &server.session), 0);
	do {
		advance(&client);
		moved = move(&client, &server);
		advance(&server);
		moved += move(&server, &client);
	} while (moved > 0);
	advance(&client);
	show_end("client", &client);
	show_end("server", &server);
}

static const struct {
	const char *client, *server, *peer_name, *ca;
} meetings[] = {
	{"worker", "driver", "driver.lan", "ca"},
	{"person", "driver", "127.0.0.1", "ca"},
	{"nobody", "driver", "::1", "ca"},
	{"odd", "driver", "driver.lan", "ca"},
	{"large", "driver", "driver.lan", "ca"},
	{"worker", "driver", "127.0.0.2", "ca"},
	{"worker", "driver", "driver.net", "ca"},
	{"worker", "driver", "::2", "ca"},
	{"worker", "wild", "driver.lan", "ca"},
	{"worker", "wild", "driver.net", "ca"},
	{"worker", "subject", "driver.lan", "ca"},
	{"worker", "early", "driver.lan", "ca"},
	{"worker", "stranger", "driver.lan", "ca"},
	{"worker", "by-old", "driver.lan", "old-ca"},
	{"worker", "itself", "driver.lan", "ca"},
	{"stranger", "driver", "driver.lan", "ca"},
	{"early", "driver", "driver.lan", "ca"},
	{"itself", "driver", "driver.lan", "ca"},
	{"worker", "driver", "driver.lan", "other-ca"},
};

Test(wire_certificates, who_accepts_whom_and_why_not)
{
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(meetings); i++)
		meet(meetings[i].client, meetings[i].server, meetings[i].peer_name, meetings[i].ca);
	fclose(out);
	expected_compare("transports/certificates", text);
	free(text);
}

static void show_files(const char *what, const char *certificate, const char *key, const char *ca)
{
	const struct fw_tls_config config = {.is_server = true,
					     .certificate = at(certificate),
					     .certificate_key = at(key),
					     .ca = at(ca)};
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_tls *tls = NULL;
	int r = fw_tls_create(&config, &tls, &err);

	cr_expect_eq(ERR_peek_error(), 0, "another one would take it for its own");
	fprintf(out, "%s: %s, class %s, ", what, r < 0 ? strerrorname_np(-r) : "taken",
		fragi_failure_name(fragi_err_failure(&err)));
	show(err.text);
	fw_tls_destroy(tls);
}

static int64_t left_s(const char *file)
{
	struct frag_err err = FRAG_ERR_INIT;
	int64_t left = 7;
	int r = fw_certificate_left_s(at(file), &left, &err);

	if (r < 0) {
		fprintf(out, "how long %s lasts: %s, ", file, strerrorname_np(-r));
		show(err.text);
		cr_expect_eq(left, 7);
	}
	return left;
}

Test(wire_certificates, files_that_hold_none)
{
	const int64_t year_s = 365 * 86400;
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	put("text.pem", "no certificate\n");
	put("text.key", "no key\n");
	cr_assert_eq(chmod(at("text.key"), 0600), 0);
	write_key(at("secret.key"), keys[place_of("driver")], "password");
	write_key(at("open.key"), keys[place_of("driver")], NULL);
	cr_assert_eq(chmod(at("open.key"), 0640), 0);
	put("open.pem", "");
	cr_assert_eq(chmod(at("open.pem"), 0666), 0);
	show_files("all", "driver.pem", "driver.key", "ca.pem");
	show_files("no certificate", "none.pem", "driver.key", "ca.pem");
	show_files("a text for a certificate", "text.pem", "driver.key", "ca.pem");
	show_files("one that others may write", "open.pem", "driver.key", "ca.pem");
	show_files("no key", "driver.pem", "none.key", "ca.pem");
	show_files("a text for a key", "driver.pem", "text.key", "ca.pem");
	show_files("a key with a password", "driver.pem", "secret.key", "ca.pem");
	show_files("a key that others may read", "driver.pem", "open.key", "ca.pem");
	show_files("the key of another one", "driver.pem", "worker.key", "ca.pem");
	show_files("no authority", "driver.pem", "driver.key", "none.pem");
	show_files("a text for an authority", "driver.pem", "driver.key", "text.pem");
	show_files("an authority that others may write", "driver.pem", "driver.key", "open.pem");
	show_files("an expired one", "expired.pem", "expired.key", "ca.pem");
	cr_expect_gt(left_s("driver.pem"), 900 * year_s);
	cr_expect_lt(left_s("expired.pem"), -5 * year_s);
	(void)left_s("none.pem");
	(void)left_s("text.pem");
	fclose(out);
	expected_compare("transports/certificate_files", text);
	free(text);
}

Test(wire_certificates, a_tls_knows_how_long_its_own_lasts)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_tls *tls;

	cr_assert_eq(create(true, "driver", "ca", NULL, &tls, &err), 0);
	cr_expect_gt(fw_tls_left_s(tls), INT64_C(900) * 365 * 86400);
	cr_expect_lt(fw_tls_left_s(tls), INT64_C(1000) * 365 * 86400);
	cr_expect_null(fw_tls_own_key(tls));
	cr_expect(fw_tls_accepts(tls, &(struct fw_identity){.serial = 0}));
	fw_tls_destroy(tls);
}
