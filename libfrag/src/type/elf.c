// SPDX-License-Identifier: Apache-2.0
#include <type/elf.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 256

static bool read_at(int fd, void *out, size_t size, uint64_t offset)
{
	return pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* Returns how many bytes the file must have; 0: it is not for this check. */
static uint64_t end_of_segments(int fd)
{
	const unsigned char class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	ElfW(Ehdr) head;
	ElfW(Phdr) segment;
	uint64_t end, at;

	if (!read_at(fd, &head, sizeof(head), 0))
		return sizeof(head);
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != class ||
	    head.e_phentsize != sizeof(segment) || head.e_phnum > SEGMENTS_MAX)
		return 0;
	end = head.e_phoff + (uint64_t)head.e_phnum * sizeof(segment);
	for (uint16_t i = 0; i < head.e_phnum; i++) {
		at = head.e_phoff + (uint64_t)i * sizeof(segment);
		if (!read_at(fd, &segment, sizeof(segment), at))
			break;
		if (segment.p_type == PT_LOAD && segment.p_offset + segment.p_filesz > end)
			end = segment.p_offset + segment.p_filesz;
	}
	return end;
}

int fragi_elf_check(const char *path, const char *name, struct frag_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r = 0;
	struct stat st;
	uint64_t end;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		end = end_of_segments(fd);
		if (end > (uint64_t)st.st_size)
			r = frag_err_set(
				err, -ENOEXEC,
				"library %s is cut short: it has %lld bytes and needs at least %llu; build or copy it again",
				name, (long long)st.st_size, (unsigned long long)end);
	}
	close(fd);
	return r;
}
