// SPDX-License-Identifier: Apache-2.0
#include <wire/tls.h>

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <base/alloc.h>
#include <base/secret.h>
#include <wire/certificates.h>
#include <wire/tls_memory.h>

/*
 * The stream's bytes go into one memory BIO and come out of the other one. What is fixed: TLS 1.3,
 * one cipher suite, no tickets, no early data, no compression, no renegotiation; so there is
 * nothing to downgrade to. A key is used with an ephemeral key exchange only (psk_dhe_ke), which is
 * what OpenSSL does unless SSL_OP_ALLOW_NO_DHE_KEX is set.
 *
 * With keys neither side has a certificate. A client must not take one for a proof either: it
 * verifies against an empty store, and both sides check at the end that the key was used.
 */
#define CIPHER_SUITE "TLS_AES_256_GCM_SHA384"
#define GROUPS "X25519:P-256"
#define HANDSHAKE_BYTES_MAX ((size_t)64 << 10)
#define CERTIFICATES_BYTES_MAX (16 << 10)
/* AES-GCM with one key is safe for 2^24.5 full records (RFC 8446, 5.5). */
#define RECORDS_A_KEY (1u << 20)
#define RECORD_BYTES 16384
#define RECORD_HANDSHAKE 22
#define BINDING_LABEL "EXPORTER-Channel-Binding" /* RFC 9266 */
#define ALERT_OFFSET 1000 /* of a received alert in OpenSSL's reasons (SSL_AD_REASON_OFFSET) */

static const unsigned char cipher_suite[2] = {0x13, 0x02};

struct context {
	struct fw_tls tls;
	struct fw_tls_config config;
	SSL_CTX *ssl;
	struct fw_keys *keys; /* NULL: it has certificates */
	size_t users;         /* its sessions, and who has not destroyed it */
};

struct session {
	struct context *context;
	SSL *ssl;
	BIO *in, *out;          /* of ssl */
	size_t handshake_bytes; /* that came */
	uint8_t first[3];       /* bytes that came */
	size_t first_count;     /* of them */
	bool is_proven;
	bool is_plain;                     /* the peer does not speak TLS */
	struct fw_identity identity;       /* what is_proven will make true */
	char offered[FW_KEY_NAME_MAX + 1]; /* the name of the key in use; empty: none */
	struct frag_err refusal;           /* of the peer's certificate */
	bool is_offered_known;
	size_t record_count; /* sent with the present key */
};

static const uint32_t worker_role = FW_ROLE_BIT(FW_ROLE_WORKER);

static struct context *context_of(struct fw_tls *tls)
{
	return (struct context *)tls;
}

static SSL_SESSION *session_of_key(SSL *ssl, const uint8_t *secret)
{
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, cipher_suite);
	SSL_SESSION *psk = SSL_SESSION_new();

	if (psk != NULL && cipher != NULL &&
	    SSL_SESSION_set1_master_key(psk, secret, FW_KEY_BYTES) == 1 &&
	    SSL_SESSION_set_cipher(psk, cipher) == 1 &&
	    SSL_SESSION_set_protocol_version(psk, TLS1_3_VERSION) == 1)
		return psk;
	SSL_SESSION_free(psk);
	return NULL;
}

static void use_key(struct session *session, const struct fw_key *key)
{
	strcpy(session->offered, key->name);
	strcpy(session->identity.name, key->name);
	session->identity.roles = key->roles;
	session->identity.serial = key->serial;
	session->is_offered_known = true;
}

/*
 * The server's side. A name that is not in the file gets a random secret, so a stranger cannot find
 * out which names are: both end with the same alert.
 */
static int on_find_key(SSL *ssl, const unsigned char *name, size_t length, SSL_SESSION **out_psk)
{
	struct session *session = SSL_get_app_data(ssl);
	const struct fw_key *key = fw_keys_find(session->context->keys, name, length);
	uint8_t unknown[FW_KEY_BYTES];

	snprintf(session->offered, sizeof(session->offered), "%.*s",
		 (int)(length < FW_KEY_NAME_MAX ? length : FW_KEY_NAME_MAX), (const char *)name);
	session->is_offered_known = false;
	if (key != NULL)
		use_key(session, key);
	else if (RAND_bytes(unknown, sizeof(unknown)) != 1)
		return 0;
	*out_psk = session_of_key(ssl, key != NULL ? key->secret : unknown);
	return *out_psk != NULL;
}

