// SPDX-License-Identifier: Apache-2.0
#include "key_file.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <base/alloc.h>
#include <wire/tls.h>

/*
 * Two ends without a network: what one puts out the other one takes. Either end may be OpenSSL
 * itself, set up in a way that frag is not.
 */
#define FILE_A "frag-key-1 node7 worker " SECRET_A "\n"

struct end {
	struct key_file file;
	struct fw_tls *tls;
	void *session;
	SSL_CTX *context; /* in place of tls */
	SSL *ssl;
	int r; /* how it ended; 0: it has not */
	char sentence[1024];
	uint8_t clear[4096];
	size_t clear_bytes;
};

static void end_init(struct end *e, bool is_server, const char *keys)
{
	struct fw_tls_config config = {.is_server = is_server, .key_file = e->file.path};

	*e = (struct end){0};
	key_file_init(&e->file, keys);
	cr_assert_eq(fw_tls_create(&config, &e->tls, NULL), 0);
	cr_assert_eq(e->tls->ops->begin(e->tls, &e->session), 0);
}

static void raw_init(struct end *e, SSL_CTX *context)
{
	*e = (struct end){.context = context};
	e->ssl = SSL_new(context);
	SSL_set_bio(e->ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	BIO_set_mem_eof_return(SSL_get_rbio(e->ssl), -1);
}

static void end_fini(struct end *e)
{
	if (e->session != NULL)
		e->tls->ops->end(e->session);
	if (e->tls != NULL)
		key_file_fini(&e->file);
	fw_tls_destroy(e->tls);
	SSL_free(e->ssl);
	SSL_CTX_free(e->context);
}

static void advance(struct end *e)
{
	struct frag_err err = FRAG_ERR_INIT;
	ssize_t n = 1;

	if (e->ssl != NULL) {
		n = SSL_do_handshake(e->ssl);
		e->r = n == 1 || SSL_get_error(e->ssl, (int)n) == SSL_ERROR_WANT_READ ? 0 : -EPROTO;
		if (n == 1) {
			n = SSL_read(e->ssl, e->clear, sizeof(e->clear));
			e->clear_bytes += n > 0 ? (size_t)n : 0;
			if (n <= 0 && SSL_get_error(e->ssl, (int)n) != SSL_ERROR_WANT_READ)
				e->r = -EPROTO;
		}
		return;
	}
	while (n > 0 && e->r == 0) {
		n = e->tls->ops->read(e->session, e->clear + e->clear_bytes,
				      sizeof(e->clear) - e->clear_bytes, &err);
		if (n > 0)
			e->clear_bytes += (size_t)n;
	}
	if (n < 0) {
		e->r = (int)n;
		snprintf(e->sentence, sizeof(e->sentence), "%s", err.text);
	}
}

/* Moves what `from` has to say. Returns how many bytes. */
static size_t move(struct end *from, struct end *to)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t *bytes = NULL;
	ssize_t size;
	char *raw;

	if (from->ssl != NULL) {
		size = BIO_get_mem_data(SSL_get_wbio(from->ssl), &raw);
		bytes = malloc((size_t)size + 1);
		memcpy(bytes, raw, (size_t)size);
		(void)BIO_reset(SSL_get_wbio(from->ssl));
	} else {
		size = from->tls->ops->output(from->session, &bytes);
	}
	cr_assert_geq(size, 0);
	if (size > 0 && to->ssl != NULL)
		cr_assert_eq(BIO_write(SSL_get_rbio(to->ssl), bytes, (int)size), (int)size);
	if (size > 0 && to->tls != NULL && to->r == 0) {
		to->r = to->tls->ops->take(to->session, bytes, (size_t)size, &err);
		snprintf(to->sentence, sizeof(to->sentence), "%s", err.text);
	}
	free(bytes);
	return (size_t)size;
}

static void meet(struct end *client, struct end *server)
{
	size_t moved;

	do {
		if (client->r == 0)
			advance(client);
		moved = move(client, server);
		if (server->r == 0)
			advance(server);
		moved += move(server, client);
	} while (moved > 0);
	if (client->r == 0)
		advance(client);
}

static const struct fw_identity *identity(const struct end *e)
{
	return e->tls->ops->identity(e->session);
}

