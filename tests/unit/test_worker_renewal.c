// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <workerd/renewal.h>

#include "logged.h"

/*
 * What becomes of a key or certificate that was read again, as text: over connections, files and a
 * TLS that this file makes up. Each letter of a row is something that happens.
 */
static FILE *out;
static struct wrk_renewal renewal;
static struct fw_credentials credentials;
static const struct fragi_address address;
static const struct fw_users users;
static uv_loop_t loop;
static bool open_fails, is_present_one;
static uint64_t sessions;

struct wrk_driver {
	uint64_t id;
	struct fw_identity identity;
	const struct wrk_driver_ops *ops; /* of a second connection */
	void *arg;
};
static struct wrk_driver presents[2] = {
	{.id = 1, .identity = {.name = "first", .serial = 71, .binding = "binding 1"}},
	{.id = 2, .identity = {.name = "second", .serial = 72, .binding = "binding 2"}}};
static struct wrk_driver *present, second;

int wrk_driver_open(uv_loop_t *own_loop, const struct fragi_address *own_address, uint64_t id,
		    const struct fw_connection_options *options, const struct wrk_driver_ops *ops,
		    void *arg, struct wrk_driver **out_driver)
{
	cr_expect(own_loop == &loop && own_address == &address && options->users == &users);
	cr_expect_eq(options->tls, renewal.next);
	cr_expect_eq(arg, &renewal);
	cr_expect_not(options->is_accepted);
	fprintf(out, "  opens a second connection%s\n", open_fails ? ", which fails" : "");
	second = (struct wrk_driver){.id = id, .ops = ops, .arg = arg};
	*out_driver = &second;
	return open_fails ? -ENOMEM : 0;
}

void wrk_driver_finish(struct wrk_driver *driver)
{
	cr_expect_eq(driver, &second);
	fprintf(out, "  finishes the second connection\n");
}

uint64_t wrk_driver_id(const struct wrk_driver *driver)
{
	return driver->id;
}

const struct fw_identity *wrk_driver_identity(const struct wrk_driver *driver)
{
	return &driver->identity;
}

void wrk_driver_send(struct wrk_driver *driver, const struct fw_message *m)
{
	cr_expect_eq(driver, &second);
	cr_expect(m->hello.major == FW_PROTOCOL_MAJOR && m->hello.minor == FW_PROTOCOL_MINOR);
	cr_expect_str_eq(m->hello.version, FRAG_VERSION);
	cr_expect_eq(m->hello.role, FW_ROLE_REPORTER);
	fprintf(out, "  sends %s of session %d: %.9s, %.9s\n", fw_kind_name(m->kind),
		(int)m->hello.session, (const char *)m->hello.secret,
		(const char *)m->hello.binding);
}

/* What was read: a key, or a certificate. */
struct read {
	struct fw_tls tls;
	struct fw_key key;
};

static struct read *read_of(struct fw_tls *tls)
{
	return (struct read *)tls;
}

const struct fw_key *fw_tls_own_key(const struct fw_tls *tls)
{
	const struct read *read = (const struct read *)tls;

	return read->key.serial != 0 ? &read->key : NULL;
}

void fw_tls_destroy(struct fw_tls *tls)
{
	if (tls == NULL)
		return;
	fprintf(out, "  forgets what was read, %d\n", (int)read_of(tls)->key.serial);
	free(tls);
}

void fw_credentials_use(struct fw_credentials *own, struct fw_tls *next)
{
	cr_expect_eq(own, &credentials);
	fprintf(out, "  uses what was read, %d\n", (int)read_of(next)->key.serial);
	free(next);
}

void fw_credentials_keep(struct fw_credentials *own, const char *why)
{
	cr_expect_eq(own, &credentials);
	fprintf(out, "  keeps what it has: %s\n", why);
}

static void on_renewed(void *arg, const char *proof)
{
	cr_expect_eq(arg, &present);
	fprintf(out, "  is renewed: %s\n", proof);
}

static bool on_refused(void *arg, uint64_t connection, const char *why)
{
	cr_expect_eq(arg, &present);
	fprintf(out, "  session %d is refused%s: %s\n", (int)connection,
		is_present_one ? "" : ", which is over", why);
	return is_present_one;
}

static void read_again(uint64_t serial)
{
	struct read *read = calloc(1, sizeof(*read));

	credentials.config.key_file = serial != 0 ? "keys" : NULL;
	credentials.config.certificate = serial != 0 ? NULL : "cert.pem";
	read->key.serial = serial;
	snprintf(read->key.name, sizeof(read->key.name), "k%d", (int)serial);
	wrk_renewal_begin(&renewal, &read->tls, present);
}

static void begin_session(void)
{
	struct fw_welcome welcome = {.session = 100 + ++sessions};

	snprintf((char *)welcome.secret, sizeof(welcome.secret), "secret %d", (int)sessions);
	wrk_renewal_attached(&renewal, &welcome, present);
}

static void hear(enum fw_kind kind, enum fragi_failure code)
{
	struct fw_message message = {.kind = kind}, *copy;
	size_t size;

	message.welcome.name = "w";
	message.welcome.version = "v";
	if (kind == FW_REFUSED)
		message.refused.failure = (struct fw_failure){code, "it is so", ""};
	cr_assert_eq(fw_message_copy(&message, &copy, &size), 0);
	second.ops->message(second.arg, 0, copy);
}

