// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wire/tls.h>

/*
 * What a stranger sends where TLS is spoken. The first byte chooses:
 *  - server, client: the rest is the stream that this side reads, cut into pieces
 *  - changes: a handshake of two sides, and changes of the bytes on their way: direction, place and
 *    mask of each
 *  - file: the rest is a key file
 * The random numbers of a handshake differ from run to run; what must hold does not depend on them.
 */
enum mode { SERVER, CLIENT, CHANGES, KEY_FILE, MODES };
#define KEYS                                                                                       \
	"frag-key-1 node7 any 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n"
#define CHANGES_MAX 64
#define ROUNDS_MAX 8

struct change {
	uint16_t at;
	uint8_t direction, mask;
};

/* A file that only its owner can read and that has no name. */
static int make_file(const void *bytes, size_t size, char path[64])
{
	int fd = memfd_create("key", MFD_CLOEXEC);

	fuzz_check(fd >= 0 && fchmod(fd, 0600) == 0);
	fuzz_check(write(fd, bytes, size) == (ssize_t)size);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static struct fw_tls *side(bool is_server)
{
	static struct fw_tls *sides[2];
	struct frag_err err = FRAG_ERR_INIT;
	char path[64];
	int fd;

	if (sides[is_server] == NULL) {
		fd = make_file(KEYS, sizeof(KEYS) - 1, path);
		fuzz_check(fw_tls_create(&(struct fw_tls_config){.is_server = is_server,
								 .key_file = path},
					 &sides[is_server], &err) == 0);
		close(fd);
	}
	return sides[is_server];
}

/* Reads all there is. Returns 0 or how it ended, with a sentence. */
static int drain(struct fw_tls *tls, void *session)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t clear[512];
	ssize_t n;

	do {
		n = tls->ops->read(session, clear, sizeof(clear), &err);
		fuzz_check(n <= (ssize_t)sizeof(clear));
	} while (n > 0);
	fuzz_check(n == 0 || err.text[0] != '\0');
	return (int)n;
}

static int take(struct fw_tls *tls, void *session, const uint8_t *bytes, size_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t *copy = fuzz_copy(bytes, size);
	int r = tls->ops->take(session, copy, size, &err);

	fuzz_check(r == 0 || err.text[0] != '\0');
	free(copy);
	return r == 0 ? drain(tls, session) : r;
}

static void drop_output(struct fw_tls *tls, void *session)
{
	uint8_t *bytes = NULL;

	if (tls->ops->output(session, &bytes) > 0)
		free(bytes);
}

static void stream(struct fw_tls *tls, struct fuzz_input *input)
{
	size_t step = (size_t)1 << (fuzz_u8(input) & 15), count;
	const uint8_t *chunk;
	void *session;
	int r;

	fuzz_check(tls->ops->begin(tls, &session) == 0);
	r = drain(tls, session);
	while (r == 0 && fuzz_left(input) > 0) {
		drop_output(tls, session);
		chunk = fuzz_bytes(input, step, &count);
		r = take(tls, session, chunk, count);
	}
	fuzz_check(tls->ops->identity(session) == NULL);
	drop_output(tls, session);
	tls->ops->finish(session);
	tls->ops->end(session);
}

/* Carries what one side says to the other, changed. Returns how that took it; 1: nothing came. */
static int carry(struct fw_tls *tls[2], void *session[2], int from, size_t *passed,
		 const struct change *changes, size_t count, bool *changed)
{
	uint8_t *bytes = NULL;
	ssize_t size = tls[from]->ops->output(session[from], &bytes);
	int r;

	if (size <= 0)
		return 1;
	for (size_t i = 0; i < count; i++) {
		size_t at = changes[i].at;

		if ((changes[i].direction & 1) != from || at < passed[from] ||
		    at >= passed[from] + (size_t)size || changes[i].mask == 0)
			continue;
		bytes[at - passed[from]] ^= changes[i].mask;
		*changed = true;
	}
	passed[from] += (size_t)size;
	r = take(tls[!from], session[!from], bytes, (size_t)size);
	free(bytes);
	return r;
}

static void handshake(struct fuzz_input *input)
{
	struct fw_tls *tls[2] = {side(false), side(true)};
	struct change changes[CHANGES_MAX];
	size_t count = 0, passed[2] = {0};
	bool changed = false;
	void *session[2];
	int r[2] = {0, 0};

	while (fuzz_left(input) > 0 && count < CHANGES_MAX) {
		changes[count].direction = fuzz_u8(input);
		changes[count].at = fuzz_u16(input);
		changes[count++].mask = fuzz_u8(input);
	}
	for (int i = 0; i < 2; i++) {
		fuzz_check(tls[i]->ops->begin(tls[i], &session[i]) == 0);
		r[i] = drain(tls[i], session[i]);
	}
	for (int round = 0; round < ROUNDS_MAX; round++)
		for (int from = 0; from < 2; from++)
			if (r[!from] == 0 && (r[!from] = carry(tls, session, from, passed, changes,
							       count, &changed)) == 1)
				r[!from] = 0;
	if (!changed)
		fuzz_check(tls[1]->ops->identity(session[1]) != NULL);
	for (int i = 0; i < 2; i++) {
		if (tls[i]->ops->identity(session[i]) != NULL) {
			fuzz_check(strcmp(tls[i]->ops->identity(session[i])->name, "node7") == 0);
			fuzz_check(r[i] != 0 ||
				   tls[i]->ops->write(session[i], (const uint8_t *)"x", 1) == 0);
		}
		tls[i]->ops->finish(session[i]);
		drop_output(tls[i], session[i]);
		tls[i]->ops->end(session[i]);
	}
}

static void key_file(struct fuzz_input *input)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_keys *keys = NULL;
	char path[64], line[FW_KEY_LINE_MAX];
	int fd = make_file(input->at, fuzz_left(input), path);
	int r = fw_keys_read(path, NULL, &keys, &err);

	close(fd);
	fuzz_check((r == 0) == (keys != NULL) && (r == 0 || err.text[0] != '\0'));
	for (size_t i = 0; r == 0 && i < keys->count; i++) {
		fw_key_print(&keys->items[i], line);
		fuzz_check(fw_keys_find(keys, keys->items[i].name, strlen(keys->items[i].name)) ==
			   &keys->items[i]);
	}
	fw_keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};

	switch ((enum mode)(fuzz_u8(&input) % MODES)) {
	case SERVER:
		stream(side(true), &input);
		break;
	case CLIENT:
		stream(side(false), &input);
		break;
	case CHANGES:
		handshake(&input);
		break;
	default:
		key_file(&input);
	}
	return 0;
}
