# SPDX-License-Identifier: Apache-2.0
"""The commands that a page of docs gives, for tests to run them as they stand there. They are
between a comment `commands: NAME` and a comment `end`: a block of code, or a table whose rows name
the machines that run a command.
"""
import os
import re

import machine


def _part(page, name):
    with open(os.path.join(machine.TOP, "docs", page)) as f:
        found = re.search(r"<!-- commands: %s -->\n(.*?)<!-- end -->" % name, f.read(), re.S)
    assert found, "%s has no commands %s" % (page, name)
    return found.group(1)


def rows(page, name):
    """[(step, names of machines, command)]"""
    return [(int(step), on.split(", "), command)
            for step, on, command in re.findall(r"^\| (\d+) \| ([\w, ]+) \| `(.*)` \|$", _part(page, name), re.M)]


def block(page, name):
    """The lines of a block of code."""
    return re.search(r"```\w*\n(.*?)```", _part(page, name), re.S).group(1)


def console(page):
    """[(machine, command, lines printed, exit code)] of all blocks of `console`, in their order."""
    with open(os.path.join(machine.TOP, "docs", page)) as f:
        text = "".join(re.findall(r"^```console\n(.*?)^```$", f.read(), re.M | re.S))
    steps = []
    for line in text.splitlines():
        typed = re.fullmatch(r"(\w)# (.*)", line)
        code = re.fullmatch(r"\[(\d+)\]", line)
        if typed:
            steps.append([typed[1], typed[2], [], 0])
        elif code:
            steps[-1][3] = int(code[1])
        else:
            steps[-1][2].append(line)
    return steps


def shape(line):
    """A line without what differs from day to day: numbers other than 0, times, widths of columns."""
    line = re.sub(r"\S*\d\S* (ns|us|ms|s)\b", "#", line)
    return " ".join("#" if re.search(r"\d", word) and word != "0" else word for word in line.split())


def is_like(lines, expected):
    """Whether the lines printed have the shapes of those expected; `...` stands for any lines."""
    pattern = "".join("(?:.*\n)*" if line == "..." else re.escape(shape(line)) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(shape(line) + "\n" for line in lines)) is not None
