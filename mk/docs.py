#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the parts of docs/ that the programs know themselves. What stands between `<!-- made by: COMMAND -->` and
`<!-- end -->` is the output of COMMAND, a program of the build tree; between `<!-- states: FILE TABLE -->` and
`<!-- end -->`, the table of legal moves of that name in that source file.

usage: mk/docs.py [--build DIR] [--check]      --check changes nothing and fails when a part is not as it would be made
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PART = re.compile(r"(<!-- (made by|states): (.+?) -->\n)(.*?)(<!-- end -->)", re.S)


def made(command, build):
    words = shlex.split(command)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FRAG_")}
    r = subprocess.run([os.path.join(build, "bin", words[0]), *words[1:]], capture_output=True, text=True, env=env,
                       cwd=TOP)
    if r.returncode != 0:
        raise SystemExit("%s: exit status %d: %s" % (command, r.returncode, r.stderr))
    text = "\n".join(line.rstrip() for line in r.stdout.replace(build + "/", "").rstrip().splitlines())
    return "```\n%s\n```\n" % text


def states(what):
    """A markdown table of `static const uint32_t TABLE[] = {[FROM] = BIT(TO) | ..., ...};`."""
    path, table = what.split()
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        source = f.read()
    defines = dict(re.findall(r"^#define (\w+) (.+)$", source, re.M))
    body = re.search(r"%s\[\w*\] = \{(.*?)\n\};" % table, source, re.S).group(1)
    rows = []
    for state, moves in re.findall(r"\[(\w+)\] =\s*(.*?)(?:,\n|,$|$)", body, re.S):
        for name, value in defines.items():
            moves = re.sub(r"\b%s\b" % name, lambda m, v=value: v, moves)
        rows.append((state, re.findall(r"BIT\((\w+)\)", moves)))
    prefix = len(os.path.commonprefix([r[0] for r in rows]))
    name = lambda s: s[prefix:].lower().replace("_", " ")
    lines = ["| state | may become |", "|---|---|"]
    lines += ["| %s | %s |" % (name(s), ", ".join(map(name, to)) or "nothing: it is over") for s, to in rows]
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--check", action="store_true")
    args = p.parse_args()
    build = os.path.abspath(args.build)
    stale = []
    for name in sorted(os.listdir(os.path.join(TOP, "docs"))):
        if not name.endswith(".md"):
            continue
        path = os.path.join(TOP, "docs", name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = PART.sub(lambda m: m.group(1) + (states(m.group(3)) if m.group(2) == "states"
                                                 else made(m.group(3), build)) + m.group(5), old)
        if new != old:
            stale.append("docs/" + name)
            if not args.check:
                with open(path, "w", encoding="utf-8") as f:
                    f.write(new)
    if stale and args.check:
        print("not as the programs say; run mk/docs.py: %s" % ", ".join(stale))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
