// SPDX-License-Identifier: Apache-2.0
#include <type/elf.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENTS_MAX 256

static bool read_at(int fd, void *out, size_t size, uint64_t offset)
{
	return pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* As far as it goes: one that is cut short may have no more than a part. */
static bool begins_as_elf(int fd)
{
	char magic[SELFMAG];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	return n < 0 || memcmp(magic, ELFMAG, (size_t)n) == 0;
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

static const char *machine_name(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86_64";
	case EM_AARCH64:
		return "aarch64";
	case EM_386:
		return "i386";
	case EM_ARM:
		return "arm";
	case EM_RISCV:
		return "riscv";
	case EM_PPC64:
		return "ppc64";
	default:
		return "another machine";
	}
}

/* As "32-bit x86_64": libraries of two kinds may be for one machine. */
static const char *kind_of(const ElfW(Ehdr) * head, char out[48])
{
	snprintf(out, 48, "%s-bit%s %s", head->e_ident[EI_CLASS] == ELFCLASS32 ? "32" : "64",
		 head->e_ident[EI_DATA] == ELFDATA2MSB ? " big-endian" : "",
		 machine_name(head->e_machine));
	return out;
}

/* Of a library for another machine the dynamic linker says that there is no such file. */
static int check_machine(int fd, const char *name, struct frag_err *err)
{
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ElfW(Ehdr) own, head;
	bool knows = self >= 0 && read_at(self, &own, sizeof(own), 0);
	char its[48], ours[48];

	if (self >= 0)
		close(self);
	if (!knows || !read_at(fd, &head, sizeof(head), 0) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    (head.e_machine == own.e_machine && head.e_ident[EI_CLASS] == own.e_ident[EI_CLASS] &&
	     head.e_ident[EI_DATA] == own.e_ident[EI_DATA]))
		return 0;
	return frag_err_set(err, -ENOEXEC,
			    "library %s is for %s, and this is %s; build it for this machine", name,
			    kind_of(&head, its), kind_of(&own, ours));
}

/* Where the file has what is at an address; 0: nowhere. */
static uint64_t offset_of(const ElfW(Phdr) * segments, uint16_t count, uint64_t address)
{
	for (uint16_t i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
		    address - segments[i].p_vaddr < segments[i].p_filesz)
			return address - segments[i].p_vaddr + segments[i].p_offset;
	return 0;
}

/* A library whose C library is musl would run with two of them. Reads what can be read. */
static int check_libc(int fd, const char *name, struct frag_err *err)
{
	ElfW(Phdr) segments[SEGMENTS_MAX];
	uint64_t dynamic = 0, texts = 0, count = 0;
	char needed[16] = "";
	ElfW(Ehdr) head;
	ElfW(Dyn) entry;

	if (!read_at(fd, &head, sizeof(head), 0) || head.e_phentsize != sizeof(segments[0]) ||
	    head.e_phnum > SEGMENTS_MAX ||
	    !read_at(fd, segments, head.e_phnum * sizeof(segments[0]), head.e_phoff))
		return 0;
	for (uint16_t i = 0; i < head.e_phnum; i++)
		if (segments[i].p_type == PT_DYNAMIC) {
			dynamic = segments[i].p_offset;
			count = segments[i].p_filesz / sizeof(entry);
		}
	for (uint64_t i = 0;
	     i < count && read_at(fd, &entry, sizeof(entry), dynamic + i * sizeof(entry)); i++)
		if (entry.d_tag == DT_STRTAB)
			texts = offset_of(segments, head.e_phnum, entry.d_un.d_ptr);
	for (uint64_t i = 0; texts != 0 && i < count &&
			     read_at(fd, &entry, sizeof(entry), dynamic + i * sizeof(entry));
	     i++)
		if (entry.d_tag == DT_NEEDED &&
		    read_at(fd, needed, sizeof(needed) - 1, texts + entry.d_un.d_val) &&
		    (strncmp(needed, "libc.musl-", 10) == 0 || strcmp(needed, "libc.so") == 0))
			return frag_err_set(
				err, -ENOEXEC,
				"library %s was built with the C library musl, and this program with glibc; build it on a system with glibc",
				name);
	return 0;
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
		if (!begins_as_elf(fd))
			r = frag_err_set(
				err, -ENOEXEC,
				"library %s is no shared object: it does not begin as an ELF file; name the one that the linker has made",
				name);
		else if (end > (uint64_t)st.st_size)
			r = frag_err_set(
				err, -ENOEXEC,
				"library %s is cut short: it has %lld bytes and needs at least %llu; build or copy it again",
				name, (long long)st.st_size, (unsigned long long)end);
		if (r == 0)
			r = check_machine(fd, name, err);
		if (r == 0)
			r = check_libc(fd, name, err);
	}
	close(fd);
	return r;
}
