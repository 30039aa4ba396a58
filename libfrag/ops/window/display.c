// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "../draw/held.h"
#include "display.h"
#include "sdl.h"

/* Safety net: bounds the delay of a picture if a wake-up is ever lost. */
#define WAIT_MS 100

enum state { OPENING, OPEN, CLOSED };

struct display {
	struct display_config config;
	struct sdl sdl;
	pthread_t thread;

	/* The thread's. */
	struct sdl_window *window;
	struct sdl_renderer *renderer;
	struct sdl_texture *texture; /* as large as the canvas */
	struct canvas canvas;
	int64_t texture_columns, texture_rows;

	pthread_mutex_t lock;
	pthread_cond_t opened;
	enum state state;
	uint32_t wake_event;
	struct held *newest; /* not shown yet; NULL: none */
	bool is_ending;
	int failure;
	struct frag_err err;
};

/* SDL is for one thread of a process. */
static pthread_mutex_t only_lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_taken;

static bool take(void)
{
	bool is_free;

	pthread_mutex_lock(&only_lock);
	is_free = !is_taken;
	is_taken = true;
	pthread_mutex_unlock(&only_lock);
	return is_free;
}

static void leave(void)
{
	pthread_mutex_lock(&only_lock);
	is_taken = false;
	pthread_mutex_unlock(&only_lock);
}

/* Records the failure of a call of SDL, with what SDL says of it. */
static int fail(struct display *display, const char *what, const char *advice)
{
	const char *reason = display->sdl.GetError();

	display->failure = frag_err_set(&display->err, -EIO, "%s: %.200s; %s", what,
					reason[0] != '\0' ? reason : "there is none", advice);
	return display->failure;
}

/* Where there is no desktop SDL takes a driver whose pictures nobody sees, also if nobody asked. */
static bool is_seen(const struct sdl *sdl)
{
	const char *driver = sdl->GetCurrentVideoDriver();

	return getenv("SDL_VIDEODRIVER") != NULL || driver == NULL ||
	       (strcmp(driver, "offscreen") != 0 && strcmp(driver, "dummy") != 0);
}

static int open_window(struct display *display)
{
	const struct sdl *sdl = &display->sdl;
	const struct layers *layers = display->config.layers;
	uint32_t flags = SDL_WINDOW_HIDDEN | SDL_WINDOW_RESIZABLE;

	if (display->config.is_fullscreen)
		flags |= SDL_WINDOW_FULLSCREEN_DESKTOP;
	sdl->SetHint("SDL_NO_SIGNAL_HANDLERS", "1"); /* signals are for the host */
	if (sdl->InitSubSystem(SDL_INIT_VIDEO) < 0 || !is_seen(sdl))
		return fail(
			display, "cannot reach a desktop",
			"run it where DISPLAY or WAYLAND_DISPLAY names one, or show the pictures in a browser with the operator viewer");
	display->window = sdl->CreateWindow(display->config.title, SDL_WINDOW_POSITION_UNDEFINED,
					    SDL_WINDOW_POSITION_UNDEFINED,
					    layers->columns > 0 ? (int)layers->columns : 640,
					    layers->rows > 0 ? (int)layers->rows : 480, flags);
	if (display->window == NULL)
		return fail(display, "cannot open a window", "check the desktop");
	display->renderer = sdl->CreateRenderer(display->window, -1, SDL_RENDERER_VSYNC);
	if (display->renderer == NULL)
		display->renderer = sdl->CreateRenderer(display->window, -1, 0);
	if (display->renderer == NULL)
		return fail(display, "cannot draw into a window", "check the desktop");
	display->wake_event = sdl->RegisterEvents(1);
	return 0;
}

static void close_window(struct display *display)
{
	const struct sdl *sdl = &display->sdl;

	if (display->texture != NULL)
		sdl->DestroyTexture(display->texture);
	if (display->renderer != NULL)
		sdl->DestroyRenderer(display->renderer);
	if (display->window != NULL)
		sdl->DestroyWindow(display->window);
	sdl->QuitSubSystem(SDL_INIT_VIDEO);
	sdl->TLSCleanup(); /* what SDL keeps for this thread, which is not one of its own */
}

/* Makes the texture as large as the picture, and with the first one the window too. */
static int fit(struct display *display)
{
	const struct sdl *sdl = &display->sdl;
	int columns = (int)display->canvas.columns, rows = (int)display->canvas.rows;

	if (display->texture_columns == columns && display->texture_rows == rows)
		return 0;
	if (display->texture == NULL) {
		sdl->SetWindowSize(display->window, columns, rows);
		sdl->ShowWindow(display->window);
	} else {
		sdl->DestroyTexture(display->texture);
	}
	display->texture = sdl->CreateTexture(display->renderer, SDL_FORMAT_RGB24,
					      SDL_ACCESS_STREAMING, columns, rows);
	if (display->texture == NULL ||
	    sdl->RenderSetLogicalSize(display->renderer, columns, rows) < 0)
		return fail(display, "cannot show a picture of this size", "make it smaller");
	display->texture_columns = columns;
	display->texture_rows = rows;
	return 0;
}

/* Puts the last picture on the screen, in the middle of a window that has another shape. */
static void present(const struct display *display)
{
	const struct sdl *sdl = &display->sdl;

	if (display->texture == NULL)
		return;
	sdl->RenderClear(display->renderer);
	sdl->RenderCopy(display->renderer, display->texture, NULL, NULL);
	sdl->RenderPresent(display->renderer);
}

