// SPDX-License-Identifier: Apache-2.0
#include <wire/certificates.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <base/printable.h>
#include <base/secret.h>
#include <base/trusted_path.h>

#define KEY_FILE_MAX ((size_t)64 << 10)

static int fail_by(unsigned long error, struct frag_err *err, const char *what, const char *path)
{
	const char *why = ERR_reason_error_string(error);

	if (ERR_GET_LIB(error) == ERR_LIB_SYS)
		why = frag_strerror(-ERR_GET_REASON(error));
	fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -EINVAL, "cannot use %s as %s: %s",
		       path, what, why != NULL ? why : "it is not in PEM format");
	ERR_clear_error();
	return -EINVAL;
}

/* The first error since ERR_clear_error is the reason: those after it only pass it on. */
static int fail(struct frag_err *err, const char *what, const char *path)
{
	return fail_by(ERR_peek_error(), err, what, path);
}

/* A key with a password would need somebody who types it at every start. */
static int no_password(char *out, int size, int writes, void *arg)
{
	(void)out;
	(void)size;
	(void)writes;
	(void)arg;
	return -1;
}

static int load_key(SSL_CTX *ssl, const char *path, struct frag_err *err)
{
	char *text = fragi_secret_alloc(KEY_FILE_MAX);
	EVP_PKEY *key = NULL;
	BIO *bio = NULL;
	ssize_t size;
	int r;

	if (text == NULL)
		return fragi_err_fail(err, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, -ENOMEM,
				      "there is no memory left to read %s", path);
	size = fw_secret_file_read(path, "", text, KEY_FILE_MAX, err);
	r = size < 0 ? (int)size : 0;
	if (r == 0) {
		bio = BIO_new_mem_buf(text, (int)size);
		key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
		if (key == NULL || SSL_CTX_use_PrivateKey(ssl, key) != 1)
			r = fail_by(
				ERR_peek_last_error(), err,
				"the key of the certificate (without a password, of that certificate)",
				path);
	}
	EVP_PKEY_free(key);
	BIO_free(bio);
	fragi_secret_free(text, KEY_FILE_MAX);
	return r;
}

static void print_date(const ASN1_TIME *time, char *out, size_t size)
{
	struct tm date;

	if (ASN1_TIME_to_tm(time, &date) != 1 ||
	    strftime(out, size, "%Y-%m-%d %H:%M UTC", &date) == 0)
		snprintf(out, size, "?");
}

int64_t fw_certificates_left_s(const SSL_CTX *ssl)
{
	const X509 *own = SSL_CTX_get0_certificate(ssl);
	int days, seconds;

	if (own == NULL)
		return INT64_MAX;
	if (ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(own)) != 1)
		return 0;
	return (int64_t)days * 86400 + seconds;
}

int fw_certificate_left_s(const char *file, int64_t *out_left_s, struct frag_err *err)
{
	SSL_CTX *ssl = SSL_CTX_new(TLS_method());
	int r = 0;

	if (ssl == NULL)
		return -ENOMEM;
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ssl, file) == 1)
		*out_left_s = fw_certificates_left_s(ssl);
	else
		r = fail(err, "the certificate (--cert)", file);
	SSL_CTX_free(ssl);
	return r;
}

int fw_certificates_load(SSL_CTX *ssl, const struct fw_tls_config *config, struct frag_err *err)
{
	const char *const public[] = {config->certificate, config->ca};
	char date[32];
	int r;

	for (size_t i = 0; i < FRAG_COUNT_OF(public); i++) {
		struct frag_err why = FRAG_ERR_INIT;

		r = fragi_trusted_path_check(public[i], geteuid(), &why);
		if (r < 0 && r != -ENOENT) /* which OpenSSL words below */
			return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, r,
					      "the certificates: frag %s", why.text);
	}
	ERR_clear_error();
	if (SSL_CTX_use_certificate_chain_file(ssl, config->certificate) != 1)
		return fail(err, "the certificate (--cert)", config->certificate);
	r = load_key(ssl, config->certificate_key, err);
	if (r < 0)
		return r;
	ERR_clear_error();
	if (SSL_CTX_load_verify_file(ssl, config->ca) != 1)
		return fail(err, "the authority's certificate (--ca)", config->ca);
	if (fw_certificates_left_s(ssl) > 0)
		return 0;
	print_date(X509_get0_notAfter(SSL_CTX_get0_certificate(ssl)), date, sizeof(date));
	return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, -EKEYEXPIRED,
			      "the certificate %s is expired since %s; make a new one",
			      config->certificate, date);
}

