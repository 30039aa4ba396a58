// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "fake_sdl.h"
#include "window/sdl.h"

#define API __attribute__((visibility("default")))
#define EVENTS_MAX 64

/* They are those of the operator's table. */
#define SDL_DECLARE(result, name, arguments) result SDL_##name arguments;
SDL_FUNCTIONS(SDL_DECLARE)
#undef SDL_DECLARE

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct fake_sdl fake;
static bool is_held;
static int begun; /* pictures that have come, also those that are held */
static int calls; /* of the function that fails */
static union sdl_event events[EVENTS_MAX];
static size_t event_count;

API struct fake_sdl *fake_sdl_reset(void)
{
	pthread_mutex_lock(&lock);
	fake = (struct fake_sdl){.driver = "x11"};
	is_held = false;
	begun = calls = 0;
	event_count = 0;
	pthread_mutex_unlock(&lock);
	return &fake;
}

API void fake_sdl_hold(bool hold)
{
	pthread_mutex_lock(&lock);
	is_held = hold;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

API void fake_sdl_wait(int pictures)
{
	pthread_mutex_lock(&lock);
	while (begun < pictures)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void push(const union sdl_event *event)
{
	pthread_mutex_lock(&lock);
	if (event_count < EVENTS_MAX)
		events[event_count++] = *event;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

API void fake_sdl_act(uint32_t type, uint8_t event)
{
	push(&(union sdl_event){.of_window = {.type = type, .event = event}});
}

/* Counts what is made (1), given back (-1) or neither; returns whether the call works. */
static bool call(const char *name, int by)
{
	bool works = true;

	pthread_mutex_lock(&lock);
	if (fake.fails != NULL && strcmp(fake.fails, name) == 0) {
		works = calls < fake.fails_from || (fake.fails_once && calls > fake.fails_from);
		calls++;
	}
	if (works)
		fake.left += by;
	pthread_mutex_unlock(&lock);
	return works;
}

/* Something that is not NULL, and that nobody may look into. */
static void *thing(bool is_made)
{
	static char any;

	return is_made ? &any : NULL;
}

API int SDL_InitSubSystem(uint32_t which)
{
	return which == SDL_INIT_VIDEO && call("InitSubSystem", 1) ? 0 : -1;
}

API void SDL_QuitSubSystem(uint32_t which)
{
	/* SDL counts; without a subsystem it does nothing. */
	if (which == SDL_INIT_VIDEO && fake.left > 0)
		(void)call("QuitSubSystem", -1);
}

API void SDL_TLSCleanup(void)
{
}

API int SDL_SetHint(const char *name, const char *value)
{
	(void)name;
	(void)value;
	return 1;
}

API const char *SDL_GetCurrentVideoDriver(void)
{
	return fake.driver;
}

API const char *SDL_GetError(void)
{
	return fake.fails != NULL ? fake.fails : "";
}

API struct sdl_window *SDL_CreateWindow(const char *title, int x, int y, int columns, int rows,
					uint32_t flags)
{
	(void)title;
	(void)x;
	(void)y;
	fake.window_columns = columns;
	fake.window_rows = rows;
	fake.flags = flags;
	return thing(call("CreateWindow", 1));
}

API void SDL_DestroyWindow(struct sdl_window *window)
{
	(void)call("DestroyWindow", window != NULL ? -1 : 0);
}

API void SDL_SetWindowSize(struct sdl_window *window, int columns, int rows)
{
	(void)window;
	fake.shown_columns = columns;
	fake.shown_rows = rows;
}

API void SDL_ShowWindow(struct sdl_window *window)
{
	(void)window;
	fake.shown++;
}

API struct sdl_renderer *SDL_CreateRenderer(struct sdl_window *window, int which, uint32_t flags)
{
	(void)window;
	(void)which;
	(void)flags;
	return thing(call("CreateRenderer", 1));
}

API void SDL_DestroyRenderer(struct sdl_renderer *renderer)
{
	(void)call("DestroyRenderer", renderer != NULL ? -1 : 0);
}

API int SDL_RenderSetLogicalSize(struct sdl_renderer *renderer, int columns, int rows)
{
	(void)renderer;
	return call("RenderSetLogicalSize", 0) && columns == fake.texture_columns &&
			       rows == fake.texture_rows
		       ? 0
		       : -1;
}

API struct sdl_texture *SDL_CreateTexture(struct sdl_renderer *renderer, uint32_t format,
					  int access, int columns, int rows)
{
	(void)renderer;
	(void)access;
	fake.texture_columns = columns;
	fake.texture_rows = rows;
	return thing(format == SDL_FORMAT_RGB24 && call("CreateTexture", 1));
}

API void SDL_DestroyTexture(struct sdl_texture *texture)
{
	(void)call("DestroyTexture", texture != NULL ? -1 : 0);
}

API int SDL_UpdateTexture(struct sdl_texture *texture, const void *area, const void *pixels,
			  int pitch)
{
	const uint8_t *bytes = pixels;

	(void)texture;
	(void)area;
	pthread_mutex_lock(&lock);
	begun++;
	pthread_cond_broadcast(&changed);
	while (is_held)
		pthread_cond_wait(&changed, &lock);
	if (pitch == 3 * fake.texture_columns)
		memcpy(fake.last, bytes + (size_t)pitch * (size_t)fake.texture_rows - 3, 3);
	if (fake.pictures < (int)sizeof(fake.numbers))
		fake.numbers[fake.pictures] = bytes[0];
	fake.pictures++;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int SDL_RenderClear(struct sdl_renderer *renderer)
{
	(void)renderer;
	return 0;
}

API int SDL_RenderCopy(struct sdl_renderer *renderer, struct sdl_texture *texture, const void *from,
		       const void *to)
{
	(void)renderer;
	(void)texture;
	(void)from;
	(void)to;
	return 0;
}

API void SDL_RenderPresent(struct sdl_renderer *renderer)
{
	(void)renderer;
	pthread_mutex_lock(&lock);
	fake.presents++;
	pthread_mutex_unlock(&lock);
}

API uint32_t SDL_RegisterEvents(int count)
{
	(void)count;
	return 0x8000;
}

API int SDL_PushEvent(union sdl_event *event)
{
	push(event);
	return 1;
}

API int SDL_WaitEventTimeout(union sdl_event *event, int timeout_ms)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += timeout_ms * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&lock);
	while (event_count == 0 && r == 0)
		r = pthread_cond_timedwait(&changed, &lock, &until);
	r = event_count > 0;
	if (r) {
		*event = events[0];
		memmove(events, events + 1, --event_count * sizeof(events[0]));
	}
	pthread_mutex_unlock(&lock);
	return r;
}