Test(wire_tls, a_common_key_joins_two_ends)
{
	struct end client, server;
	const uint8_t question[] = "who is there?", answer[] = "you know";

	end_init(&client, false, "frag-key-1 c client " SECRET_B "\n" FILE_A);
	end_init(&server, true, "frag-key-1 other any " SECRET_B "\n" FILE_A);
	cr_expect_null(identity(&client));
	meet(&client, &server);
	cr_assert_eq(client.r, 0, "%s", client.sentence);
	cr_assert_eq(server.r, 0, "%s", server.sentence);
	cr_assert_not_null(identity(&server));
	cr_expect_str_eq(identity(&server)->name, "node7");
	cr_expect_eq(identity(&server)->roles, fw_key_roles("worker"));
	cr_expect_str_eq(identity(&client)->name, "node7");
	cr_assert_eq(client.tls->ops->write(client.session, question, sizeof(question)), 0);
	cr_assert_eq(server.tls->ops->write(server.session, answer, sizeof(answer)), 0);
	meet(&client, &server);
	cr_expect_str_eq((const char *)server.clear, "who is there?");
	cr_expect_str_eq((const char *)client.clear, "you know");
	client.tls->ops->finish(client.session);
	meet(&client, &server);
	cr_expect_eq(server.r, -ESHUTDOWN);
	end_fini(&client);
	end_fini(&server);
}

/* A man in the middle, who has the key, is the server of one and the client of the other one. */
Test(wire_tls, what_a_connection_is_bound_by_is_known_at_its_ends_only)
{
	struct end client[2], server[2];
	const struct fw_identity *ends[4];
	static const uint8_t none[FW_BINDING_BYTES];

	for (int i = 0; i < 2; i++) {
		end_init(&client[i], false, FILE_A);
		end_init(&server[i], true, FILE_A);
		meet(&client[i], &server[i]);
		ends[i] = identity(&client[i]);
		ends[2 + i] = identity(&server[i]);
		cr_assert(ends[i] != NULL && ends[2 + i] != NULL);
	}
	for (int i = 0; i < 2; i++) {
		cr_expect_arr_eq(ends[i]->binding, ends[2 + i]->binding, FW_BINDING_BYTES);
		cr_expect_arr_neq(ends[i]->binding, ends[2 + !i]->binding, FW_BINDING_BYTES);
		cr_expect_arr_neq(ends[i]->binding, none, FW_BINDING_BYTES);
	}
	for (int i = 0; i < 2; i++) {
		end_fini(&client[i]);
		end_fini(&server[i]);
	}
}

/* Whether a name is in the file cannot be told from outside: both alerts are the same. */
Test(wire_tls, a_peer_without_the_key_is_refused_in_words_on_both_ends)
{
	static const struct {
		const char *keys, *server;
	} clients[] = {
		{"frag-key-1 node7 any " SECRET_B, "it has another secret for the key \"node7\""},
		{"frag-key-1 node8 any " SECRET_A, "its key \"node8\" is not in the key file"},
	};

	for (size_t i = 0; i < 2; i++) {
		struct end client, server;

		end_init(&client, false, clients[i].keys);
		end_init(&server, true, FILE_A);
		meet(&client, &server);
		cr_expect_eq(server.r, -EKEYREJECTED);
		cr_expect_str_eq(server.sentence, clients[i].server);
		cr_expect_eq(client.r, -EKEYREJECTED);
		cr_expect(strstr(client.sentence, "it does not accept the key \"node") != NULL,
			  "%s", client.sentence);
		cr_expect_null(identity(&server));
		cr_expect_null(identity(&client));
		end_fini(&client);
		end_fini(&server);
	}
}

/* What is not TLS gets an answer in clear, which a frag program prints. */
Test(wire_tls, a_peer_without_tls_is_refused_in_clear)
{
	const struct fw_message hello = {.kind = FW_BEAT, .seq = 1};
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *refused = NULL;
	uint8_t *frame, *reply;
	struct end server;
	ssize_t reply_bytes;
	size_t size;

	end_init(&server, true, FILE_A);
	cr_assert_eq(fw_encode(&hello, &frame, &size), 0);
	cr_expect_eq(server.tls->ops->take(server.session, frame, size, &err), -EKEYREJECTED);
	cr_expect_str_eq(err.text,
			 "it does not speak TLS, so it has no key; give --key-file to both sides");
	reply_bytes = server.tls->ops->output(server.session, &reply);
	cr_assert_gt(reply_bytes, 4);
	cr_assert_eq(fw_decode(reply + 4, (size_t)reply_bytes - 4, &refused, &err), 0);
	cr_expect_eq(refused->kind, FW_REFUSED);
	cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_KEY_REFUSED);
	fw_message_free(refused);
	fragi_free(frame);
	fragi_free(reply);
	end_fini(&server);
}