int fw_certificates_expect(SSL *ssl, const char *name)
{
	struct in6_addr address;
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	bool is_ip =
		inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1;
	int r;

	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	r = is_ip ? X509_VERIFY_PARAM_set1_ip_asc(param, name)
		  : X509_VERIFY_PARAM_set1_host(param, name, 0);
	return r == 1 ? 0 : -ENOMEM;
}

/* The i-th field of that kind in the subject. Returns whether it is there and a usable text. */
static bool subject_text(const X509 *certificate, int kind, int *position, char *out, size_t size)
{
	const X509_NAME *subject = X509_get_subject_name(certificate);
	unsigned char *text = NULL;
	int length;

	*position = X509_NAME_get_index_by_NID(subject, kind, *position);
	if (*position < 0)
		return false;
	length = ASN1_STRING_to_UTF8(
		&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, *position)));
	out[0] = '\0';
	if (length > 0 && (size_t)length < size && memchr(text, 0, (size_t)length) == NULL) {
		memcpy(out, text, (size_t)length);
		out[length] = '\0';
		fragi_make_printable(out, '?');
	}
	OPENSSL_free(text);
	return true;
}

static void name_of(const X509 *certificate, char *out, size_t size)
{
	int position = -1;

	out[0] = '\0';
	if (certificate != NULL)
		(void)subject_text(certificate, NID_commonName, &position, out, size);
	if (out[0] == '\0')
		snprintf(out, size, "without a name");
}

int fw_certificates_identify(SSL *ssl, struct fw_identity *out, struct frag_err *err)
{
	const X509 *certificate = SSL_get0_peer_certificate(ssl);
	char unit[sizeof(out->name)];
	int position = -1;

	if (certificate == NULL || SSL_get_verify_result(ssl) != X509_V_OK)
		return frag_err_set(err, -EKEYREJECTED, "it has no certificate");
	*out = (struct fw_identity){0};
	name_of(certificate, out->name, sizeof(out->name));
	while (subject_text(certificate, NID_organizationalUnitName, &position, unit, sizeof(unit)))
		out->roles |= fw_key_roles(unit);
	return 0;
}

void fw_certificates_explain(X509_STORE_CTX *ctx, const struct fw_tls_config *config,
			     struct frag_err *err)
{
	const X509 *certificate = X509_STORE_CTX_get_current_cert(ctx);
	int error = X509_STORE_CTX_get_error(ctx);
	char name[64], date[32];

	/* The one whose date is wrong may be the authority's; all else is said of the peer's own. */
	if (error != X509_V_ERR_CERT_HAS_EXPIRED && error != X509_V_ERR_CERT_NOT_YET_VALID)
		certificate = X509_STORE_CTX_get0_cert(ctx);
	name_of(certificate, name, sizeof(name));
	switch (error) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		print_date(X509_get0_notAfter(certificate), date, sizeof(date));
		frag_err_set(err, -EKEYREJECTED, "its certificate \"%s\" is expired since %s", name,
			     date);
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		print_date(X509_get0_notBefore(certificate), date, sizeof(date));
		frag_err_set(err, -EKEYREJECTED,
			     "its certificate \"%s\" is not valid before %s; is the clock right?",
			     name, date);
		break;
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_CERT_SIGNATURE_FAILURE:
		frag_err_set(err, -EKEYREJECTED,
			     "its certificate \"%s\" is not signed by the authority of --ca %s",
			     name, config->ca);
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		frag_err_set(
			err, -EKEYREJECTED,
			"its certificate \"%s\" is not for %s; give --driver-name a name that is in it (SAN)",
			name, config->peer_name);
		break;
	default:
		frag_err_set(err, -EKEYREJECTED, "its certificate \"%s\" is not accepted: %s", name,
			     X509_verify_cert_error_string(error));
	}
}
