/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_UNITS_H
#define FRAGI_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * The only parsers of values that people write. They return 0; -EINVAL: not such a value; -ERANGE:
 * out of range. On failure the output is untouched.
 */

/*
 * A size in bytes: "4096", "512Mi", "512MB", "2 GB", "8K". All spellings of a unit (K, KB, Ki, KiB;
 * M, G and T likewise) are powers of 1024.
 */
FRAGI_API int fragi_parse_size(const char *text, uint64_t *out_bytes);
/* A time: "1000" (ns), "10ns", "5us", "10ms", "2s", "1.5s", "1m", "2h". -ERANGE: too long. */
FRAGI_API int fragi_parse_time(const char *text, int64_t *out_ns);
/*
 * A duration: a time, or a frequency, which stands for its period: "30hz". -EDOM: a frequency
 * without such a period.
 */
FRAGI_API int fragi_parse_duration(const char *text, int64_t *out_ns);
/* Returns whether a duration is a number other than 0 without a unit: "1000". */
FRAGI_API bool fragi_duration_lacks_unit(const char *text);
/* true, false, yes, no, on, off, 1, 0 */
FRAGI_API int fragi_parse_bool(const char *text, bool *out_value);
/* Decimal or 0x hexadecimal, with an optional sign. The number must be the whole text. */
FRAGI_API int fragi_parse_i64(const char *text, int64_t *out_value);
FRAGI_API int fragi_parse_f64(const char *text, double *out_value);
/* [A-Za-z][A-Za-z0-9_-]{0,62} */
FRAGI_API bool fragi_name_is_valid(const char *name);
/*
 * Whether it is a valid name of a type of operators, conditions or resources: one as above, or
 * LANGUAGE:NAME, where the latter NAME may have dots.
 */
FRAGI_API bool fragi_type_name_is_valid(const char *name);

#define FRAGI_PORT_DEFAULT 57777
struct fragi_address {
	char host[256];           /* IPv4, IPv6 without brackets, or a host name */
	uint16_t port, port_last; /* port_last: end of a range; else equal to port */
};
/* "[IPv4|[IPv6]|host][:port[-port]]". Either part may be left out; then the default is used. */
FRAGI_API int fragi_parse_address(const char *text, const char *host_default, uint16_t port_default,
				  struct fragi_address *out_address, struct frag_err *err);
/* Returns whether the host is a literal loopback address or "localhost". */
FRAGI_API bool fragi_address_is_loopback(const struct fragi_address *address);

/* Writes "41 us", "1.2 ms" or "30.1 s" into out. Returns out. */
FRAGI_API const char *fragi_format_duration(int64_t ns, char *out, size_t size);

/*
 * Returns the candidate that is nearest to word by edit distance, where a swap of neighbours counts
 * one; NULL when none is within a third of the word's length. For "did you mean".
 */
FRAGI_API const char *fragi_suggest(const char *word, const char *const *candidates, size_t count);
/* Compares in upper or lower case, with underscores or without: KeepAll is keep_all. */
FRAGI_API bool fragi_same_choice(const char *a, const char *b);
/*
 * Writes the end of a sentence about an unknown name into out: `; did you mean "x"?`, or `; WHAT:
 * x, y`, or nothing when there are no names. Returns out.
 */
FRAGI_API const char *fragi_advise(char *out, size_t size, const char *word, const char *what,
				   const char *const *names, size_t count);

/*
 * What a number made of others' counts is without its fraction: 0 below 0 and where it is none,
 * UINT64_MAX beyond that. A cast alone says nothing of these.
 */
static inline uint64_t fragi_whole(double number)
{
	if (!(number > 0))
		return 0;
	return number < 0x1p64 ? (uint64_t)number : UINT64_MAX;
}

#endif
