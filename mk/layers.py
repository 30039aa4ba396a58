#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which folder includes which: includes only point down.

docs/ARCHITECTURE.md, "Layers and folders", explains the rule.
"""
import os
import re
import subprocess
import sys

# A folder of libfrag/src may include itself and what stands in a lower row.
ROWS = [["base"], ["data"], ["text", "type"], ["graph", "cond", "res"], ["sched", "edge", "track", "var"], ["run"]]
LEVEL = {folder: level for level, row in enumerate(ROWS) for folder in row}
# Within a row: parameters are filled in from texts; a composed fragment holds conditions and
# resources.
SIDEWAYS = {("type", "text"), ("graph", "res"), ("graph", "cond"), ("sched", "edge")}
# The folders of the driver's core: a function is called from its own folder and from higher rows.
DRIVER_CORE = ["base", "persist", "sessions", "applications", "view", "placement", "hosts", "clients", ""]
CIRCLE_MAX = 8  # files of it that call each other
MEMBERS_MAX, FLAGS_MAX = 40, 4  # of struct drv_app
# All of libfrag that driverd and workerd may use; mk/daemons.mk links no more into them.
DAEMONS = re.compile(r"(base|text|track)/|graph/(predict|resolve|transport)\.h|edge/(ledger|in_flight|ucx_env)\.h")
# Only these may open a shared object.
OPENS = ("libfrag/src/type/", "libfrag/modules/",
         # the engine and the desktop, so that only those who use them need them
         "libfrag/ops/inference/", "libfrag/ops/window/sdl.c",
         "libfrag/ops/video/gpu.c",
         # open none: they look for functions of the C library and of Python
         "workerd/host/socket_calls.c", "python/src/dlpack.c")
# A runner is a driver, a worker and a host in one process: it includes the interfaces of their
# cores, and those parts of their shells that know no network. fragctl run is a shell of it.
RUNNER_MAY = {"driverd/core/core.h", "driverd/system.h", "workerd/core/core.h",
              "workerd/environment.h", "workerd/interpreter.h", "workerd/spawn.h", "workerd/worker.h", "workerd/host/host.h", "workerd/host/process.h"}
FRAGCTL_MAY = {"driverd/connections.h", "driverd/listener.h", "driverd/progress.h", "driverd/result.h", "workerd/interface.h", "workerd/landlock.h", "workerd/strays.h",
               "workerd/host/process.h", "runner/runner.h", "runner/thread.h"}
MAY = {"runner": RUNNER_MAY, "fragctl": FRAGCTL_MAY}
PROGRAMS = ("driverd", "workerd", "fragctl", "runner")


def layer(path):
    m = re.match(r"libfrag/src/(\w+)/", path)
    return m.group(1) if m else None


def allowed(path, include):
    """Why `include` may not stand in `path`; None when it may."""
    folder, top = include.split("/")[0], path.split("/")[0]
    if folder == ".." and not (path.startswith("libfrag/ops/") and re.match(r"\.\./(folders\.h|frame\.h|held_back\.h|draw/|gpu/|image/)", include)):
        return "a path that leaves its folder hides the layer"
    if folder == "modules" and not path.startswith("libfrag/modules/"):
        return "a module is opened when it is needed, and not included"
    if include in MAY.get(top, ()):
        return None
    if folder in PROGRAMS and top in PROGRAMS and folder != top:
        return "%s knows nothing of the inside of %s" % (top, folder)
    if folder == "openssl" and not path.startswith(
            ("proto/wire/tls", "proto/wire/certificates.", "libfrag/modules/")):
        return "only the TLS of the wire and a module may use OpenSSL"
    if include == "dlfcn.h" and not path.startswith(OPENS):
        return "only the registry and what opens modules open shared objects"
    if folder not in LEVEL:
        if path.startswith("libfrag/") and folder in ("wire",) + PROGRAMS:
            return "libfrag knows nothing of the daemons"
        if re.match(r"libfrag/src/", path) and re.match(r"(ucp|ucs|uct|uv|openssl|criterion|frag/v1)", include):
            return "only a module or a daemon may use it"
        if "/core/" in path and re.match(r"(uv\.h|sys/socket|unistd|time\.h|pthread|fcntl)", include):
            return "a core does no I/O"
        if "/core/" in path and folder in ("driverd", "workerd") and "/core/" not in include:
            return "a core knows nothing of a shell"
        return None
    own = layer(path)
    if own is not None:
        if folder == own or LEVEL[folder] < LEVEL[own] or (own, folder) in SIDEWAYS:
            return None
        return "%s is not below %s" % (folder, own)
    if path.startswith("libfrag/ops/") or path.startswith("examples/"):
        return "built-in operators and examples use public headers only"
    if path.startswith("proto/wire/") and folder != "base":
        return "the wire stands on base only"
    if path.startswith("workerd/host/core/") and folder != "base":
        return "fraghost's core uses base only: the run is its shell's"
    if re.match(r"(driverd|workerd)/(?!host/)", path) and not DAEMONS.match(include):
        return "a daemon uses base, text, track, the resolving of flows and the ledger only"
    return None


def code_of(path):
    """The text without comments and strings."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', "", text, flags=re.S)


