// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <workerd/page.h>

/*
 * The page that a fraghost gives its workerd, and what the host can still do to it: a byte, then
 * with bit 0 the whole file as it is, else the counts of a sound page; then writes into it (u32
 * place, u64 value) before the first look (bit 1) or after it. Bit 2: the host tries to cut the
 * file short.
 */
static void write_counters(struct fuzz_input *input, int fd, size_t size)
{
	while (fuzz_left(input) > 0 && size >= 8) {
		uint64_t at = fuzz_u32(input), value = fuzz_u64(input);

		fuzz_check(pwrite(fd, &value, sizeof(value), (off_t)(at % (size - 7))) ==
			   (ssize_t)sizeof(value));
	}
}

static void look(struct wrk_page *page)
{
	struct fw_host_stats stats;
	int r = wrk_page_read(page, &stats);

	fuzz_check(r == 0 || r == -EBADMSG || r == -ENOENT || r == -ENOMEM);
	if (r < 0)
		return;
	fuzz_check(stats.op_count <= FW_ROWS_MAX && stats.flow_count <= FW_ROWS_MAX);
	for (uint32_t i = 0; i < stats.op_count; i++)
		fuzz_check(stats.ops[i].state <= FRAGI_OP_FAILED &&
			   stats.ops[i].compute.p50 <= stats.ops[i].compute.p99);
	for (uint32_t i = 0; i < stats.flow_count; i++)
		fuzz_check(stats.flows[i].latency.p50 <= stats.flows[i].latency.p99 &&
			   stats.flows[i].latency.p99 <= stats.flows[i].latency.p999);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t how = fuzz_u8(&input);
	struct fragi_ledger theirs = {0};
	struct wrk_page page;
	size_t file_size;

	fuzz_check(wrk_page_init(&page) == 0);
	if ((how & 1) != 0) {
		file_size = fuzz_left(&input);
		fuzz_check(write(page.fd, input.at, file_size) == (ssize_t)file_size);
		input.at = input.end;
	} else {
		uint32_t ops = fuzz_u8(&input) & 7, flows = fuzz_u8(&input) & 7;

		fuzz_check(fragi_ledger_create(&theirs, page.fd, ops, flows) == 0);
		file_size = theirs.head->size_bytes; /* what follows it is for traces */
	}
	if ((how & 2) != 0)
		write_counters(&input, page.fd, file_size);
	look(&page);
	if ((how & 4) != 0)
		(void)!ftruncate(page.fd, (off_t)(file_size / 2)); /* refused once it is mapped */
	write_counters(&input, page.fd, (how & 1) != 0 ? 0 : file_size);
	look(&page);
	fragi_ledger_close(&theirs);
	wrk_page_fini(&page);
	return 0;
}