/* The client's side: the first key of a role that serves. */
static int on_use_key(SSL *ssl, const EVP_MD *digest, const unsigned char **out_name,
		      size_t *out_length, SSL_SESSION **out_psk)
{
	struct session *session = SSL_get_app_data(ssl);
	const struct fw_key *key =
		fw_keys_first(session->context->keys, session->context->config.roles);

	*out_psk = NULL;
	if (key == NULL)
		return 0;
	use_key(session, key);
	*out_psk = session_of_key(ssl, key->secret);
	*out_name = (const unsigned char *)session->offered;
	*out_length = strlen(session->offered);
	(void)digest;
	return *out_psk != NULL;
}

/* Remembers why a certificate is refused: OpenSSL's error queue has no names and dates. */
static int on_verify(int is_accepted, X509_STORE_CTX *ctx)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct session *session = SSL_get_app_data(ssl);

	if (!is_accepted)
		fw_certificates_explain(ctx, &session->context->config, &session->refusal);
	return is_accepted;
}

static void context_unref(struct context *context)
{
	if (--context->users > 0)
		return;
	SSL_CTX_free(context->ssl);
	fw_keys_free(context->keys);
	fragi_free(context);
}

static void end(void *arg)
{
	struct session *session = arg;

	SSL_free(session->ssl);
	context_unref(session->context);
	fragi_free(session);
}

static int begin(struct fw_tls *tls, void **out_session)
{
	struct session *session = fragi_calloc(1, sizeof(*session));

	if (session == NULL)
		return -ENOMEM;
	session->context = context_of(tls);
	session->ssl = SSL_new(session->context->ssl);
	session->in = BIO_new(BIO_s_mem());
	session->out = BIO_new(BIO_s_mem());
	if (session->ssl == NULL || session->in == NULL || session->out == NULL) {
		ERR_clear_error();
		BIO_free(session->in);
		BIO_free(session->out);
		SSL_free(session->ssl);
		fragi_free(session);
		return -ENOMEM;
	}
	BIO_set_mem_eof_return(session->in, -1); /* an empty buffer is not the end */
	session->context->users++;
	SSL_set_bio(session->ssl, session->in, session->out);
	SSL_set_app_data(session->ssl, session);
	if (session->context->config.key_file == NULL && !session->context->config.is_server &&
	    fw_certificates_expect(session->ssl, session->context->config.peer_name) < 0) {
		end(session);
		return -ENOMEM;
	}
	if (session->context->config.is_server)
		SSL_set_accept_state(session->ssl);
	else
		SSL_set_connect_state(session->ssl);
	*out_session = session;
	return 0;
}

/*
 * Whether what came first can be TLS: the header of a record with a handshake or an alert. Until
 * three bytes have come, everything can.
 */
static bool may_be_tls(struct session *session, const uint8_t *bytes, size_t size)
{
	while (size-- > 0 && session->first_count < sizeof(session->first))
		session->first[session->first_count++] = *bytes++;
	if (session->first_count > 0 && session->first[0] != RECORD_HANDSHAKE &&
	    session->first[0] != RECORD_HANDSHAKE - 1)
		return false;
	if (session->first_count > 1 && session->first[1] != 3)
		return false;
	return session->first_count < 3 || (session->first[2] >= 1 && session->first[2] <= 4);
}

static int take(void *arg, const uint8_t *bytes, size_t size, struct frag_err *err)
{
	struct session *session = arg;

	if (!session->is_proven) {
		session->handshake_bytes += size;
		if (!may_be_tls(session, bytes, size)) {
			session->is_plain = true;
			return frag_err_set(
				err, -EKEYREJECTED,
				"it does not speak TLS, so it has no key; give --key-file to both sides");
		}
		if (session->handshake_bytes > HANDSHAKE_BYTES_MAX)
			return frag_err_set(err, -EMSGSIZE,
					    "it sent more than %zu KiB and has proven nothing",
					    HANDSHAKE_BYTES_MAX >> 10);
	}
	if (BIO_write(session->in, bytes, (int)size) != (int)size)
		return frag_err_set(err, -ENOMEM, "there is no memory left to decrypt");
	return 0;
}

