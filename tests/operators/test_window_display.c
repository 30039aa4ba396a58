// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../built.h"
#include "harness.h"
#include "window/display.h"
#include "window/sdl.h"
#include "window/fake_sdl.h"

/*
 * The linker puts it in the place of calloc, for the objects of this program. It is visible, since
 * the linker takes it for what the library of ASan calls, too.
 */
void *__real_calloc(size_t count, size_t size);
__attribute__((visibility("default"))) void *__wrap_calloc(size_t count, size_t size);

static bool is_short_of_memory;
static atomic_int frames_left; /* pictures that somebody still holds */
static atomic_int closed_count;
static struct layers layers;
static struct fake_sdl *sdl;
static struct {
	__typeof__(&fake_sdl_reset) reset;
	__typeof__(&fake_sdl_hold) hold;
	__typeof__(&fake_sdl_wait) wait;
	__typeof__(&fake_sdl_act) act;
} fake;

void *__wrap_calloc(size_t count, size_t size)
{
	return is_short_of_memory ? NULL : __real_calloc(count, size);
}

static void load_fake(void)
{
	void *library = dlopen(built("tests/window/libSDL2-2.0.so.0"), RTLD_NOW | RTLD_LOCAL);

	cr_assert_not_null(library, "%s", dlerror());
#define FIND(name) fake.name = (__typeof__(fake.name))dlsym(library, "fake_sdl_" #name)
	FIND(reset);
	FIND(hold);
	FIND(wait);
	FIND(act);
#undef FIND
	unsetenv("SDL_VIDEODRIVER");
	layers = (struct layers){0};
	sdl = fake.reset();
}

/* Whatever a test did, nothing is left of it. */
static void expect_nothing_left(void)
{
	cr_expect_eq(sdl->left, 0, "%d things of SDL are left", sdl->left);
	cr_expect_eq(frames_left, 0, "%d pictures are left", frames_left);
}

TestSuite(ops_window, .init = load_fake, .fini = expect_nothing_left);

static void note_closed(void *arg)
{
	(void)arg;
	closed_count++;
}

static int open_display(struct display **out, struct frag_err *err)
{
	const struct display_config config = {
		.layers = &layers, .title = "street", .closed = note_closed};

	return window_display_create(&config, out, err);
}

static struct display *opened(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct display *display = NULL;

	cr_assert_eq(open_display(&display, &err), 0, "%s", err.text);
	return display;
}

static void release(void *pixels)
{
	free(pixels);
	frames_left--;
}

/* A message with a picture that is all of one number, but for its last pixel. */
static struct frag_message *message_of(uint8_t number, int64_t rows, int64_t columns)
{
	const int64_t shape[] = {rows, columns, 3};
	const size_t size = (size_t)(rows * columns * 3);
	struct frag_dltensor description = {.device = {FRAG_DEVICE_CPU, 0},
					    .ndim = 3,
					    .dtype = {FRAG_DTYPE_UINT, 8, 1},
					    .shape = (int64_t *)(uintptr_t)shape};
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor = NULL;
	unsigned char *pixels = malloc(size);

	cr_assert(pixels != NULL && message != NULL);
	memset(pixels, number, size);
	pixels[size - 1] = (uint8_t)(number + 100);
	description.data = pixels;
	cr_assert_eq(frag_tensor_wrap(&description, release, pixels, &tensor), 0);
	frames_left++;
	cr_assert_eq(frag_message_add_tensor(message, "", tensor), 0);
	return message;
}

/* Gives the messages of two flows, of which the first one has none. Returns as the window. */
static int give(struct display *display, uint8_t number, int64_t rows, int64_t columns,
		struct frag_err *err)
{
	struct frag_message *message = message_of(number, rows, columns);
	const struct frag_message *const items[] = {NULL, message};
	struct messages messages = {.items = items, .count = 2};
	int r = window_display_give(display, &messages, err);

	frag_message_unref(message);
	return r;
}

static void give_well(struct display *display, uint8_t number, int64_t rows, int64_t columns)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(give(display, number, rows, columns, &err), 0, "%s", err.text);
}

