// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include "../../libfrag/modules/ucx/preface.h"
#include <base/alloc.h>

/*
 * Connections to one host, one after the other. Each sends bytes of the input, or a preface that
 * was made for one of two clients and to which the input may do something. Only a preface as it was
 * made, by the client that sends it or by one whose address is translated on the way, and that did
 * not come before, is admitted.
 */
#define TRANSLATED 2u /* stands for whichever of the clients sends it */

static const uint8_t key[UCX_GATE_KEY_BYTES] = "the key of the application";

static bool admitted[2][256]; /* by client and nonce */

static struct ucx_ends ends_of(uint8_t client)
{
	struct ucx_ends ends = {.identity = "the host"};

	if (client != TRANSLATED)
		ends.from[0] = client + 1;
	return ends;
}

static void make(uint8_t client, uint8_t nonce, uint8_t *bytes)
{
	struct ucx_ends ends = ends_of(client);

	memset(bytes, 0, UCX_PREFACE_BYTES);
	memset(bytes, nonce, UCX_NONCE_BYTES);
	fuzz_check(ucx_preface_make(key, &ends, bytes) == 0);
}

static void connect_to(struct ucx_judge *judge, struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input), client = how & 1, maker = how >> 1 & 1, nonce = 0;
	uint8_t made[UCX_PREFACE_BYTES], translated[UCX_PREFACE_BYTES], bytes[UCX_PREFACE_BYTES],
		*exact;
	struct ucx_ends ends = ends_of(client);
	size_t size = UCX_PREFACE_BYTES, given;
	const uint8_t *raw;
	enum ucx_verdict verdict;
	bool right;

	if ((how & 4) != 0) {
		raw = fuzz_bytes(input, UCX_PREFACE_BYTES, &given);
		memset(bytes, 0, sizeof(bytes));
		if (given > 0)
			memcpy(bytes, raw, given);
		size = given;
	} else {
		nonce = fuzz_u8(input);
		make((how & 64) != 0 ? TRANSLATED : maker, nonce, bytes);
		if ((how & 8) != 0)
			bytes[fuzz_u8(input) % UCX_PREFACE_BYTES] ^= fuzz_u8(input);
		if ((how & 16) != 0)
			size = fuzz_u8(input) % (UCX_PREFACE_BYTES + 1);
	}
	if ((how & 32) != 0)
		fragi_alloc_fail_after(0, 1);
	make(client, bytes[0], made);
	make(TRANSLATED, bytes[0], translated);
	right = size == UCX_PREFACE_BYTES && bytes[0] != 0 &&
		(memcmp(bytes, made, sizeof(made)) == 0 ||
		 memcmp(bytes, translated, sizeof(translated)) == 0);
	exact = fuzz_copy(bytes, size); /* nothing behind its end is readable */
	verdict = ucx_judge(judge, &ends, exact, size);
	free(exact);
	(void)fragi_alloc_fail_off();
	if (verdict == UCX_REFUSED_MEMORY)
		return;
	fuzz_check(ucx_verdict_text(verdict)[0] != '\0');
	if (!right)
		fuzz_check(verdict == (size == 0                  ? UCX_REFUSED_SILENT
				       : size < UCX_PREFACE_BYTES ? UCX_REFUSED_SHORT
								  : UCX_REFUSED_FORGED));
	else
		fuzz_check(verdict == (admitted[0][bytes[0]] || admitted[1][bytes[0]]
					       ? UCX_REFUSED_REPLAYED
					       : UCX_ADMITTED));
	if (verdict == UCX_ADMITTED)
		admitted[client][bytes[0]] = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	struct ucx_judge judge = {.key = key};

	memset(admitted, 0, sizeof(admitted));
	for (int steps = 0; steps < 1000 && fuzz_left(&input) > 0; steps++)
		connect_to(&judge, &input);
	ucx_judge_fini(&judge);
	return 0;
}
