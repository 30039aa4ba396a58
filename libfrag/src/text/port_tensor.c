// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <frag/operator.h>
#include <text/port_tensor.h>

/* Takes spaces off both ends of a piece of text. Returns what is left of its length. */
static size_t trim(const char **text, size_t length)
{
	while (length > 0 && **text == ' ') {
		(*text)++;
		length--;
	}
	while (length > 0 && (*text)[length - 1] == ' ')
		length--;
	return length;
}

bool fragi_port_tensor_next(const char **rest, struct fragi_port_tensor *out)
{
	size_t length = strcspn(*rest, ";"), kind = strcspn(*rest, ":;");
	size_t text = strcspn(*rest, "|;");

	if (kind >= text)
		return false;
	*out = (struct fragi_port_tensor){.kind = *rest, .text = *rest + kind + 1};
	out->kind_length = trim(&out->kind, kind);
	out->text_length = trim(&out->text, text - kind - 1);
	if (text < length) {
		out->converter = *rest + text + 1;
		out->converter_length = trim(&out->converter, length - text - 1);
	}
	*rest += length;
	if (**rest == ';')
		(*rest)++;
	return out->kind_length > 0 && out->text_length > 0 &&
	       (out->converter_length > 0 || text == length);
}

/* Finds the declaration of a kind. */
static bool find_kind(const char *tensors, const struct fragi_port_tensor *kind,
		      struct fragi_port_tensor *out)
{
	while (fragi_port_tensor_next(&tensors, out))
		if (out->kind_length == kind->kind_length &&
		    memcmp(out->kind, kind->kind, kind->kind_length) == 0)
			return true;
	return false;
}

bool fragi_port_tensors_are_valid(const char *tensors)
{
	struct fragi_port_tensor tensor, first;
	const char *rest = tensors;

	if (strnlen(tensors, FRAG_PORT_TENSORS_MAX + 1) > FRAG_PORT_TENSORS_MAX)
		return false;
	for (const char *c = tensors; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			return false;
	do {
		if (!fragi_port_tensor_next(&rest, &tensor) ||
		    !find_kind(tensors, &tensor, &first) || first.kind != tensor.kind)
			return false;
	} while (*rest != '\0');
	return true;
}

bool fragi_port_tensors_differ(const char *sent, const char *taken,
			       struct fragi_port_tensor *out_sent,
			       struct fragi_port_tensor *out_taken)
{
	if (sent == NULL || taken == NULL)
		return false;
	while (fragi_port_tensor_next(&sent, out_sent))
		if (find_kind(taken, out_sent, out_taken) &&
		    (out_sent->text_length != out_taken->text_length ||
		     memcmp(out_sent->text, out_taken->text, out_sent->text_length) != 0))
			return true;
	return false;
}
