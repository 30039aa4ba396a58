/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOW_SDL_H
#define WINDOW_SDL_H

#include <stdint.h>

#include <frag/frag.h>

/*
 * The part of SDL2's interface that frag uses, so that frag builds and is installed without SDL2.
 * Source: the headers of SDL 2.0.16, with which every later SDL2 is compatible.
 */
struct sdl_window;
struct sdl_renderer;
struct sdl_texture;

/* SDL_Event: 56 bytes, of which these are the same in all kinds */
union sdl_event {
	struct {
		uint32_t type, timestamp, window;
		uint8_t event; /* of a window */
	} of_window;
	uint64_t size[7];
};

enum {
	SDL_INIT_VIDEO = 0x20,
	SDL_QUIT_EVENT = 0x100,
	SDL_WINDOW_EVENT = 0x200,
	SDL_WINDOW_EVENT_CLOSE = 14,
	SDL_WINDOW_HIDDEN = 0x8,
	SDL_WINDOW_RESIZABLE = 0x20,
	SDL_WINDOW_FULLSCREEN_DESKTOP = 0x1001,
	SDL_WINDOW_POSITION_UNDEFINED = 0x1fff0000,
	SDL_RENDERER_VSYNC = 0x4,
	SDL_FORMAT_RGB24 = 0x17101803,
	SDL_ACCESS_STREAMING = 1,
};

/* X(result, name without SDL_, arguments); a result of type int is 0, or negative on failure */
#define SDL_FUNCTIONS(X)                                                                           \
	X(int, InitSubSystem, (uint32_t))                                                          \
	X(void, QuitSubSystem, (uint32_t))                                                         \
	X(void, TLSCleanup, (void))                                                                \
	X(int, SetHint, (const char *, const char *))                                              \
	X(const char *, GetCurrentVideoDriver, (void))                                             \
	X(const char *, GetError, (void))                                                          \
	X(struct sdl_window *, CreateWindow, (const char *, int, int, int, int, uint32_t))         \
	X(void, DestroyWindow, (struct sdl_window *))                                              \
	X(void, SetWindowSize, (struct sdl_window *, int, int))                                    \
	X(void, ShowWindow, (struct sdl_window *))                                                 \
	X(struct sdl_renderer *, CreateRenderer, (struct sdl_window *, int, uint32_t))             \
	X(void, DestroyRenderer, (struct sdl_renderer *))                                          \
	X(int, RenderSetLogicalSize, (struct sdl_renderer *, int, int))                            \
	X(struct sdl_texture *, CreateTexture, (struct sdl_renderer *, uint32_t, int, int, int))   \
	X(void, DestroyTexture, (struct sdl_texture *))                                            \
	X(int, UpdateTexture, (struct sdl_texture *, const void *, const void *, int))             \
	X(int, RenderClear, (struct sdl_renderer *))                                               \
	X(int, RenderCopy,                                                                         \
	  (struct sdl_renderer *, struct sdl_texture *, const void *, const void *))               \
	X(void, RenderPresent, (struct sdl_renderer *))                                            \
	X(uint32_t, RegisterEvents, (int))                                                         \
	X(int, PushEvent, (union sdl_event *))                                                     \
	X(int, WaitEventTimeout, (union sdl_event *, int))

struct sdl {
#define SDL_MEMBER(result, name, arguments) result(*name) arguments;
	SDL_FUNCTIONS(SDL_MEMBER)
#undef SDL_MEMBER
};

/*
 * Opens SDL2, which stays open until the process ends. Returns 0, or a failure with a sentence.
 * Thread: one at a time.
 */
int window_sdl_open(struct sdl *out, struct frag_err *err);

#endif
