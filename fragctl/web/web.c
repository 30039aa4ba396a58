// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/environment.h>
#include <base/log.h>
#include <fragctl/look.h>

/* `fragctl web` serves the page until it is told to end. */
struct ends {
	uv_signal_t interrupted, terminated;
	struct ctl_driver *driver;
	bool now;
};

static void on_signal(uv_signal_t *signal, int number)
{
	struct ends *ends = signal->data;

	(void)number;
	ends->now = true;
	ends->driver->timed_out = true; /* it may wait for a place there */
}

static int find_graphs(struct ctl_web *web)
{
	if (web->graphs_text == NULL)
		return CTL_OK;
	if (!web->controls)
		return ctl_fail(CTL_USAGE,
				"--graphs needs --control: to start an application is a command");
	web->graphs = realpath(web->graphs_text, NULL);
	return web->graphs != NULL ? CTL_OK
				   : ctl_fail(CTL_MISSING, "--graphs %.300s: %s", web->graphs_text,
					      strerror(errno));
}

/* Where there is no desktop, or no browser, the address that was printed is all. */
static void open_browser(const struct ctl_web *web)
{
	if (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL)
		return;
	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
	if (fork() == 0) {
		execlp("xdg-open", "xdg-open", web->url, (char *)NULL);
		_exit(CTL_MISSING);
	}
}

static void serve(struct ctl_web *web, struct ends *ends)
{
	web->feed.driver = &web->driver;
	web->feed.http_module = web->http_module;
	web->feed.http = web->http;
	web->feed.controls = web->controls;
	web->feed.graphs = web->graphs != NULL;
	ctl_web_feed_begin(&web->feed);
	(void)ctl_web_feed_step(&web->feed); /* connects, if a driver is there */
	fragi_log_print("fragctl web: %s\n", web->url);
	if (web->opens)
		open_browser(web);
	while (!ends->now) {
		if (ctl_web_feed_step(&web->feed))
			ctl_web_run(web);
		uv_run(&web->driver.loop, UV_RUN_ONCE);
	}
}

static int run(struct ctl_web *web)
{
	struct ends ends = {.driver = &web->driver};
	int code = ctl_driver_begin(&web->driver);

	if (code != CTL_OK)
		return code;
	uv_signal_init(&web->driver.loop, &ends.interrupted);
	uv_signal_init(&web->driver.loop, &ends.terminated);
	ends.interrupted.data = ends.terminated.data = &ends;
	uv_signal_start(&ends.interrupted, on_signal, SIGINT);
	uv_signal_start(&ends.terminated, on_signal, SIGTERM);
	code = ctl_web_listen(web);
	if (code == CTL_OK)
		serve(web, &ends);
	ctl_web_close(web);
	if (code == CTL_OK)
		ctl_web_feed_end(&web->feed);
	uv_close((uv_handle_t *)&ends.interrupted, NULL);
	uv_close((uv_handle_t *)&ends.terminated, NULL);
	uv_run(&web->driver.loop, UV_RUN_NOWAIT);
	return code;
}

int ctl_web(int argc, char **argv)
{
	struct ctl_web web = {.listen_text = "127.0.0.1:8080", .listen_fd = -1};
	struct ctl_common common = {0};
	struct frag_err err = FRAG_ERR_INIT;
	const struct fragi_flag table[] = {
		{.name = "listen",
		 .value = "[HOST][:PORT]|/PATH",
		 .help = "address for browsers, or the unix socket for a reverse proxy; default 127.0.0.1:8080",
		 .text = &web.listen_text},
		{.name = "host-name",
		 .value = "NAME",
		 .help = "a name by which browsers may ask for the page; repeatable",
		 .texts = &web.hosts},
		{.name = "token-file",
		 .value = "FILE",
		 .help = "the token that everybody else than this user of this machine must give",
		 .text = &web.token_file},
		{.name = "cert",
		 .value = "FILE",
		 .help = "certificate of the page, PEM, with --cert-key",
		 .text = &web.certificate_file},
		{.name = "cert-key",
		 .value = "FILE",
		 .help = "private key of the certificate",
		 .text = &web.certificate_key_file},
		{.name = "control",
		 .help = "the page may stop, restart, set and drain, after a question",
		 .on = &web.controls},
		{.name = "graphs",
		 .value = "DIR",
		 .help = "with --control: the page may also start the graphs (.yaml) in that folder",
		 .text = &web.graphs_text},
		{.name = "open",
		 .no_env = true,
		 .help = "also opens it in the browser of this desktop",
		 .on = &web.opens},
		FRAGI_ENVIRONMENT_FILE_FLAG(web.env_file),
		{.name = "every",
		 .value = "TIME",
		 .help = "measures so long for each picture of what runs; default 1s",
		 .text = &web.every_text},
		CTL_VIEWER_FLAGS(web.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl web",
		.usage = "[flags]",
		.headline =
			"Shows in a browser what a driver runs, where the time goes, and what makes it slow.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code)) {
		code = fragi_environment_trust(web.env_file, &err) < 0
			       ? ctl_fail(CTL_USAGE, "%s", err.text)
			       : ctl_look_every(web.every_text, &web.feed.every_ns);
		if (code == CTL_OK)
			code = find_graphs(&web);
		if (code == CTL_OK)
			code = run(&web);
	}
	free(web.graphs);
	ctl_driver_close(&web.driver);
	return code;
}