static void lose(enum fragi_failure failure)
{
	failure = wrk_renewal_lost(&renewal, failure);
	fprintf(out, "  it is lost: %s\n", fragi_failure_name(failure));
}

static void happen(char what)
{
	switch (what) {
	case '0':
		present = NULL;
		break;
	case '1':
	case '2':
		present = &presents[what - '1'];
		break;
	case '!':
		open_fails = true;
		break;
	case 'n':
		is_present_one = false;
		break;
	case 's': /* what the present session holds by */
		read_again(71);
		break;
	case 'k':
		read_again(80);
		break;
	case 'K':
		read_again(81);
		break;
	case 'c':
		read_again(0);
		break;
	case 'a':
		begin_session();
		break;
	case 'l':
		lose(FRAGI_FAILURE_NONE);
		break;
	case 'r':
		lose(FRAGI_FAILURE_KEY_REFUSED);
		break;
	case 'u':
		lose(FRAGI_FAILURE_USER_REFUSED);
		break;
	case '+':
		second.ops->connected(second.arg, 0, "127.0.0.1", "key k 80");
		break;
	case '-':
		second.ops->failed(second.arg, 0, FRAGI_FAILURE_NONE, "nobody is there");
		break;
	case 'x':
		second.ops->lost(second.arg, 0, FRAGI_FAILURE_KEY_REFUSED, "it has no such key");
		break;
	case 'w':
		hear(FW_WELCOME, FRAGI_FAILURE_NONE);
		break;
	case 'm':
		hear(FW_REFUSED, FRAGI_FAILURE_SESSION_REFUSED);
		break;
	case 'y':
		hear(FW_REFUSED, FRAGI_FAILURE_KEY_REFUSED);
		break;
	case 'o':
		hear(FW_APP_ENDED, FRAGI_FAILURE_NONE);
		break;
	case 'f':
		second.ops->freed(second.arg, &second);
		break;
	case 'F': /* an earlier one */
		second.ops->freed(second.arg, &presents[0]);
		break;
	default:
		wrk_renewal_end(&renewal);
	}
}

static const char *const rows[] = {
	/* before the first session, and while a connection is under way that becomes one */
	"k",
	"kk",
	"1k",
	"1k2k",
	"1ka+w",
	"kr",
	"1kl",
	"1kr",
	"1ku",
	"r",
	"u",
	/* as long as a session lasts */
	"1as",
	"1ak",
	"1akf",
	"1akFE",
	"1ak+wf",
	"1ak+m",
	"1akn+m",
	"1ak+y",
	"1akx",
	"1ak-",
	"1ak+x",
	"1ak+-",
	"1ac+w",
	"1acx",
	"1ac-",
	"1ac+y",
	"1ac+m",
	"1ak+o",
	"1a!k",
	"1akK+w",
	"1ak+K",
	/* by which of two the session holds is not known: what it began with is proven, too */
	"1ak+-s",
	"1ak+-s+ws",
	"1ak+-2as",
	"1ak-s",
	/* another connection, or none */
	"1a2k",
	"1a0k",
	"1a2ka",
	"1ak2a+w",
	"1ak-2a",
	"1a0kl",
	"1ak+l",
	"1aklu",
	/* refusals between two sessions */
	"1a0kr",
	"1a0kr+r",
	"1a0krr",
	"1a0kr-r",
	"1a0krl+r",
	"1a0kr+l",
	"1a0kr+k+r",
	"1a0kr+2alr",
	"1a0kr!",
	"1a0k!rr",
	"1a0cr+r",
	"1a0kr2a",
	"1ar",
	"1al",
	"1ak+E",
	"1a0kE",
	"E",
};

static void live(const char *row)
{
	static const uint8_t zeros[FW_SECRET_BYTES];

	renewal = (struct wrk_renewal){.credentials = &credentials,
				       .address = &address,
				       .users = &users,
				       .loop = &loop,
				       .renewed = on_renewed,
				       .refused = on_refused,
				       .arg = &present};
	present = NULL;
	open_fails = false;
	is_present_one = true;
	sessions = 0;
	fprintf(out, "%s\n", row);
	for (; *row != '\0'; row++) {
		if (strchr("012!n", *row) == NULL)
			fprintf(out, " %c\n", *row);
		logged_begin();
		happen(*row);
		logged_end(out);
	}
	fprintf(out, " next %d, connected %d, looks %d, there %d, unsure %d, session %d of %d\n",
		renewal.next != NULL ? (int)read_of(renewal.next)->key.serial : -1,
		renewal.driver != NULL, renewal.looks, renewal.is_there, renewal.is_unsure,
		(int)renewal.session, (int)renewal.connection);
	wrk_renewal_end(&renewal);
	cr_expect_null(renewal.next);
	cr_expect_null(renewal.driver);
	cr_expect_eq(memcmp(renewal.secret, zeros, sizeof(zeros)), 0);
}

Test(worker_renewal, what_becomes_of_what_was_read_again)
{
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		live(rows[i]);
	fclose(out);
	expected_compare("worker/renewal", text);
	free(text);
}
