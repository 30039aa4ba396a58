// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "sdl.h"

#define LIBRARY "libSDL2-2.0.so.0"

static int find_symbol(void *library, const char *name, void *out, struct frag_err *err)
{
	void *symbol = dlsym(library, name);

	if (symbol == NULL)
		return frag_err_set(
			err, -ELIBBAD,
			"this " LIBRARY " has no function %s; install SDL 2.0.16 or newer", name);
	memcpy(out, &symbol, sizeof(symbol));
	return 0;
}

int window_sdl_open(struct sdl *out, struct frag_err *err)
{
	static void *library;
	int r = 0;

	if (library == NULL)
		library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return frag_err_set(
			err, -ELIBACC,
			"SDL2, which opens windows, cannot be loaded: %s; install the package libsdl2-2.0-0, or show the pictures in a browser with the operator viewer",
			dlerror());
#define SDL_FIND(result, name, arguments)                                                          \
	if (r == 0)                                                                                \
		r = find_symbol(library, "SDL_" #name, &out->name, err);
	SDL_FUNCTIONS(SDL_FIND)
#undef SDL_FIND
	return r;
}
