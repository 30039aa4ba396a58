#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the parts of docs/ that the programs know themselves: what stands between `<!-- made by: COMMAND -->` and
`<!-- end -->` is the output of COMMAND, a program of the build tree.

usage: mk/docs.py [--build DIR] [--check]      --check changes nothing and fails when a part is not as it would be made
"""
import argparse
import os
import re
import shlex
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PART = re.compile(r"(<!-- made by: (.+?) -->\n)(.*?)(<!-- end -->)", re.S)


def made(command, build):
    words = shlex.split(command)
    env = {k: v for k, v in os.environ.items() if not k.startswith("FRAG_")}
    r = subprocess.run([os.path.join(build, "bin", words[0]), *words[1:]], capture_output=True, text=True, env=env,
                       cwd=TOP)
    if r.returncode != 0:
        raise SystemExit("%s: exit status %d: %s" % (command, r.returncode, r.stderr))
    text = "\n".join(line.rstrip() for line in r.stdout.replace(build + "/", "").rstrip().splitlines())
    return "```\n%s\n```\n" % text


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
        new = PART.sub(lambda m: m.group(1) + made(m.group(2), build) + m.group(4), old)
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
