#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the tables of planted mistakes, KIND.txt in this folder, and makes their edits.

usage: table.py names KIND            prints the names of its rows
       table.py title KIND NAME       prints what the mistake is
       table.py get KIND NAME KEY     prints the values of KEY: test, part, rows
       table.py plant KIND NAME TREE  makes the mistake in the sources below TREE
       table.py mend KIND NAME TREE   takes it out again

A row:

    A10-hang: after an operator that hangs another application is started
    @ runner/module.c
     	pthread_mutex_lock(&present_lock);
    -	if (runner_thread_is_stuck())
    +	if (false)

The name and what the mistake is; perhaps `test: NAME`, which must fail (else one of the feature's
tests must); then one edit or several: the file, and lines that begin with `-` (taken away), `+`
(added) or a space (kept). The kept lines and those taken away are the old text, which must occur
exactly once in the file; keep no more lines than that needs.
Lines that begin with # are comments.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
KEYS = ("test", "part", "rows")
KEPT = ".planted"  # appended to the name of a file: what it was before
KINDS = ("bench", "features", "fuzz", "oracle", "races", "sim")


class Edit:
    def __init__(self, path):
        self.path = path
        self.lines = []  # (mark, text)

    def side(self, mark):
        return "".join(text + "\n" for m, text in self.lines if m in " " + mark)

    old = property(lambda self: self.side("-"))
    new = property(lambda self: self.side("+"))


class Row:
    def __init__(self, name, title, place):
        self.name = name
        self.title = title
        self.place = place
        self.keys = {}
        self.edits = []


def find_once(text, part):
    """Where the whole lines of part stand in text; a sentence instead if that is not one place."""
    found = [m.start() for m in re.finditer("(?m)^" + re.escape(part), text)] if part else []
    if len(found) == 1:
        return found[0], None
    return None, "the old text occurs %s in it" % ("%d times" % len(found) if found else "nowhere")


def parse(path):
    """The rows of a table by name. ValueError says what is wrong with it."""
    rows = {}
    row = None
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("\n")
    for number, line in enumerate(lines, 1):
        place = "%s:%d" % (os.path.relpath(path), number)
        if line == "" or line.startswith("#"):
            continue
        if line.startswith("@ "):
            if row is None:
                raise ValueError("%s: an edit before the first row" % place)
            row.edits.append(Edit(line[2:].strip()))
        elif line[0] in " -+":
            if row is None or not row.edits:
                raise ValueError("%s: no line `@ FILE` is above this one" % place)
            row.edits[-1].lines.append((line[0], line[1:]))
        else:
            m = re.fullmatch(r"([\w-]+): (.+)", line)
            if not m:
                raise ValueError("%s: neither `NAME: WHAT`, `@ FILE` nor a line of an edit" % place)
            if m.group(1) in KEYS and row is not None and not row.edits:
                row.keys.setdefault(m.group(1), []).append(m.group(2))
                continue
            if m.group(1) in rows:
                raise ValueError("%s: %s stands twice" % (place, m.group(1)))
            row = rows[m.group(1)] = Row(m.group(1), m.group(2), place)
    return rows


def load(kind):
    return parse(os.path.join(HERE, kind + ".txt"))


def edited(row, tree):
    """{path: (text, text with the mistake)}. ValueError says what does not fit."""
    edits = {}
    for edit in row.edits:
        edits.setdefault(edit.path, []).append((edit.old, edit.new))
    result = {}
    for path, pairs in edits.items():
        try:
            with open(os.path.join(tree, path), encoding="utf-8") as f:
                text = f.read()
        except OSError as e:
            raise ValueError("%s: %s: %s: %s" % (row.place, row.name, path, e.strerror))
        places = []
        for old, new in pairs:
            at, why = find_once(text, old)
            if why:
                raise ValueError("%s: %s: %s: %s; make the mistake in the code as it is now" %
                                 (row.place, row.name, path, why))
            places.append((at, at + len(old), new))
        places.sort()
        for one, other in zip(places, places[1:]):
            if one[1] > other[0]:
                raise ValueError("%s: %s: two edits of %s overlap" % (row.place, row.name, path))
        wrong = text
        for start, end, new in reversed(places):
            wrong = wrong[:start] + new + wrong[end:]
        result[path] = (text, wrong)
    return result


def check(row, tree):
    """A sentence about what does not hold of a row, or None."""
    if not row.edits:
        return "%s: %s edits nothing" % (row.place, row.name)
    for edit in row.edits:
        if edit.old == edit.new:
            return "%s: %s: an edit of %s changes nothing" % (row.place, row.name, edit.path)
    try:
        edited(row, tree)
    except ValueError as e:
        return str(e)
    return None


def plant(row, tree):
    """Makes the mistake in a tree, and keeps what was there beside it."""
    for path, (right, wrong) in edited(row, tree).items():
        for suffix, text in (KEPT, right), ("", wrong):
            with open(os.path.join(tree, path + suffix), "w", encoding="utf-8") as f:
                f.write(text)


def mend(row, tree):
    """Undoes plant. The files are written anew, so that make notices."""
    for path in {edit.path for edit in row.edits}:
        path = os.path.join(tree, path)
        with open(path + KEPT, encoding="utf-8") as right, open(path, "w", encoding="utf-8") as f:
            f.write(right.read())
        os.remove(path + KEPT)


def main():
    args = sys.argv[1:]
    if len(args) < 2 or args[1] not in KINDS:
        sys.exit(__doc__)
    try:
        rows = load(args[1])
        if args[0] == "names":
            print("\n".join(rows))
            return
        if args[2] not in rows:
            sys.exit("tests/planted/%s.txt has no row %s" % (args[1], args[2]))
        row = rows[args[2]]
        if args[0] == "title":
            print(row.title)
        elif args[0] == "get":
            print("\n".join(row.keys.get(args[3], [])), end="")
        else:
            {"plant": plant, "mend": mend}[args[0]](row, args[3])
    except ValueError as e:
        sys.exit(str(e))


if __name__ == "__main__":
    main()