static const uint8_t secret_a[32] = {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
				     0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
				     0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

static int use_secret_a(SSL *ssl, const EVP_MD *digest, const unsigned char **out_name,
			size_t *out_length, SSL_SESSION **out_psk)
{
	static const unsigned char suite[] = {0x13, 0x02};

	*out_psk = SSL_SESSION_new();
	SSL_SESSION_set1_master_key(*out_psk, secret_a, sizeof(secret_a));
	SSL_SESSION_set_cipher(*out_psk, SSL_CIPHER_find(ssl, suite));
	SSL_SESSION_set_protocol_version(*out_psk, TLS1_3_VERSION);
	*out_name = (const unsigned char *)"node7";
	*out_length = 5;
	return 1;
}

static SSL_CTX *client_context(void)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	SSL_CTX_set_psk_use_session_callback(context, use_secret_a);
	return context;
}

static void expect_refused(SSL_CTX *context, bool accepted)
{
	struct end client, server;

	raw_init(&client, context);
	SSL_set_connect_state(client.ssl);
	end_init(&server, true, FILE_A);
	meet(&client, &server);
	cr_expect_eq(server.r == 0 && identity(&server) != NULL, accepted, "%s", server.sentence);
	cr_expect_eq(server.r < 0 && server.sentence[0] != '\0', !accepted);
	end_fini(&client);
	end_fini(&server);
}

Test(wire_tls, a_client_of_openssl_with_the_key_is_accepted)
{
	expect_refused(client_context(), true);
}

/* A key alone, without an ephemeral exchange, would open what was recorded once the key leaks. */
Test(wire_tls, a_key_without_an_ephemeral_exchange_is_refused)
{
	SSL_CTX *context = client_context();

	SSL_CTX_set_options(context, SSL_OP_ALLOW_NO_DHE_KEX);
	cr_assert_eq(SSL_CTX_set1_groups_list(context, "ffdhe8192"), 1);
	expect_refused(context, false);
}

/* Nor where a program has let OpenSSL read a file that allows it. */
Test(wire_tls, what_a_file_of_the_system_allows_is_refused)
{
	struct key_file file;
	SSL_CTX *context;

	key_file_init(&file, "openssl_conf = all\n[all]\nssl_conf = tls\n"
			     "[tls]\nsystem_default = weak\n"
			     "[weak]\nOptions = AllowNoDHEKEX, UnsafeLegacyRenegotiation\n");
	setenv("OPENSSL_CONF", file.path, 1);
	cr_assert_eq(OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, NULL), 1);
	context = client_context();
	cr_assert((SSL_CTX_get_options(context) & SSL_OP_ALLOW_NO_DHE_KEX) != 0);
	cr_assert_eq(SSL_CTX_set1_groups_list(context, "ffdhe8192"), 1);
	expect_refused(context, false);
	key_file_fini(&file);
}

Test(wire_tls, older_versions_and_other_suites_are_refused)
{
	SSL_CTX *context = client_context();

	SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
	expect_refused(context, false);
	context = client_context();
	SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
	expect_refused(context, false);
}

Test(wire_tls, a_client_without_a_key_is_refused)
{
	expect_refused(SSL_CTX_new(TLS_client_method()), false);
}

static void sign_itself(SSL_CTX *context)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();

	X509_set_version(certificate, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	cr_assert_gt(X509_sign(certificate, key, EVP_sha256()), 0);
	cr_assert_eq(SSL_CTX_use_certificate(context, certificate), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(context, key), 1);
	X509_free(certificate);
	EVP_PKEY_free(key);
}

/* Any certificate would do for a client that does not insist on its key. */
Test(wire_tls, a_certificate_is_no_proof_to_a_client_with_a_key)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	struct end client, server;

	sign_itself(context);
	raw_init(&server, context);
	SSL_set_accept_state(server.ssl);
	end_init(&client, false, FILE_A);
	meet(&client, &server);
	cr_expect_eq(client.r, -EKEYREJECTED);
	cr_expect_str_eq(client.sentence, "it has a certificate in place of the key \"node7\"");
	cr_expect_null(identity(&client));
	end_fini(&client);
	end_fini(&server);
}

/* Every byte that is changed on the way ends the connection with a sentence. */
Test(wire_tls, a_changed_byte_ends_the_connection)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct end client, server;
	uint8_t *bytes, clear[64];
	ssize_t size;

	for (ssize_t i = 0;; i++) {
		end_init(&client, false, FILE_A);
		end_init(&server, true, FILE_A);
		meet(&client, &server);
		cr_assert_eq(client.tls->ops->write(client.session, (const uint8_t *)"go", 2), 0);
		size = client.tls->ops->output(client.session, &bytes);
		if (i < size) {
			bytes[i] ^= 1;
			if (server.tls->ops->take(server.session, bytes, (size_t)size, &err) == 0)
				cr_expect_leq(server.tls->ops->read(server.session, clear,
								    sizeof(clear), &err),
					      0);
			/* a longer record waits for its end, and the deadline comes first */
			cr_expect(err.text[0] != '\0' || i == 3 || i == 4, "byte %zd", i);
		}
		fragi_free(bytes);
		end_fini(&client);
		end_fini(&server);
		if (i >= size)
			break;
	}
}