/* What an alert of the peer means. Returns negative errno with a sentence. */
static int explain_alert(const struct session *session, int alert, struct frag_err *err)
{
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE:
	case SSL_AD_UNSUPPORTED_CERTIFICATE:
	case SSL_AD_CERTIFICATE_UNKNOWN:
	case SSL_AD_CERTIFICATE_EXPIRED:
	case SSL_AD_CERTIFICATE_REVOKED:
	case SSL_AD_UNKNOWN_CA:
	case SSL_AD_ACCESS_DENIED:
	case TLS13_AD_CERTIFICATE_REQUIRED:
		return frag_err_set(err, -EKEYREJECTED,
				    "it does not accept this side's %s (%s); its log says why",
				    session->context->config.key_file != NULL ? "key"
									      : "certificate",
				    SSL_alert_desc_string_long(alert));
	case SSL_AD_PROTOCOL_VERSION:
		return frag_err_set(
			err, -EKEYREJECTED,
			"it has no key, and this side has one; give --key-file to both sides");
	case SSL_AD_HANDSHAKE_FAILURE:
	case SSL_AD_ILLEGAL_PARAMETER:
	case SSL_AD_DECRYPT_ERROR:
	case SSL_AD_UNKNOWN_PSK_IDENTITY:
		if (session->context->config.key_file == NULL)
			return frag_err_set(
				err, -EKEYREJECTED,
				"it has a key file, and this side a certificate; give both the same kind");
		return frag_err_set(
			err, -EKEYREJECTED,
			"it does not accept the key \"%s\": its key file lacks it, or has another secret for it",
			session->offered);
	default:
		return frag_err_set(err, -EPROTO, "it ended TLS with the alert \"%s\"",
				    SSL_alert_desc_string_long(alert));
	}
}

/* Why TLS cannot go on. Returns negative errno with a sentence. */
static int explain(const struct session *session, struct frag_err *err)
{
	unsigned long error = ERR_peek_error();
	int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
	const char *text = ERR_reason_error_string(error);

	if (reason > ALERT_OFFSET)
		return explain_alert(session, reason - ALERT_OFFSET, err);
	switch (reason) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
		return session->is_offered_known
			       ? frag_err_set(err, -EKEYREJECTED,
					      "it has another secret for the key \"%s\"",
					      session->offered)
			       : frag_err_set(err, -EKEYREJECTED,
					      "its key \"%s\" is not in the key file",
					      session->offered);
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return frag_err_set(err, -EKEYREJECTED, "it has no certificate");
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_BAD_PSK:
		return frag_err_set(err, -EKEYREJECTED, "it offered no key");
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
		if (session->context->config.key_file == NULL)
			return frag_err_set(err, -EKEYREJECTED, "%s", session->refusal.text);
		return frag_err_set(err, -EKEYREJECTED,
				    "it has a certificate in place of the key \"%s\"",
				    session->offered);
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_WRONG_SSL_VERSION:
	case SSL_R_WRONG_VERSION_NUMBER:
		return frag_err_set(err, -EPROTO, "it does not speak TLS 1.3");
	default:
		if (session->is_proven)
			return frag_err_set(err, -EBADMSG,
					    "what it sent was changed on the way (TLS: %s)",
					    text != NULL ? text : "it failed");
		return frag_err_set(err, -EPROTO, "its TLS handshake is wrong (%s)",
				    text != NULL ? text : "it failed");
	}
}

/* Returns 1 when OpenSSL only waits, or negative errno with a sentence. */
static int judge(const struct session *session, int result, struct frag_err *err)
{
	int r, error = SSL_get_error(session->ssl, result);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return 1;
	if (error == SSL_ERROR_ZERO_RETURN)
		return frag_err_set(err, -ESHUTDOWN, "the peer closed the connection");
	r = explain(session, err);
	ERR_clear_error();
	return r;
}

