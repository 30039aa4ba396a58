/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_WINDOW_FAKE_SDL_H
#define TESTS_WINDOW_FAKE_SDL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * SDL2 without a desktop, in a library of its name: it counts what is made and given back, keeps
 * what it shows, and its calls fail where a test says so.
 */
struct fake_sdl {
	/* What the test sets before it opens a window. */
	const char *fails;  /* the function that fails, without SDL_; NULL: none */
	int fails_from;     /* the first call of it that does, from 0 */
	bool fails_once;    /* further calls work */
	const char *driver; /* of pictures */

	/* What SDL was asked for. */
	int left;                          /* things that were made and not given back */
	int window_columns, window_rows;   /* when the window was made */
	int shown_columns, shown_rows;     /* when it was shown */
	int texture_columns, texture_rows; /* of the last texture */
	int shown;                         /* how often the window was */
	int pictures;                      /* given to a texture */
	int presents;
	uint32_t flags;      /* of the window */
	uint8_t last[3];     /* the last pixel of the last picture */
	uint8_t numbers[32]; /* the first byte of each picture */
};

/* Sets everything back. */
struct fake_sdl *fake_sdl_reset(void);
/* A texture takes no picture until the hold ends. */
void fake_sdl_hold(bool is_held);
/* Waits until so many pictures have come to a texture, those that are held included. */
void fake_sdl_wait(int pictures);
/* A person does something with the window: an event of SDL. */
void fake_sdl_act(uint32_t type, uint8_t event);

#endif