Test(ops_window, shows_the_newest_picture_and_drops_those_that_it_had_no_time_for)
{
	struct display *display = opened();

	fake.hold(true);
	give_well(display, 1, 2, 5);
	fake.wait(1);
	for (uint8_t number = 2; number <= 6; number++)
		give_well(display, number, 2, 5);
	cr_expect_eq(frames_left, 1, "the newest alone: %d", frames_left);
	fake.hold(false);
	fake.wait(2);
	window_display_destroy(display);
	cr_expect_eq(sdl->pictures, 2);
	cr_expect(sdl->numbers[0] == 1 && sdl->numbers[1] == 6, "%d, %d", sdl->numbers[0],
		  sdl->numbers[1]);
	cr_expect_eq(sdl->presents, 2);
}

/* The last picture before the end is shown, too. */
Test(ops_window, ends_with_the_picture_that_waits)
{
	struct display *display = opened();

	fake.hold(true);
	give_well(display, 1, 2, 5);
	fake.wait(1);
	give_well(display, 2, 2, 5);
	fake.hold(false);
	window_display_destroy(display);
	cr_expect_eq(sdl->pictures, 2);
	cr_expect_eq(sdl->numbers[1], 2);
}

Test(ops_window, has_the_size_of_its_first_picture_and_a_texture_that_of_each)
{
	static const struct {
		int64_t rows, columns;
	} sizes[] = {{2, 5}, {2, 5}, {9, 7}, {7, 9}, {1, 63}, {2, 5}};
	struct display *display = opened();

	cr_expect(sdl->window_columns == 640 && sdl->window_rows == 480, "%d x %d",
		  sdl->window_columns, sdl->window_rows);
	cr_expect_eq(sdl->flags, SDL_WINDOW_HIDDEN | SDL_WINDOW_RESIZABLE);
	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++) {
		give_well(display, (uint8_t)(10 * i), sizes[i].rows, sizes[i].columns);
		fake.wait((int)i + 1);
		while (frames_left > 0 || sdl->presents < (int)i + 1)
			usleep(1000);
		cr_expect(sdl->texture_columns == sizes[i].columns &&
				  sdl->texture_rows == sizes[i].rows,
			  "picture %zu: %d x %d", i, sdl->texture_columns, sdl->texture_rows);
		cr_expect(sdl->last[1] == 10 * i && sdl->last[2] == 10 * i + 100, "picture %zu: %d",
			  i, sdl->last[2]);
		/* Subsystem, window, renderer, and one texture. */
		cr_expect_eq(sdl->left, 4, "picture %zu: %d things", i, sdl->left);
	}
	cr_expect(sdl->shown == 1 && sdl->shown_columns == 5 && sdl->shown_rows == 2,
		  "shown %d times, %d x %d", sdl->shown, sdl->shown_columns, sdl->shown_rows);
	window_display_destroy(display);
}

Test(ops_window, is_as_large_as_its_parameters_say)
{
	struct display *display;

	layers.rows = 3;
	layers.columns = 11;
	display = opened();
	cr_expect(sdl->window_columns == 11 && sdl->window_rows == 3, "%d x %d",
		  sdl->window_columns, sdl->window_rows);
	window_display_destroy(display);
}

