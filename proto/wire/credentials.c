// SPDX-License-Identifier: Apache-2.0
#include <wire/credentials.h>

#include <errno.h>
#include <signal.h>

#define LOG_TOPIC "keys"
#include <base/log.h>
#include <base/sentence.h>

#define DAY_MS ((uint64_t)86400 * 1000)
#define WARN_DAYS 30

bool fw_credentials_given(const struct fw_tls_config *config)
{
	return config->key_file != NULL || config->certificate != NULL;
}

int fw_credentials_check(const struct fw_tls_config *config, bool insecure, struct frag_err *err)
{
	int files = (config->certificate != NULL) + (config->certificate_key != NULL) +
		    (config->ca != NULL);

	if (files != 0 && files != 3)
		return frag_err_set(err, -EINVAL,
				    "--cert, --cert-key and --ca belong together; give all three");
	if (files != 0 && config->key_file != NULL)
		return frag_err_set(
			err, -EINVAL,
			"--key-file and --cert contradict each other; leave one of them out");
	if (insecure && fw_credentials_given(config))
		return frag_err_set(
			err, -EINVAL,
			"--insecure and %s contradict each other; leave one of them out",
			config->key_file != NULL ? "--key-file" : "--cert");
	return 0;
}

static void warn_of_expiry(const struct fw_credentials *credentials, const struct fw_tls *tls)
{
	int64_t days = fw_tls_left_s(tls) / 86400;

	if (days < WARN_DAYS)
		log_warn(
			NULL,
			"the certificate %s expires in %lld days; put a new one in its place and send SIGHUP",
			credentials->config.certificate, (long long)(days > 0 ? days : 0));
}

static void on_daily(uv_timer_t *timer)
{
	const struct fw_credentials *credentials = timer->data;

	warn_of_expiry(credentials, credentials->tls);
}

void fw_credentials_keep(struct fw_credentials *credentials, const char *why)
{
	fragi_sentence(credentials->why_kept, sizeof(credentials->why_kept),
		       "keeps the keys that it has: %s", why);
	log_error(NULL, "%s", credentials->why_kept);
	if (credentials->kept != NULL)
		credentials->kept(credentials->arg);
}

void fw_credentials_use(struct fw_credentials *credentials, struct fw_tls *next)
{
	fw_tls_replace(credentials->tls, next);
	credentials->why_kept[0] = '\0';
}

static void on_hangup(uv_signal_t *handle, int number)
{
	struct fw_credentials *credentials = handle->data;
	const struct fw_tls_config *config = &credentials->config;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_tls *next;

	(void)number;
	if (fw_tls_read_again(credentials->tls, &next, &err) < 0) {
		fw_credentials_keep(credentials, err.text);
		return;
	}
	log_info(NULL, "SIGHUP: has read %s again",
		 config->key_file != NULL ? config->key_file : config->certificate);
	warn_of_expiry(credentials, next);
	credentials->changed(credentials->arg, next);
}

int fw_credentials_open(struct fw_credentials *credentials, uv_loop_t *loop,
			const struct fw_tls_config *config,
			void (*changed)(void *arg, struct fw_tls *next), void (*kept)(void *arg),
			void *arg, struct frag_err *err)
{
	int r = fw_credentials_given(config) ? fw_tls_create(config, &credentials->tls, err) : 0;

	if (r < 0 || credentials->tls == NULL)
		return r;
	credentials->config = *config;
	credentials->changed = changed;
	credentials->kept = kept;
	credentials->arg = arg;
	credentials->hangup.data = credentials->daily.data = credentials;
	uv_signal_init(loop, &credentials->hangup);
	uv_timer_init(loop, &credentials->daily);
	uv_signal_start(&credentials->hangup, on_hangup, SIGHUP);
	uv_timer_start(&credentials->daily, on_daily, DAY_MS, DAY_MS);
	warn_of_expiry(credentials, credentials->tls);
	return 0;
}

void fw_credentials_close(struct fw_credentials *credentials)
{
	if (credentials->tls == NULL || uv_is_closing((uv_handle_t *)&credentials->hangup))
		return;
	uv_close((uv_handle_t *)&credentials->hangup, NULL);
	uv_close((uv_handle_t *)&credentials->daily, NULL);
}

void fw_credentials_fini(struct fw_credentials *credentials)
{
	fw_tls_destroy(credentials->tls);
	credentials->tls = NULL;
}