def driver_calls(paths):
    """In the driver's core: (caller's file, function, file that defines it) of calls to other files."""
    texts = {path: code_of(path) for path in paths if re.match(r"driverd/core/.*\.c$", path)}
    home = {}
    for path, text in texts.items():
        for name in re.findall(r"^(?!static)[a-z][\w \*]*?\b(drv_\w+)\([^;{]*\)\n\{", text, re.M):
            home[name] = path
    return [(path, name, home[name]) for path, text in texts.items()
            for name in sorted(set(re.findall(r"\b(drv_\w+)\(", text)))
            if name in home and home[name] != path]


def calls_upward(calls):
    """Calls of functions that are defined in a higher folder."""
    def level(path):
        return DRIVER_CORE.index(os.path.dirname(path)[len("driverd/core"):].lstrip("/"))
    return ["%s: calls %s of %s, which is above it" % (path, name, home)
            for path, name, home in calls if level(home) > level(path)]


def circles(calls):
    """Files that call each other, be it over others, where they are more than CIRCLE_MAX."""
    reach = {path: {path} for call in calls for path in (call[0], call[2])}
    for path, found in reach.items():
        left = [path]
        while left:
            at = left.pop()
            new = {home for caller, _, home in calls if caller == at} - found
            found |= new
            left += new
    groups = {tuple(sorted(other for other in found if path in reach[other]))
              for path, found in reach.items()}
    return ["these %d files call each other in a circle, of at most %d: %s" % (
                len(group), CIRCLE_MAX, " ".join(group))
            for group in sorted(groups) if len(group) > CIRCLE_MAX]


def members(paths):
    """struct drv_app, where it has too many members, or flags among them."""
    path = "driverd/core/applications/app.h"
    if path not in paths:
        return []
    text = re.search(r"^struct drv_app \{(.*?)^\};", code_of(path), re.M | re.S).group(1)
    count, flags = text.count(";"), len(re.findall(r"^\tbool ", text, re.M))
    if count <= MEMBERS_MAX and flags <= FLAGS_MAX:
        return []
    return ["%s: struct drv_app has %d members, %d of them flags; at most %d and %d: group some "
            "by their noun" % (path, count, flags, MEMBERS_MAX, FLAGS_MAX)]


def main():
    files = subprocess.run(["git", "ls-files", "*.c", "*.h"], capture_output=True, text=True, check=True)
    wrong = 0
    calls = driver_calls(files.stdout.split())
    for line in calls_upward(calls) + circles(calls) + members(files.stdout.split()):
        print(line)
        wrong += 1
    for path in files.stdout.split():
        if path.startswith("tests/"):
            continue
        with open(path, encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                m = re.match(r'\s*#\s*include\s+[<"]([^>"]+)[>"]', line)
                why = allowed(path, m.group(1)) if m else None
                if why:
                    print("%s:%d: includes <%s>: %s" % (path, number, m.group(1), why))
                    wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
