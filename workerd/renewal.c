// SPDX-License-Identifier: Apache-2.0
#include <workerd/renewal.h>

#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "keys"
#include <base/log.h>
#include <base/sentence.h>

/* "key a", "certificate /etc/frag/a.pem" */
static const char *next_name(const struct wrk_renewal *renewal, char *out, size_t size)
{
	const struct fw_key *key = fw_tls_own_key(renewal->next);

	snprintf(out, size, "%s %s", key != NULL ? "key" : "certificate",
		 key != NULL ? key->name : renewal->credentials->config.certificate);
	return out;
}

static void use(struct wrk_renewal *renewal)
{
	fw_credentials_use(renewal->credentials, renewal->next);
	renewal->next = NULL;
}

static void forget(struct wrk_renewal *renewal)
{
	fw_tls_destroy(renewal->next);
	renewal->next = NULL;
}

/* What else the connection brings does not matter. */
static void finish(struct wrk_renewal *renewal)
{
	struct wrk_driver *driver = renewal->driver;

	renewal->driver = NULL;
	if (driver != NULL)
		wrk_driver_finish(driver);
}

static void not_taken(struct wrk_renewal *renewal, const char *why)
{
	const char *key_file = renewal->credentials->config.key_file;
	char text[1024], name[512];

	fragi_sentence(
		text, sizeof(text),
		"the driver does not take the %s%s%s: %s; correct that file%s, then send SIGHUP again",
		next_name(renewal, name, sizeof(name)), key_file != NULL ? " of " : "",
		key_file != NULL ? key_file : "", why,
		key_file != NULL ? ", or add the key to the driver's" : "");
	forget(renewal);
	fw_credentials_keep(renewal->credentials, text);
}

static void not_proven(struct wrk_renewal *renewal, const char *why)
{
	char text[1024], name[512];

	fragi_sentence(
		text, sizeof(text),
		"the %s cannot be proven to the driver: %s; it is tried again with the next session, or on SIGHUP",
		next_name(renewal, name, sizeof(name)), why);
	fw_credentials_keep(renewal->credentials, text);
}

static void on_connected(void *arg, uint64_t id, const char *local_address, const char *proof)
{
	struct wrk_renewal *renewal = arg;
	struct fw_message message = {.kind = FW_HELLO};

	(void)id;
	(void)local_address;
	if (renewal->looks) {
		renewal->is_there = true;
		finish(renewal);
		return;
	}
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
	renewal->is_unsure = true;
}

static void on_failed(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	struct wrk_renewal *renewal = arg;

	(void)id;
	renewal->driver = NULL;
	if (renewal->looks) /* again after the next refusal */
		return;
	if (failure == FRAGI_FAILURE_KEY_REFUSED)
		not_taken(renewal, why);
	else
		not_proven(renewal, why);
}

static void on_refused(struct wrk_renewal *renewal, const struct fw_failure *failure)
{
	char name[512];

	finish(renewal);
	if (failure->code != FRAGI_FAILURE_SESSION_REFUSED) {
		not_taken(renewal, failure->sentence);
	} else if (renewal->refused(renewal->arg, renewal->connection, failure->sentence)) {
		log_error(NULL, "leaves its session for one by the %s, whose driver refuses it: %s",
			  next_name(renewal, name, sizeof(name)), failure->sentence);
		use(renewal);
	}
}

static void on_message(void *arg, uint64_t id, struct fw_message *message)
{
	struct wrk_renewal *renewal = arg;
	char name[512];

	(void)id;
	if (message->kind == FW_WELCOME) {
		log_info(NULL, "the driver takes the %s, and the session goes on with it",
			 next_name(renewal, name, sizeof(name)));
		use(renewal);
		finish(renewal);
		renewal->is_unsure = false;
		renewal->renewed(renewal->arg, renewal->proof);
	} else if (message->kind == FW_REFUSED) {
		on_refused(renewal, &message->refused.failure);
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

static int open_second(struct wrk_renewal *renewal, bool looks)
{
	const struct fw_connection_options options = {.tls = renewal->next,
						      .users = renewal->users};
	int r;

	renewal->looks = looks;
	r = wrk_driver_open(renewal->loop, renewal->address, 0, &options, &ops, renewal,
			    &renewal->driver);
	if (r < 0)
		renewal->driver = NULL;
	return r;
}

/* present: the connection of the session */
static void exchange(struct wrk_renewal *renewal, const struct wrk_driver *present)
{
	const struct fw_key *key = fw_tls_own_key(renewal->next);
	int r;

	if (key != NULL && key->serial == wrk_driver_identity(present)->serial &&
	    !renewal->is_unsure) {
		use(renewal);
		return;
	}
	r = open_second(renewal, false);
	if (r < 0)
		not_proven(renewal, frag_strerror(r));
}

void wrk_renewal_begin(struct wrk_renewal *renewal, struct fw_tls *next,
		       const struct wrk_driver *present)
{
	finish(renewal);
	forget(renewal);
	renewal->next = next;
	renewal->is_there = false;
	if (present == NULL && renewal->session == 0)
		use(renewal);
	else if (present != NULL && wrk_driver_id(present) == renewal->connection)
		exchange(renewal, present);
	/* else wrk_renewal_attached or wrk_renewal_lost follows */
}

void wrk_renewal_attached(struct wrk_renewal *renewal, const struct fw_welcome *session,
			  struct wrk_driver *present)
{
	renewal->session = session->session;
	renewal->connection = wrk_driver_id(present);
	memcpy(renewal->secret, session->secret, FW_SECRET_BYTES);
	memcpy(renewal->binding, wrk_driver_identity(present)->binding, FW_BINDING_BYTES);
	renewal->is_unsure = renewal->is_there = false;
	finish(renewal); /* it was about the session before */
	if (renewal->next != NULL)
		exchange(renewal, present);
}

enum fragi_failure wrk_renewal_lost(struct wrk_renewal *renewal, enum fragi_failure failure)
{
	const bool is_refused = failure == FRAGI_FAILURE_KEY_REFUSED;
	char name[512];

	if (!renewal->looks)
		finish(renewal); /* it was about the connection that is lost */
	if (renewal->next == NULL)
		return failure;
	if (renewal->session == 0) {
		use(renewal);
		return is_refused ? FRAGI_FAILURE_NONE : failure;
	}
	if (is_refused && renewal->is_there) {
		log_info(NULL, "a driver proves the %s and refuses the one before, so it is used",
			 next_name(renewal, name, sizeof(name)));
		use(renewal);
	} else if (is_refused && renewal->driver == NULL) {
		(void)open_second(renewal, true);
	}
	return failure;
}

void wrk_renewal_end(struct wrk_renewal *renewal)
{
	finish(renewal);
	forget(renewal);
	explicit_bzero(renewal->secret, FW_SECRET_BYTES);
}
