#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes the inputs of a fuzz target.

Inputs with a telling name are files: corpus/TARGET/NAME. All others are lines of corpus/TARGET.txt,
one input a line, sorted: printable ASCII characters stand for themselves, \\n, \\t and \\\\ for
newline, tab and backslash, \\xNN for any other byte and for a space at the end. test_corpus.c reads
both.

usage: corpus.py add TARGET FILE...         adds the files' contents to corpus/TARGET.txt
       corpus.py unpack TARGET FOLDER       makes FOLDER anew, with every input as a file, for
                                            libFuzzer
"""
import os
import re
import shutil
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
ESCAPES = {"\\n": b"\n", "\\t": b"\t", "\\\\": b"\\"}


def line_of(content):
    line = "".join({"\n": "\\n", "\t": "\\t", "\\": "\\\\"}.get(c) or (c if " " <= c <= "~" else "\\x%02x" % ord(c))
                   for c in content.decode("latin-1"))
    return line[:-1] + "\\x20" if line.endswith(" ") else line


def content_of(line):
    parts = re.split(r"(\\n|\\t|\\\\|\\x[0-9a-f]{2})", line)
    return b"".join(ESCAPES.get(p) or (bytes.fromhex(p[2:]) if p.startswith("\\x") else p.encode("ascii")) for p in parts)


def read_lines(target):
    path = os.path.join(CORPUS, target + ".txt")
    if not os.path.exists(path):
        return []
    with open(path, encoding="ascii") as f:
        return f.read().splitlines()


def add(target, paths):
    lines = set(read_lines(target))
    before = len(lines)
    for path in paths:
        with open(path, "rb") as f:
            lines.add(line_of(f.read()))
    with open(os.path.join(CORPUS, target + ".txt"), "w", encoding="ascii") as f:
        f.writelines(line + "\n" for line in sorted(lines))
    print("%s: %d inputs added, %d now" % (target, len(lines) - before, len(lines)))


def unpack(target, folder):
    shutil.rmtree(folder, ignore_errors=True)
    named = os.path.join(CORPUS, target)
    if os.path.isdir(named):
        shutil.copytree(named, folder)
    else:
        os.makedirs(folder)
    for number, line in enumerate(read_lines(target), 1):
        with open(os.path.join(folder, "%s.txt:%d" % (target, number)), "wb") as f:
            f.write(content_of(line))


def main():
    words = sys.argv[1:]
    if len(words) >= 3 and words[0] == "add":
        add(words[1], words[2:])
    elif len(words) == 3 and words[0] == "unpack":
        unpack(words[1], words[2])
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main()
