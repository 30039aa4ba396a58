#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the table of the public names of Holoscan's Python modules in docs/FROM_HOLOSCAN.md.

A name is the same, differs or is absent. tests/data/holoscan/python_names.txt has the names: those
that a module exports, each with the public members of a class. What frag.holoscan has of them is
looked up there; tests/data/holoscan/python_notes.txt says how a name differs and why it is absent.

usage: mk/holoscan_names.py [--build DIR] [--check]
       mk/holoscan_names.py --refresh PYTHON       names of the wheel that this Python imports

--check changes nothing and fails when the table is not as it would be made. Run it with the Python
that the extension was built for.
"""
import argparse
import ast
import functools
import importlib
import inspect
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(TOP, "tests", "data", "holoscan")
NAMES, NOTES = (os.path.join(DATA, "python_%s.txt" % x) for x in ("names", "notes"))
PAGE = os.path.join(TOP, "docs", "FROM_HOLOSCAN.md")
PART = re.compile(r"(<!-- names of holoscan in Python -->\n)(.*?)(<!-- end -->)", re.S)
MODULES = ("core", "conditions", "resources", "schedulers", "operators", "decorator",
           "data_loggers", "logger", "gxf", "graphs", "executors", "network_contexts", "pose_tree")

# What an installed Holoscan exports. It runs in the Python that has it.
LIST = """
import importlib, inspect, sys
for module in sys.argv[1:]:
    names = importlib.import_module("holoscan." + module)
    for name in sorted(set(names.__all__)):
        members = []
        try:
            value = getattr(names, name)
        except ImportError:
            value = None
        if inspect.isclass(value):
            members = sorted(key for key in dir(value) if key[0] != "_")
            if hasattr(value, "__members__"):
                members = sorted(value.__members__)
        print(module + "." + name, *members)
"""


def refresh(python):
    result = subprocess.run([python, "-c", LIST, *MODULES], capture_output=True, text=True)
    if result.returncode != 0:
        raise SystemExit("the names of Holoscan were not listed: " + result.stderr)
    with open(NAMES, "w", encoding="utf-8") as file:
        file.write(result.stdout)


def read_names():
    with open(NAMES, encoding="utf-8") as file:
        return [(words[0], words[1:]) for words in map(str.split, file) if words]


def read_notes():
    """{name: (kind, text)}"""
    with open(NOTES, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and line[0] != "#"]
    notes = {}
    for line in lines:
        name, kind, text = line.split(None, 2)
        if kind not in ("differs", "absent"):
            raise SystemExit("%s: %s is neither differs nor absent" % (NOTES, kind))
        notes[name] = (kind, text)
    return notes


@functools.cache
def written(path):
    """The attributes that the classes of a file set on self: {class: names}."""
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {cls.name: {node.attr for node in ast.walk(cls) if isinstance(node, ast.Attribute)
                       and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)
                       and node.value.id == "self"}
            for cls in ast.walk(tree) if isinstance(cls, ast.ClassDef)}


def attributes(cls):
    """The public names that a class has, or that its methods set on objects."""
    names = set(dir(cls)) | set(getattr(cls, "__members__", ()))
    for base in cls.__mro__[:-1]:
        names.update(getattr(base, "__slots__", ()))
        path = getattr(sys.modules.get(base.__module__), "__file__", None) or ""
        if path.endswith(".py"):
            names |= written(path).get(base.__name__, set())
    return names


def state(name, members, note):
    """What the table says of a name."""
    module, _, key = name.partition(".")
    try:
        found = getattr(importlib.import_module("frag.holoscan." + module), key, None)
    except ModuleNotFoundError:
        found = None
    kind, text = note or (None, "")
    if found is None:
        if kind != "absent":
            raise SystemExit("%s is not in frag.holoscan; %s is to say why it is absent"
                             % (name, os.path.relpath(NOTES, TOP)))
        return "absent: " + text
    if kind == "absent":
        raise SystemExit("%s is in frag.holoscan, but %s says that it is absent"
                         % (name, os.path.relpath(NOTES, TOP)))
    missing = []
    if inspect.isclass(found):
        have = attributes(found)
        missing = [member for member in members if member not in have]
    if missing:
        text = "; ".join(filter(None, [text, "without " + ", ".join("`%s`" % m for m in missing)]))
    return "differs: " + text if text else "same"


def table():
    notes = read_notes()
    names = read_names()
    unknown = set(notes) - {name for name, _ in names}
    if unknown:
        raise SystemExit("%s has notes about no name: %s" % (NOTES, ", ".join(sorted(unknown))))
    same, rows = {}, []
    for name, members in names:
        text = state(name, members, notes.get(name))
        module, _, key = name.partition(".")
        if text == "same":
            same.setdefault(module, []).append("`%s`" % key)
        else:
            rows.append("| `%s` | %s |" % (name, text))
    lines = ["| module | the same |", "| --- | --- |"]
    lines += ["| `%s` | %s |" % (module, ", ".join(same.get(module, ["none"])))
              for module in MODULES]
    return "\n".join(["", *lines, "", "| name | differs or is absent |", "| --- | --- |", *rows,
                      "", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--refresh", metavar="PYTHON")
    args = parser.parse_args()
    if args.refresh:
        refresh(args.refresh)
        return 0
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.abspath(args.build), "python"))
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    if PART.search(page) is None:
        raise SystemExit("%s has no part for the table" % PAGE)
    made = PART.sub(lambda match: match[1] + table() + match[3], page)
    if made == page:
        return 0
    if args.check:
        print("docs/FROM_HOLOSCAN.md: the table of Holoscan's names in Python is not as "
              "mk/holoscan_names.py makes it; run that", file=sys.stderr)
        return 1
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
