# SPDX-License-Identifier: Apache-2.0
"""Descriptions of components: a tree of dicts and lists as YAML."""


def scalar(value):
    """A value as it stands behind a key."""
    if value is None:
        return "~"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return "%.17g" % value if value != round(value, 6) else "%g" % value
    if isinstance(value, (list, tuple, set, frozenset, range)):
        return "[%s]" % ", ".join(scalar(x) for x in value)
    text = str(value)
    if text == "":
        return '""'
    if ": " in text or text.startswith(("- ", "[", "{")):
        return '"%s"' % text.replace('"', '\\"')
    return text


def lines(tree, indent=""):
    """The lines of a dict; values are scalars, dicts, or lists of dicts and texts."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield "%s%s:" % (indent, key)
            yield from lines(value, indent + "  ")
        elif isinstance(value, list):
            yield "%s%s:" % (indent, key)
            yield from items(value, indent + "  ")
        else:
            yield "%s%s: %s" % (indent, key, value)


def items(values, indent):
    if not values:
        yield indent + "[]"
    for value in values:
        if isinstance(value, dict):
            for number, line in enumerate(lines(value, "")):
                yield indent + ("  " if number else "- ") + line
        else:
            yield "%s- %s" % (indent, value)


def text(tree):
    return "\n".join(lines(tree))