/* Returns 0 when the handshake is over, 1 when more is needed, or negative errno. */
static int shake_hands(struct session *session, struct frag_err *err)
{
	int r = SSL_do_handshake(session->ssl);

	if (r != 1)
		return judge(session, r, err);
	r = 0;
	if (session->context->config.key_file == NULL)
		r = fw_certificates_identify(session->ssl, &session->identity, err);
	else if (SSL_session_reused(session->ssl) != 1 || !session->is_offered_known)
		r = frag_err_set(err, -EKEYREJECTED, "it did not use a key");
	else if (session->context->config.is_server &&
		 !fw_tls_accepts(&session->context->tls, &session->identity))
		r = frag_err_set(err, -EKEYREJECTED, "its key %s is no longer in the key file",
				 session->offered);
	if (r == 0 &&
	    SSL_export_keying_material(session->ssl, session->identity.binding, FW_BINDING_BYTES,
				       BINDING_LABEL, strlen(BINDING_LABEL), NULL, 0, 0) != 1)
		r = frag_err_set(err, -ENOMEM, "there is no memory left for TLS");
	session->is_proven = r == 0;
	return r;
}

static ssize_t read_clear(void *arg, uint8_t *out, size_t size, struct frag_err *err)
{
	struct session *session = arg;
	size_t count = 0;
	int r = 0;

	ERR_clear_error();
	if (!session->is_proven)
		r = shake_hands(session, err);
	if (r == 0) {
		r = SSL_read_ex(session->ssl, out, size, &count);
		if (r == 1)
			return (ssize_t)count;
		r = judge(session, r, err);
	}
	return r < 0 ? r : 0;
}