/* Each failure has its sentence, and the next window can be opened. */
Test(ops_window, what_cannot_be_opened_is_given_back)
{
	static const struct {
		const char *fails, *driver, *sentence;
	} rows[] = {
		{"InitSubSystem", "x11", "cannot reach a desktop: InitSubSystem; run it where"},
		{NULL, "dummy", "cannot reach a desktop: there is none; run it where"},
		{NULL, "offscreen", "cannot reach a desktop: there is none; run it where"},
		{"CreateWindow", "x11", "cannot open a window: CreateWindow; check the desktop"},
		{"CreateRenderer", "x11", "cannot draw into a window: CreateRenderer; check the"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct display *display = NULL;

		sdl = fake.reset();
		sdl->fails = rows[i].fails;
		sdl->driver = rows[i].driver;
		cr_expect_eq(open_display(&display, &err), -EIO, "row %zu", i);
		cr_expect_null(display);
		cr_expect(strstr(err.text, rows[i].sentence) != NULL, "row %zu: %s", i, err.text);
		cr_expect_eq(sdl->left, 0, "row %zu: %d things are left", i, sdl->left);
	}
	sdl = fake.reset();
	window_display_destroy(opened());
}

/* A renderer that waits for the screen is not to be had everywhere. */
Test(ops_window, takes_a_renderer_that_does_not_wait)
{
	struct display *display;

	sdl->fails = "CreateRenderer";
	sdl->fails_once = true;
	display = opened();
	give_well(display, 1, 2, 5);
	window_display_destroy(display);
	cr_expect_eq(sdl->pictures, 1);
}

Test(ops_window, takes_the_driver_that_the_user_asks_for)
{
	setenv("SDL_VIDEODRIVER", "dummy", 1);
	sdl->driver = "dummy";
	window_display_destroy(opened());
}

/* The failure of a picture is reported with the messages after it, and then again. */
Test(ops_window, a_picture_that_cannot_be_shown_ends_it)
{
	static const struct {
		const char *fails;
		int from; /* pictures that are shown */
	} rows[] = {{"CreateTexture", 0},
		    {"RenderSetLogicalSize", 0},
		    {"CreateTexture", 1},
		    {"RenderSetLogicalSize", 1}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct display *display;
		int r = 0;

		sdl = fake.reset();
		sdl->fails = rows[i].fails;
		sdl->fails_from = rows[i].from;
		display = opened();
		for (int k = 0; k < 1000 && r == 0; k++) {
			r = give(display, (uint8_t)k, 4 + k, 6, &err);
			usleep(2000);
		}
		cr_expect_eq(r, -EIO, "row %zu", i);
		cr_expect(strstr(err.text, "cannot show a picture of this size: ") != NULL,
			  "row %zu: %s", i, err.text);
		cr_expect_eq(give(display, 0, 4, 6, &err), -EIO, "row %zu", i);
		cr_expect_eq(sdl->pictures, rows[i].from, "row %zu", i);
		window_display_destroy(display);
		cr_expect_eq(sdl->left, 0, "row %zu: %d things are left", i, sdl->left);
		cr_expect_eq(frames_left, 0, "row %zu: %d pictures are left", i, frames_left);
		cr_expect_eq(closed_count, 0, "nobody closed it");
	}
}

/* A process has one window, and its place is free again after whatever became of it. */
Test(ops_window, its_only_place_is_given_back)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct display *display = NULL, *second = NULL;

	is_short_of_memory = true;
	cr_expect_eq(open_display(&display, &err), -ENOMEM);
	is_short_of_memory = false;
	cr_expect(strstr(err.text, "no memory for the window") != NULL, "%s", err.text);

	display = opened();
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(open_display(&second, &err), -EBUSY);
	cr_expect(strstr(err.text, "this process has a window already") != NULL, "%s", err.text);
	cr_expect_eq(open_display(&second, &err), -EBUSY, "a refusal gives nothing back");
	is_short_of_memory = true;
	cr_expect_eq(give(display, 1, 2, 5, &err), -ENOMEM);
	is_short_of_memory = false;
	give_well(display, 2, 2, 5);
	fake.wait(1);
	window_display_destroy(display);
	cr_expect_eq(sdl->numbers[0], 2);
	window_display_destroy(opened());
	window_display_destroy(NULL);
}

Test(ops_window, events_close_it_or_show_the_picture_again)
{
	static const struct {
		uint32_t type;
		uint8_t event;
		bool closes, presents;
	} rows[] = {
		{SDL_WINDOW_EVENT, 3, false, true}, /* it was covered */
		{SDL_QUIT_EVENT + 1, SDL_WINDOW_EVENT_CLOSE, false, false},
		{SDL_WINDOW_EVENT, SDL_WINDOW_EVENT_CLOSE, true, false},
		{SDL_QUIT_EVENT, 0, true, false},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct display *display;

		sdl = fake.reset();
		closed_count = 0;
		display = opened();
		fake.act(rows[i].type, rows[i].event); /* with nothing to show yet */
		for (int k = 0; rows[i].closes && k < 5000 && closed_count == 0; k++)
			usleep(1000);
		give_well(display, 1, 2, 5);
		if (!rows[i].closes) {
			fake.wait(1);
			fake.act(rows[i].type, rows[i].event);
			give_well(display, 2, 2, 5);
			fake.wait(2);
			for (int k = 0; k < 100 && sdl->presents < 2 + rows[i].presents; k++)
				usleep(1000);
		}
		window_display_destroy(display);
		cr_expect_eq(closed_count, rows[i].closes, "row %zu: %d", i, closed_count);
		cr_expect_eq(sdl->pictures, rows[i].closes ? 0 : 2, "row %zu", i);
		cr_expect_eq(frames_left, 0, "row %zu: %d pictures are left", i, frames_left);
	}
}