/* Shows the messages. Takes them. */
static int show(struct display *display, struct held *held)
{
	int r = draw_held_draw(display->config.layers, held, &display->canvas);

	draw_held_destroy(held);
	if (r < 0)
		return 0; /* this picture is left out, as the viewer does */
	r = fit(display);
	if (r < 0)
		return r;
	display->sdl.UpdateTexture(display->texture, NULL, display->canvas.pixels,
				   (int)display->canvas.columns * 3);
	present(display);
	return 0;
}

/* Waits for an event. Returns whether a person has closed the window. */
static bool is_closed_by_event(struct display *display)
{
	union sdl_event event = {0};

	if (display->sdl.WaitEventTimeout(&event, WAIT_MS) == 0)
		return false;
	if (event.of_window.type == SDL_QUIT_EVENT)
		return true;
	if (event.of_window.type != SDL_WINDOW_EVENT)
		return false;
	if (event.of_window.event == SDL_WINDOW_EVENT_CLOSE)
		return true;
	present(display); /* it may have been covered, or have another size */
	return false;
}

/* Shows pictures until it is to end. Returns whether a person has closed the window. */
static bool show_all(struct display *display)
{
	bool is_closed = false;

	while (!is_closed && display->failure == 0) {
		struct held *held;
		bool is_ending;

		pthread_mutex_lock(&display->lock);
		held = display->newest;
		display->newest = NULL;
		is_ending = display->is_ending;
		pthread_mutex_unlock(&display->lock);
		if (held != NULL)
			show(display, held);
		if (is_ending)
			break;
		if (held == NULL)
			is_closed = is_closed_by_event(display);
	}
	return is_closed;
}

static void set_state(struct display *display, enum state state)
{
	pthread_mutex_lock(&display->lock);
	display->state = state;
	pthread_cond_signal(&display->opened);
	pthread_mutex_unlock(&display->lock);
}

static void *run(void *arg)
{
	struct display *display = arg;
	bool is_closed = false;

	if (open_window(display) == 0) {
		set_state(display, OPEN);
		is_closed = show_all(display);
	}
	set_state(display, CLOSED); /* from now on nobody else calls SDL */
	close_window(display);
	if (is_closed)
		display->config.closed(display->config.arg);
	return NULL;
}

/* Returns the failure with which the thread has ended, or 0. */
static int failure_locked(const struct display *display, struct frag_err *err)
{
	if (display->state != CLOSED || display->failure == 0)
		return 0;
	return frag_err_set(err, display->failure, "%s", display->err.text);
}

/* Has the thread look at what there is. */
static void wake_locked(struct display *display)
{
	union sdl_event wake = {.of_window.type = display->wake_event};

	if (display->state == OPEN)
		display->sdl.PushEvent(&wake);
}

/* Starts the thread, which takes no signals, and waits until the window is open, or cannot be. */
static int start(struct display *display, struct frag_err *err)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&display->thread, NULL, run, display);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return frag_err_set(
			err, r,
			"cannot start the thread of the window: %s; check the limit of processes",
			frag_strerror(r));
	pthread_mutex_lock(&display->lock);
	while (display->state == OPENING)
		pthread_cond_wait(&display->opened, &display->lock);
	r = failure_locked(display, err);
	pthread_mutex_unlock(&display->lock);
	if (r < 0)
		pthread_join(display->thread, NULL);
	return r;
}

static void display_free(struct display *display)
{
	draw_held_destroy(display->newest);
	pthread_cond_destroy(&display->opened);
	pthread_mutex_destroy(&display->lock);
	free(display->canvas.pixels);
	free(display);
	leave();
}

int window_display_create(const struct display_config *config, struct display **out,
			  struct frag_err *err)
{
	struct display *display;
	int r;

	if (!take())
		return frag_err_set(
			err, -EBUSY,
			"this process has a window already, and SDL2 serves one; put the fragments of the windows into different hosts (host: NAME)");
	display = calloc(1, sizeof(*display));
	if (display == NULL) {
		leave();
		return frag_err_set(err, -ENOMEM, "no memory for the window");
	}
	display->config = *config;
	pthread_mutex_init(&display->lock, NULL);
	pthread_cond_init(&display->opened, NULL);
	r = window_sdl_open(&display->sdl, err);
	if (r == 0)
		r = start(display, err);
	if (r < 0) {
		display_free(display);
		return r;
	}
	*out = display;
	return 0;
}

int window_display_give(struct display *display, struct messages *messages, struct frag_err *err)
{
	struct held *held = draw_held_create(messages), *older;
	int r;

	if (held == NULL)
		return frag_err_set(err, -ENOMEM, "no memory for the messages of the window");
	pthread_mutex_lock(&display->lock);
	r = failure_locked(display, err);
	older = display->newest;
	display->newest = held;
	if (older == NULL)
		wake_locked(display);
	pthread_mutex_unlock(&display->lock);
	draw_held_destroy(older);
	return r;
}

void window_display_destroy(struct display *display)
{
	if (display == NULL)
		return;
	pthread_mutex_lock(&display->lock);
	display->is_ending = true;
	wake_locked(display);
	pthread_mutex_unlock(&display->lock);
	pthread_join(display->thread, NULL);
	display_free(display);
}