Test(wire_tls, a_stranger_sends_no_more_than_a_handshake_needs)
{
	uint8_t record[4096] = {22, 3, 1, 64, 0, 1, 0, 255, 255};
	struct frag_err err = FRAG_ERR_INIT;
	struct end server;
	size_t sent = 0;
	int r = 0;

	end_init(&server, true, FILE_A);
	while (r == 0 && sent < 1 << 20) {
		r = server.tls->ops->take(server.session, record, sizeof(record), &err);
		sent += sizeof(record);
	}
	cr_expect_eq(r, -EMSGSIZE);
	cr_expect_str_eq(err.text, "it sent more than 64 KiB and has proven nothing");
	cr_expect_leq(sent, (64 << 10) + sizeof(record));
	end_fini(&server);
}

static int reload(struct fw_tls *tls, struct frag_err *err)
{
	struct fw_tls *next;
	int r = fw_tls_read_again(tls, &next, err);

	if (r == 0)
		fw_tls_replace(tls, next);
	return r;
}

Test(wire_tls, a_file_that_is_read_again_brings_and_removes_keys)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct end client, server;
	struct fw_identity joined;

	end_init(&client, false, FILE_A);
	end_init(&server, true, FILE_A);
	meet(&client, &server);
	joined = *identity(&server);
	cr_expect(fw_tls_accepts(server.tls, &joined));
	key_file_write(&server.file, "no key\n");
	cr_expect_eq(reload(server.tls, &err), -EINVAL);
	cr_expect(fw_tls_accepts(server.tls, &joined), "the former keys stay");
	key_file_write(&server.file, "frag-key-1 new any " SECRET_B "\n" FILE_A);
	cr_expect_eq(reload(server.tls, &err), 0);
	cr_expect(fw_tls_accepts(server.tls, &joined));
	key_file_write(&server.file, "frag-key-1 new any " SECRET_B "\n");
	cr_expect_eq(reload(server.tls, &err), 0);
	cr_expect(!fw_tls_accepts(server.tls, &joined));
	end_fini(&client);
	end_init(&client, false, "frag-key-1 new any " SECRET_B "\n");
	server.tls->ops->end(server.session);
	cr_assert_eq(server.tls->ops->begin(server.tls, &server.session), 0);
	server.r = 0;
	meet(&client, &server);
	cr_expect_eq(server.r, 0, "%s", server.sentence);
	cr_expect_str_eq(identity(&server)->name, "new");
	end_fini(&client);
	end_fini(&server);
}

/* Else a handshake that a thief holds open would outlive the removal of the key that he has. */
Test(wire_tls, a_key_that_is_removed_during_the_handshake_proves_nothing)
{
	static const char *const files[] = {FILE_A "frag-key-1 new any " SECRET_B "\n",
					    "frag-key-1 new any " SECRET_B "\n"};
	struct end client, server;

	for (int is_gone = 0; is_gone < 2; is_gone++) {
		end_init(&client, false, FILE_A);
		end_init(&server, true, FILE_A);
		advance(&client);
		cr_assert_gt(move(&client, &server), 0);
		advance(&server);
		cr_assert_gt(move(&server, &client), 0);
		key_file_write(&server.file, files[is_gone]);
		cr_assert_eq(reload(server.tls, NULL), 0);
		meet(&client, &server);
		cr_expect_eq(identity(&server) == NULL, is_gone);
		cr_expect_eq(server.r, is_gone ? -EKEYREJECTED : 0);
		cr_expect_str_eq(server.sentence,
				 is_gone ? "its key node7 is no longer in the key file" : "");
		end_fini(&client);
		end_fini(&server);
	}
}

Test(wire_tls, a_worker_needs_a_key_for_workers)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_tls *tls = NULL;
	struct key_file file;

	key_file_init(&file, "frag-key-1 c client " SECRET_A "\n");
	cr_expect_eq(fw_tls_create(&(struct fw_tls_config){.key_file = file.path}, &tls, &err),
		     -EINVAL);
	cr_expect(strstr(err.text, "has no key for a worker") != NULL, "%s", err.text);
	cr_expect_null(tls);
	key_file_fini(&file);
}
