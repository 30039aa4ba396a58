// SPDX-License-Identifier: Apache-2.0
#include <workerd/renewal.h>

#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "keys"
#include <base/log.h>
#include <base/sentence.h>

static void keep(struct wrk_renewal *renewal, const char *why)
{
	const struct fw_tls_config *config = &renewal->credentials->config;
	char text[1024];

	fragi_sentence(
		text, sizeof(text),
		"the driver does not take the key %s of %s: %s; correct that file, or add the key to the driver's, then send SIGHUP again",
		fw_tls_own_key(renewal->credentials->tls)->name, config->key_file, why);
	fw_tls_settle(renewal->credentials->tls, false);
	fw_credentials_keep(renewal->credentials, text);
}

/* The answer is there; what else the connection brings does not matter. */
static void finish(struct wrk_renewal *renewal)
{
	struct wrk_driver *driver = renewal->driver;

	renewal->driver = NULL;
	wrk_driver_finish(driver);
}

static void on_connected(void *arg, uint64_t id, const char *local_address, const char *proof)
{
	struct wrk_renewal *renewal = arg;
	struct fw_message message = {.kind = FW_HELLO};

	(void)id;
	(void)local_address;
	snprintf(renewal->proof, sizeof(renewal->proof), "%s", proof);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = FW_ROLE_REPORTER,
					  .session = renewal->session,
					  .version = FRAG_VERSION};
	memcpy(message.hello.secret, renewal->secret, FW_SECRET_BYTES);
	memcpy(message.hello.binding, renewal->binding, FW_BINDING_BYTES);
	wrk_driver_send(renewal->driver, &message);
	explicit_bzero(message.hello.secret, FW_SECRET_BYTES);
}

static void on_failed(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	struct wrk_renewal *renewal = arg;

	(void)id;
	(void)failure;
	renewal->driver = NULL;
	keep(renewal, why);
}

static void on_message(void *arg, uint64_t id, struct fw_message *message)
{
	struct wrk_renewal *renewal = arg;

	(void)id;
	if (message->kind == FW_WELCOME) {
		log_info(NULL, "the driver takes the key %s, and the session goes on with it",
			 fw_tls_own_key(renewal->credentials->tls)->name);
		fw_tls_settle(renewal->credentials->tls, true);
		finish(renewal);
		renewal->renewed(renewal->arg, renewal->proof);
	} else if (message->kind == FW_REFUSED &&
		   message->refused.failure.code == FRAGI_FAILURE_SESSION_REFUSED) {
		log_error(NULL,
			  "leaves its session for one with the key %s, whose driver refuses it: %s",
			  fw_tls_own_key(renewal->credentials->tls)->name,
			  message->refused.failure.sentence);
		fw_tls_settle(renewal->credentials->tls, true);
		finish(renewal);
		renewal->refused(renewal->arg, message->refused.failure.sentence);
	} else if (message->kind == FW_REFUSED) {
		finish(renewal);
		keep(renewal, message->refused.failure.sentence);
	}
	fw_message_free(message);
}

static void on_freed(void *arg, struct wrk_driver *driver)
{
	struct wrk_renewal *renewal = arg;

	if (renewal->driver == driver)
		renewal->driver = NULL;
}

static const struct wrk_driver_ops ops = {
	.connected = on_connected,
	.failed = on_failed,
	.message = on_message,
	.lost = on_failed,
	.freed = on_freed,
};

void wrk_renewal_begin(struct wrk_renewal *renewal, struct wrk_driver *present)
{
	struct fw_tls *tls = renewal->credentials->tls;
	const struct fw_connection_options options = {.tls = tls, .users = renewal->users};
	bool is_cut = renewal->driver != NULL; /* the driver may have taken that key already */
	int r;

	if (is_cut)
		finish(renewal);
	if (present == NULL || (!is_cut && wrk_driver_has_valid_key(present))) {
		fw_tls_settle(tls, true);
		return;
	}
	r = wrk_driver_open(renewal->loop, renewal->address, 0, &options, &ops, renewal,
			    &renewal->driver);
	if (r < 0) {
		renewal->driver = NULL;
		keep(renewal, frag_strerror(r));
	}
}

void wrk_renewal_attached(struct wrk_renewal *renewal, const struct fw_welcome *session,
			  struct wrk_driver *present)
{
	renewal->session = session->session;
	memcpy(renewal->secret, session->secret, FW_SECRET_BYTES);
	memcpy(renewal->binding, wrk_driver_identity(present)->binding, FW_BINDING_BYTES);
	if (renewal->driver == NULL)
		return;
	finish(renewal); /* it was about the session before */
	wrk_renewal_begin(renewal, present);
}

void wrk_renewal_end(struct wrk_renewal *renewal)
{
	if (renewal->driver != NULL)
		finish(renewal);
	explicit_bzero(renewal->secret, FW_SECRET_BYTES);
}