static int write_clear(void *arg, const uint8_t *bytes, size_t size)
{
	struct session *session = arg;
	size_t written;

	ERR_clear_error();
	session->record_count += size / RECORD_BYTES + 1;
	if (session->record_count > RECORDS_A_KEY &&
	    SSL_key_update(session->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		session->record_count = 0;
	if (SSL_write_ex(session->ssl, bytes, size, &written) == 1 && written == size)
		return 0;
	ERR_clear_error();
	return -ENOMEM; /* the memory BIO takes everything else */
}

/* What a peer that speaks without TLS can read: it prints the sentence and ends with 5. */
static ssize_t refuse_plain(uint8_t **out_bytes)
{
	struct fw_message message = {.kind = FW_REFUSED, .seq = 1};
	size_t size = 0;

	message.refused.failure = (struct fw_failure){
		FRAGI_FAILURE_KEY_REFUSED,
		"it wants a key; give --key-file and a key of its key file", NULL};
	return fw_encode(&message, out_bytes, &size) == 0 ? (ssize_t)size : -ENOMEM;
}

static ssize_t output(void *arg, uint8_t **out_bytes)
{
	struct session *session = arg;
	char *bytes = NULL;
	long size = BIO_get_mem_data(session->out, &bytes);
	uint8_t *copy;

	if (session->is_plain && session->context->config.is_server) {
		session->is_plain = false;
		return refuse_plain(out_bytes);
	}
	if (size <= 0)
		return 0;
	copy = fragi_malloc((size_t)size);
	if (copy == NULL)
		return -ENOMEM;
	memcpy(copy, bytes, (size_t)size);
	(void)BIO_reset(session->out);
	*out_bytes = copy;
	return size;
}

static const struct fw_identity *identity(const void *arg)
{
	const struct session *session = arg;

	return session->is_proven ? &session->identity : NULL;
}

static void finish(void *arg)
{
	struct session *session = arg;

	if (session->is_proven)
		(void)SSL_shutdown(session->ssl);
	ERR_clear_error();
}

static const struct fw_tls_ops ops = {
	.begin = begin,
	.take = take,
	.read = read_clear,
	.write = write_clear,
	.output = output,
	.identity = identity,
	.finish = finish,
	.end = end,
};

static SSL_CTX *make_ssl(const struct fw_tls_config *config)
{
	SSL_CTX *ssl = SSL_CTX_new(TLS_method());

	if (ssl == NULL || SSL_CTX_set_min_proto_version(ssl, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ssl, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(ssl, CIPHER_SUITE) != 1 ||
	    SSL_CTX_set1_groups_list(ssl, GROUPS) != 1 || SSL_CTX_set_num_tickets(ssl, 0) != 1) {
		SSL_CTX_free(ssl);
		return NULL;
	}
	SSL_CTX_set_options(ssl,
			    SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_clear_options(ssl, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_max_early_data(ssl, 0);
	SSL_CTX_set_max_cert_list(ssl, CERTIFICATES_BYTES_MAX);
	if (config->key_file == NULL) {
		SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
				   on_verify);
	} else if (config->is_server) {
		SSL_CTX_set_psk_find_session_callback(ssl, on_find_key);
	} else {
		SSL_CTX_set_verify(ssl, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_psk_use_session_callback(ssl, on_use_key);
	}
	return ssl;
}

/* held: keys that keep their serial; NULL: none */
static int read_files(struct context *context, const struct fw_keys *held, struct frag_err *err)
{
	const struct fw_tls_config *config = &context->config;
	int r;

	if (config->key_file == NULL)
		return fw_certificates_load(context->ssl, config, err);
	r = fw_keys_read(config->key_file, held, &context->keys, err);
	if (r < 0)
		return r;
	if (!config->is_server && fw_keys_first(context->keys, config->roles) == NULL) {
		const char *role = config->roles == worker_role ? "worker" : "client";

		return fragi_err_fail(
			err, FRAGI_FAILURE_USAGE, NULL, -EINVAL,
			"the key file %s has no key for a %s; `fragctl key new --role %s` makes one",
			config->key_file, role, role);
	}
	return 0;
}

static int create(const struct fw_tls_config *config, const struct fw_keys *held,
		  struct fw_tls **out_tls, struct frag_err *err)
{
	struct context *context = fragi_calloc(1, sizeof(*context));
	int r;

	fw_tls_memory_use();
	/* Nothing that a file of the system says may weaken this, or load a module. */
	if (context == NULL || OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1) {
		fragi_free(context);
		return fragi_err_fail(err, FRAGI_FAILURE_OUT_OF_MEMORY, NULL, -ENOMEM,
				      "there is no memory left for TLS");
	}
	context->tls.ops = &ops;
	context->users = 1;
	context->config = *config;
	if (config->roles == 0)
		context->config.roles = worker_role;
	context->ssl = make_ssl(config);
	r = context->ssl == NULL
		    ? fragi_err_fail(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL, -ENOSYS,
				     "the OpenSSL of this machine lacks TLS 1.3 with %s",
				     CIPHER_SUITE)
		    : read_files(context, held, err);
	if (r < 0) {
		ERR_clear_error();
		fw_tls_destroy(&context->tls);
		return r;
	}
	*out_tls = &context->tls;
	return 0;
}

int fw_tls_create(const struct fw_tls_config *config, struct fw_tls **out_tls, struct frag_err *err)
{
	return create(config, NULL, out_tls, err);
}

int64_t fw_tls_left_s(const struct fw_tls *tls)
{
	return fw_certificates_left_s(((const struct context *)tls)->ssl);
}

int fw_tls_read_again(struct fw_tls *tls, struct fw_tls **out_next, struct frag_err *err)
{
	const struct context *context = context_of(tls);

	return create(&context->config, context->keys, out_next, err);
}

void fw_tls_replace(struct fw_tls *tls, struct fw_tls *next)
{
	struct context *context = context_of(tls), *other = context_of(next);
	struct context former = *context;

	context->ssl = other->ssl;
	context->keys = other->keys;
	other->ssl = former.ssl;
	other->keys = former.keys;
	fw_tls_destroy(next);
}

const struct fw_key *fw_tls_own_key(const struct fw_tls *tls)
{
	const struct context *context = (const struct context *)tls;

	return context->keys != NULL ? fw_keys_first(context->keys, context->config.roles) : NULL;
}

bool fw_tls_accepts(const struct fw_tls *tls, const struct fw_identity *peer)
{
	const struct context *context = (const struct context *)tls;

	return peer->serial == 0 || fw_keys_has(context->keys, peer->serial);
}

void fw_tls_destroy(struct fw_tls *tls)
{
	if (tls != NULL)
		context_unref(context_of(tls));
}
