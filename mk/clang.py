#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang compiles what the makefiles compile, with their flags and warnings, and makes
nothing: of what `make -n CC=clang` prints, each command that compiles is run with -fsyntax-only.
The headers that a build generates must be there.

usage: make -nBs CC=clang TARGET... | mk/clang.py [K/N]    K/N: the K-th of N parts of them
"""
import concurrent.futures
import os
import re
import subprocess
import sys

SOURCE = re.compile(r"\S+\.c(?= |$)")
# What is written, and what is linked.
LEFT_OUT = re.compile(r" -(?:o|MF|MT) \S+| -(?:MMD|MP|c|shared|rdynamic)(?= |$)| -(?:l|L|Wl,)\S+"
                      r"| \S+\.(?:o|a|so(?:\.\d+)?)(?= |$)")


def commands(text):
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("clang ") and SOURCE.search(line):
            yield LEFT_OUT.sub("", line.split(" && ")[0]) + " -fsyntax-only"


def check(command):
    return subprocess.run(command, shell=True, check=False).returncode == 0


def main():
    part, parts = (int(n) for n in (sys.argv[1] if len(sys.argv) > 1 else "0/1").split("/"))
    every = list(commands(sys.stdin.read()))
    chosen = every[part % parts::parts]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        failed = [c for c, is_fine in zip(chosen, threads.map(check, chosen)) if not is_fine]
    for command in failed:
        print("clang: does not compile: " + " ".join(SOURCE.findall(command)))
    print("clang: %d of %d compilations, %d failed" % (len(chosen), len(every), len(failed)))
    return 1 if failed or not chosen else 0


sys.exit(main())
