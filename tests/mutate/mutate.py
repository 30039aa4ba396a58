#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small mistakes in copies of the tree, one after the other, and prints those that no test
notices. docs/TESTING.md, "Mutants", describes it.

usage: tests/mutate/mutate.py [--count N] [--seed S] [--room "edge sched, ops"] [--jobs N]
                              [--only ID...] [--seconds N] [--patience N]
                              [--builds "plain asan tsan"] [--programs REGEX] [--keep-map] [--list]
                              --plain MAKE --tsan MAKE --coverage FLAGS --asan FLAGS

The two MAKE are the commands that build a whole tree, FLAGS those of gcc for single files;
mk/mutate.mk passes them. Everything is kept in build-mutate: `tree.N` the copies, `tree.coverage`
the one whose files count their lines, `map.json` and `counters` what each program has counted,
`results` a line for each mutant that was tried.

A mutant costs one compilation, and one link for each program that runs: make is asked once for the
commands of a build (Commands).
"""
import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import itertools
import json
import os
import queue
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import run  # noqa: E402
from mutants import mutants_of  # noqa: E402

OUT = os.path.join(TOP, "build-mutate")
EQUIVALENT = os.path.join(HERE, "equivalent")
ROOMS = ["driverd", "workerd", "proto/wire", "libfrag/src", "libfrag/modules", "libfrag/ops", "fragctl", "runner", "python/src"]
SHELLS = ("driverd", "workerd", "workerd/host")
# A mutant may allocate or write without end. Soft limits: a test may take them away.
BOUNDS = ["prlimit", "--fsize=%d:" % (1 << 33), "--core=0"]
BOUNDS_PLAIN = BOUNDS + ["--as=%d:" % (6 << 30)]
SIM = "tests/sim/sim"
# They tell ASan what memory nobody may touch.
KNOW_ASAN = ["libfrag/src/base/arena.c", "libfrag/src/data/pool.c"]


def room_of(path):
    room = os.path.dirname(path)
    if room in SHELLS:
        return room + "/shell"
    return room[len("libfrag/src/"):] if room.startswith("libfrag/src/") else room.replace("libfrag/", "", 1)


def is_in(room, wanted):
    """wanted: a room with what is below it; or `cores`, those of the daemons, or `elsewhere`, all but these."""
    is_core = "/core/" in room + "/"
    if wanted in ("cores", "elsewhere"):
        return is_core == (wanted == "cores")
    return room == wanted or room.startswith(wanted + "/")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()[:16]


def files_of(tree):
    for folder, folders, files in os.walk(tree):
        folders[:] = sorted(d for d in folders if d not in (".git", "__pycache__", "out", "build")
                            and not d.startswith("build-"))
        for f in sorted(files):
            yield os.path.relpath(os.path.join(folder, f), tree)


def tree_digest():
    """What it depends on that no test notices a mutant."""
    whole = hashlib.sha256()
    for path in files_of(TOP):
        if not path.startswith(("docs/", "tests/mutate/")) and not os.path.islink(os.path.join(TOP, path)):
            whole.update(("%s %s\n" % (path, digest(os.path.join(TOP, path)))).encode())
    return whole.hexdigest()[:16]


def sources():
    return [p for p in files_of(TOP) if p.endswith((".c", ".h")) and p.startswith(tuple(r + "/" for r in ROOMS))]


def known_equivalents():
    """{(path, before, after)} of tests/mutate/equivalent; every entry has a reason."""
    known = set()
    entries = [e.splitlines() for e in re.sub(r"(?m)^#.*\n", "", read(EQUIVALENT)).split("\n\n")]
    for lines in entries:
        lines = [l for l in lines if l.strip()]
        if not lines:
            continue
        before = [l[2:] for l in lines if l.startswith("- ")]
        after = [l[2:] for l in lines if l.startswith("+ ")]
        why = [l for l in lines[1:] if l[:2] not in ("- ", "+ ")]
        if len(before) != 1 or len(after) != 1 or not why:
            raise SystemExit("%s: not a path, a `- ` line, a `+ ` line and a reason: %r" % (EQUIVALENT, lines))
        known.add((lines[0].strip(), before[0].strip(), after[0].strip()))
    return known


def draw(seed, rooms):
    """Mutants of those rooms in the order of that seed: lines are shuffled, and each gives one of
    its mutants before any gives a second."""
    rng = random.Random(seed)
    lines = collections.defaultdict(list)
    for path in sources():
        if rooms and not any(is_in(room_of(path), r) for r in rooms):
            continue
        for m in mutants_of(path, read(os.path.join(TOP, path))):
            lines[path, m.line].append(m)
    places = sorted(lines)
    for mutants in lines.values():
        rng.shuffle(mutants)
    while places:
        rng.shuffle(places)
        for place in places:
            yield lines[place].pop()
        places = sorted(p for p in places if lines[p])


def kill_marked(mark):
    """Ends what a test left behind in process groups of its own."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark.encode() in f.read():
                    os.kill(int(pid), signal.SIGKILL)
        except (OSError, ValueError):
            pass


class Tree:
    """A copy of the working tree with its builds."""

    def __init__(self, name, makes):
        self.path = os.path.join(OUT, "tree.%s" % name)
        self.whole = self.path + ".whole"  # holds a key while the copy has no mistake in it
        cores = str(os.cpu_count() or 1)
        self.makes = {k: shlex.split(m.replace("$(nproc)", cores)) for k, m in makes.items()}
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}

    def is_whole(self, key):
        with open(self.whole, "w") as f:
            f.write(key)

    def refresh(self):
        """Makes the copy equal to the working tree, whose build it takes the first time. Files keep
        their times, so that make finds in the build what is up to date."""
        wanted = set(files_of(TOP))
        for path in wanted:
            here, there = os.path.join(TOP, path), os.path.join(self.path, path)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            if os.path.islink(here) or not os.path.exists(there) or digest(here) != digest(there):
                if os.path.lexists(there):
                    os.unlink(there)
                shutil.copy2(here, there, follow_symlinks=False)
        for path in set(files_of(self.path)) - wanted:
            os.unlink(os.path.join(self.path, path))
        if os.path.isdir(os.path.join(TOP, "build")) and not os.path.isdir(os.path.join(self.path, "build")):
            subprocess.run(["cp", "-a", os.path.join(TOP, "build"), self.path], check=True)

    def copy(self, other):
        shutil.rmtree(self.path, ignore_errors=True)
        subprocess.run(["cp", "-aT", other.path, self.path], check=True)

    def make(self, kind, *arguments, output=None):
        """Returns whether make succeeded."""
        done = subprocess.run(self.makes[kind] + list(arguments), cwd=self.path, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        if output is not None:
            output.append(done.stdout)
        return done.returncode == 0

    def shell(self, command):
        """Runs a command of make; mutants stay out of ccache. Returns (whether it succeeded,
        output)."""
        done = subprocess.run(command, cwd=self.path, env=dict(self.env, CCACHE_DISABLE="1"),
                              shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode == 0, done.stdout

    def build(self, kind):
        return "build-tsan" if kind == "tsan" else "build"

    def run(self, kind, name, limit_s, environment=()):
        """Returns (why it failed, empty when it did not; seconds)."""
        build = os.path.join(self.path, self.build(kind))
        mark = "mutant-" + uuid.uuid4().hex
        env = dict(environment, TEST_MUTANT=mark)
        bounds = BOUNDS_PLAIN if kind in ("plain", "coverage") else BOUNDS
        started = time.monotonic()
        try:
            if name == SIM:
                runs = "300" if kind == "coverage" else "2000"
                status, output, _, _ = run.run_group(bounds + [os.path.join(build, SIM), "--runs", runs, "--jobs", "1"],
                                                  dict(os.environ, **env), limit_s)
                failed = [] if status == 0 else ["the simulator: " + (output.splitlines() or ["nothing"])[0][:120]]
            else:
                if name.startswith(("integration/", "hostile/")):
                    tests = os.path.join(self.path, "tests")
                    command = [sys.executable, os.path.join(tests, "integration", "cluster.py"),
                               os.path.join(tests, name + ".py"), "-f"]
                else:
                    command = [os.path.join(build, name), "--tap={tap}", "--timeout", "120", "--fail-fast"]
                checker = {"asan": "sanitized", "tsan": "threads"}.get(kind)
                command = bounds + command
                failed = run.run_program(command, name, build, checker, limit_s, env).failed
        finally:
            kill_marked(mark)
        return (failed[0] if failed else ""), time.monotonic() - started


def is_script(name):
    return name.startswith(("integration/", "hostile/"))


def programs_of(tree, wanted):
    """Names of the test programs, integration tests and simulator that the expression wants; not of
    those that look at pages, headers and packages. What tests python/src does so once, too."""
    names = [name for _, name in run.programs(os.path.join(tree.path, "build"), 120)] + [SIM]
    names = [n for n in dict.fromkeys(names) if re.search(wanted, n) and
             (not run.ONCE.search(n) or n.endswith("/test_python"))]
    if not names:
        raise SystemExit("mutate: no test program is called like %r; leave BY out, or see tests/" % wanted)
    # The long ones first, so that the two ends meet.
    return sorted(names, key=lambda n: not is_script(n))


def targets_of(build, names):
    """What make builds to run them."""
    programs = [os.path.join(build, n) for n in names if not is_script(n)]
    return programs + ["all"] * any(map(is_script, names))


def source_of(name):
    return os.path.join(TOP, "tests", name + ".py") if is_script(name) else \
        os.path.join(TOP, name + ".c" if name != SIM else "tests/sim/main.c")


class Commands:
    """How make makes each file of a build, and from which others."""

    def __init__(self, tree, kind, targets):
        output = []
        if not tree.make(kind, "-n", "-B", *targets, output=output):
            raise SystemExit("mutate: %s" % output[0][-2000:])
        self.obj = os.path.join(tree.build(kind), "obj")
        self.of, self.compiled, self.inputs = {}, collections.defaultdict(list), {}
        for line in output[0].replace("\\\n", " ").splitlines():
            words = line.split()
            if "-o" in words[:-1]:
                target = words[words.index("-o") + 1]
            elif "rcs" in words:
                target = words[words.index("rcs") + 1]
            else:
                continue
            inputs = {w for w in words if w.endswith((".o", ".a")) and w != target}
            if not inputs and "-c" not in words:
                continue  # nothing of the product is in it
            self.of[target], self.inputs[target] = line, inputs
            if "-c" in words:
                self.compiled[words[words.index("-c") + 1]].append(target)
        self.depends = collections.defaultdict(list)  # object: the headers that it includes
        for target in self.of:
            place = os.path.join(tree.path, target[:-2] + ".d")
            if target.endswith(".o") and os.path.exists(place):
                for header in set(re.findall(r"\S+\.h(?=\s|$)", read(place))):
                    self.depends[header].append(target)

    def objects(self, path):
        """The objects that are made from a source; from a header only those of the product."""
        if path.endswith(".c"):
            return self.compiled[path]
        rooms = tuple(os.path.join(self.obj, r) for r in ROOMS)
        return [o for o in self.depends[path] if o.startswith(rooms)]


class Map:
    """Which program reaches which line, measured with gcov, and how long each takes. gcov looks at
    a file's counters when they are asked for."""

    FILE, COUNTERS = os.path.join(OUT, "map.json"), os.path.join(OUT, "counters")

    def __init__(self, data, commands, wanted):
        self.data, self.commands, self.wanted = data, commands, wanted
        self.times = collections.defaultdict(lambda: 20.0, data["seconds"])
        self.changed = {n for n in data["programs"] if not os.path.exists(source_of(n)) or
                        digest(source_of(n)) != data["programs"][n]}
        self.taken_lines = {}

    @staticmethod
    def get(pristine, makes, flags, commands, jobs, keep, names, files):
        """Measures those programs in those files, unless it is known."""
        if os.path.exists(Map.FILE):
            data = json.loads(read(Map.FILE))
            if keep or (data["tree"] == tree_digest() and set(names) <= set(data["programs"]) and
                        files <= set(data["files"])):
                return Map(data, commands, names)
        print("mutate: measuring which test reaches which line", flush=True)
        tree = Tree("coverage", makes)
        tree.copy(pristine)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            compile_one = lambda o: tree.shell("rm -f %s; %s -w %s" % (o, commands.of[o], flags))
            counted = {o for f in files if f.endswith(".c") for o in commands.objects(f)}
            for good, output in pool.map(compile_one, counted):
                if not good:
                    raise SystemExit("mutate: %s" % output)
        # In the order of make, in which libraries stand before what is linked with them.
        for target, line in commands.of.items():
            if not target.endswith(".o") and commands.inputs[target] & counted:
                counted.add(target)
                good, output = tree.shell(line if "rcs" in line.split() else line + " --coverage")
                if not good:
                    raise SystemExit("mutate: %s" % output)
        shutil.rmtree(Map.COUNTERS, ignore_errors=True)
        data = {"tree": tree_digest(), "programs": {}, "seconds": {}, "files": {}}
        strip = str(len(tree.path.strip("/").split("/")))

        def measure(name):
            folder = os.path.join(Map.COUNTERS, name.replace("/", "."))
            os.makedirs(folder)
            _, data["seconds"][name] = tree.run("coverage", name, 600,
                                                {"GCOV_PREFIX": folder, "GCOV_PREFIX_STRIP": strip})
            data["programs"][name] = digest(source_of(name))

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(measure, names))
        data["files"] = {p: digest(os.path.join(TOP, p)) for p in files}
        with open(Map.FILE, "w") as f:
            json.dump(data, f)
        return Map(data, commands, names)

    def taken(self, name, path):
        """The lines of a file that a program has taken; None where it has counted none."""
        if (name, path) not in self.taken_lines:
            lines = None
            folder = os.path.join(Map.COUNTERS, name.replace("/", "."))
            notes = os.path.join(OUT, "tree.coverage")
            counters = [os.path.join(folder, o[:-2] + ".gcda") for o in self.commands.objects(path)]
            # A header that half the product includes is taken by others in the same way.
            for counted in list(filter(os.path.exists, counters))[:20]:
                note = counted[:-5] + ".gcno"
                with contextlib.suppress(FileExistsError):
                    os.symlink(os.path.join(notes, os.path.relpath(note, folder)), note)
                out = subprocess.run(["gcov", "--json-format", "--stdout", counted], cwd=notes, capture_output=True,
                                     text=True).stdout
                for f in (f for text in out.splitlines() for f in json.loads(text)["files"]):
                    if f["file"] == path:
                        lines = (lines or set()) | {l["line_number"] for l in f["lines"] if l["count"]}
            self.taken_lines[name, path] = lines
        return self.taken_lines[name, path]

    def near(self, mutant):
        """The programs that reach the mutant's line, the nearest first; where none does, or the
        file has changed since, those that reach the file. What was not measured comes last."""
        words = set(re.split(r"\W|_", mutant.path)) - {"c", "h", "src", "libfrag", "core"}
        numbers = set(range(mutant.line, mutant.last_line + 1))
        header = "/%s.h" % os.path.splitext(os.path.basename(mutant.path))[0]
        known = self.data["files"].get(mutant.path, "")
        moved = known != digest(os.path.join(TOP, mutant.path))

        def order(name):
            like = len(words & set(re.split(r"\W|_", os.path.basename(name))))
            includes = header in read(source_of(name))
            return (is_script(name), self.times[name] - 2 * like - 4 * includes)

        files, last, is_reached = [], [], False
        for name in sorted(self.wanted, key=order):
            lines = self.taken(name, mutant.path)
            if not known or name not in self.data["programs"] or name in self.changed:
                last.append(name)
            elif lines is not None and (moved or lines & numbers):
                is_reached = True
                yield name
            elif lines:
                files.append(name)
        # A line that gcov does not know may be in the middle of a statement.
        yield from [] if is_reached else files
        yield from last


class Unfinished(Exception):
    """The time of the whole run is over."""


class Refused(Exception):
    """The linker did not take a mutant."""


class Worker:
    """Tries mutants in a tree of its own. Each kind of build gets `patience` seconds for a mutant,
    and none after `deadline`."""

    fails_anyway = {}  # (kind, name): what a program without a mutant reports

    def __init__(self, tree, pristine, key, coverage, commands, asan, builds, patience, deadline):
        self.tree, self.pristine, self.key, self.map = tree, pristine, key, coverage
        self.commands, self.asan, self.builds = commands, asan, builds
        self.patience, self.deadline = patience, deadline
        self.made = set()  # what is not as in the pristine tree
        self.path = self.source = self.mistaken = ""

    def of_kind(self, kind):
        """(the commands, what is added to those of gcc). ASan is only for the mutated file and
        KNOW_ASAN, in programs that are otherwise plain."""
        return (self.commands["plain"], "-w " + self.asan) if kind == "asan" else (self.commands[kind], "")

    def make(self, target, kind):
        """Whether target could be made; what gcc says."""
        commands, flags = self.of_kind(kind)
        line = commands.of[target]
        self.made.add(target)
        if target.endswith(".o"):
            return self.tree.shell(line + " " + flags)
        if target.endswith(".a"):
            return self.tree.shell(line)
        # What make compiles and links in one step is compiled once.
        found = re.search(r"\S+\.c(?=\s)", line)
        if found:
            own = target + ".o"
            if not os.path.exists(os.path.join(self.tree.path, own)):
                head = re.sub(r"\S+\.[oa](?=\s)|-MF \S+|-MMD|-MP|-l\S+|-Wl,\S+", "", line[:line.rindex(" -o ")])
                good, output = self.tree.shell("%s -c -o %s" % (head, own))
                if not good:
                    return good, output
            line = line.replace(found.group(), own)
        return self.tree.shell(line + " -Wl,-S " + flags)

    def objects(self, kind, text):
        """Makes the objects of that text of the mutated file; whether they could be made."""
        self.restore()
        with open(os.path.join(self.tree.path, self.path), "w", encoding="utf-8") as f:
            f.write(text)
        commands = self.of_kind(kind)[0]
        sources = [self.path] + [p for p in KNOW_ASAN if kind == "asan" and p != self.path]
        return all(self.make(o, kind)[0] for p in sources for o in commands.objects(p))

    def link(self, name, kind):
        """Links what a program needs and what depends on the mutated file; what the linker says."""
        commands, _ = self.of_kind(kind)
        program = os.path.join(self.tree.build(kind), name)
        has_libraries = is_script(name) or "-lfrag" in commands.of[program]

        def is_wanted(target):
            if ".so" in os.path.basename(target):
                return has_libraries
            return target == program or target.endswith(".a") or \
                (is_script(name) and "/tests/" not in target and not target.endswith(".o"))

        for target, inputs in commands.inputs.items():
            if target not in self.made and inputs & self.made and is_wanted(target):
                good, output = self.make(target, kind)
                if not good:
                    return output
        return ""

    def restore(self):
        for target in self.made:
            shutil.copy2(os.path.join(self.pristine.path, target),
                         os.path.join(self.tree.path, target))
        self.made = set()

    def is_same(self, target):
        """Whether an object holds what it does without a mistake, debugging information aside."""
        texts = []
        for tree in (self.pristine, self.tree):
            place, made = self.tree.path + ".o", os.path.join(tree.path, target)
            subprocess.run(["strip", "-g", "-o", place, made], check=True)
            texts.append(digest(place))
            os.unlink(place)
        return texts[0] == texts[1]

    def attempt(self, mutant):
        """(status, what noticed it)."""
        if os.path.exists(self.tree.whole):
            os.unlink(self.tree.whole)
        place = os.path.join(self.tree.path, mutant.path)
        self.path, self.source, state = mutant.path, read(place), os.stat(place)
        self.mistaken = mutant.apply(self.source)
        try:
            if not self.objects("plain", self.mistaken):
                return "refused", "the compiler"
            if not self.made:
                return "refused", "none of the programs has the file"
            if all(self.is_same(o) for o in self.made):
                return "same", "the object file is the same"
            ran = []
            by = self.noticed("plain", self.map.near(mutant), ran)
            inner = [n for n in ran if re.match(r"tests/(unit|shared|conformance|operators)/", n)]
            for kind, slower in (("asan", 4), ("tsan", 10)):
                if by or kind not in self.builds:
                    continue
                if kind == "tsan" and "atomic_" not in self.source:
                    continue
                self.objects(kind, self.mistaken)
                by = self.noticed(kind, inner, [], slower)
            return ("caught", by) if by else ("survived", "%d programs ran" % len(ran))
        except Refused as refused:
            return "refused", "the linker: %s" % str(refused)[-200:]
        finally:
            self.restore()
            with open(place, "w", encoding="utf-8") as f:
                f.write(self.source)
            os.utime(place, ns=(state.st_atime_ns, state.st_mtime_ns))
            self.tree.is_whole(self.key)

    def without(self, kind, name, limit_s):
        """What a program reports without a mutant."""
        if kind != "asan":
            return self.pristine.run(kind, name, limit_s)[0]
        self.objects(kind, self.source)
        why = self.link(name, kind) or self.tree.run(kind, name, limit_s)[0]
        self.objects(kind, self.mistaken)
        return why

    def noticed(self, kind, names, ran, slower=1):
        """The name of the first program that fails; empty when none does. ran: those that ran."""
        begin = time.monotonic()
        for name in names:
            if time.monotonic() > self.deadline:
                raise Unfinished
            if time.monotonic() - begin > self.patience:
                break
            if self.fails_anyway.get((kind, name)):
                continue
            output = self.link(name, kind)
            if output:
                raise Refused(output)
            ran.append(name)
            limit_s = (10 + 4 * self.map.times[name]) * slower
            why, seconds = self.tree.run(kind, name, limit_s)
            if not why:
                continue
            # A test with a clock may fail on a busy machine, and a slow one reach its limit there.
            if seconds < limit_s and (self.map.times[name] > 1 or "unit" not in name):
                why, seconds = self.tree.run(kind, name, limit_s)
            if why and (seconds >= limit_s or (kind, name) not in self.fails_anyway):
                self.fails_anyway[kind, name] = self.without(kind, name, limit_s)
            if why and not self.fails_anyway[kind, name]:
                return "%s%s: %s" % ("" if kind == "plain" else kind + " ", name, why.split("\n")[0][:100])
            if seconds >= limit_s:
                self.fails_anyway[kind, name] = ""  # it was too slow this time
        return ""


def load_results(tree):
    """{id: result}. What was caught stays so while the mutated file is the same, what survived
    while nothing changes."""
    found = {}
    if os.path.exists(os.path.join(OUT, "results")):
        with open(os.path.join(OUT, "results")) as f:
            for line in f:
                r = json.loads(line)
                place = os.path.join(TOP, r["path"])
                if os.path.exists(place) and digest(place) == r["file"] and \
                        (r["status"] != "survived" or (r["tree"] == tree and r["id"] not in found)):
                    found[r["id"]] = r
    return found


def noticed_by(result):
    """The kind of test, and `time` where it was its limit."""
    kind = result["by"].split("/test_")[0].split(":")[0]
    return kind + " (time)" * ("still running after" in result["by"])


def show(results):
    survivors = sorted((r for r in results if r["status"] == "survived"), key=lambda r: (r["path"], r["line"]))
    if survivors:
        print("\nsurvivors, which a test should notice or tests/mutate/equivalent explain:")
    for r in survivors:
        print("%s:%d: %s (%s; %s)\n- %s\n+ %s" % (r["path"], r["line"], r["rule"], r["id"], r["by"], r["before"], r["after"]))
    rooms = sorted({room_of(r["path"]) for r in results})
    groups = [g for g in ("cores", "elsewhere") if any(is_in(r, g) for r in rooms)]
    print("\n%-20s %8s %8s %9s %7s   %s" % ("room", "mutants", "caught", "survived", "share", "not counted: listed, same object, refused"))
    for room in rooms + groups + ["all"]:
        counts = collections.Counter(r["status"] for r in results if room in ("all", room_of(r["path"])) or
                                     (room in groups and is_in(room_of(r["path"]), room)))
        tried = counts["caught"] + counts["survived"]
        print("%-20s %8d %8d %9d %5.1f %%   %d, %d, %d" % (
            room, tried, counts["caught"], counts["survived"], 100.0 * counts["caught"] / tried if tried else 100.0,
            counts["listed"], counts["same"], counts["refused"]))
    by = collections.Counter(noticed_by(r) for r in results if r["status"] == "caught")
    print("caught by: " + ", ".join("%s %d" % b for b in by.most_common()))
    return survivors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--room", default="", help="rooms to draw from; with a comma COUNT from each part")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--only", nargs="+", metavar="ID", help="only these mutants, whatever was stored")
    p.add_argument("--seconds", type=float, default=float("inf"), help="ends after that time")
    p.add_argument("--patience", type=float, default=60, help="seconds of tests for a mutant in each kind of build")
    p.add_argument("--builds", default="plain asan tsan", help="the builds whose test programs run")
    p.add_argument("--programs", default="", metavar="REGEX", help="runs only test programs whose names match")
    p.add_argument("--keep-map", action="store_true", help="measures nothing: changed tests are tried for every mutant")
    p.add_argument("--list", action="store_true", help="prints the mutants and tries none")
    for kind in ("plain", "asan", "tsan", "coverage"):
        p.add_argument("--" + kind, required=True)
    args = p.parse_args()
    makes = {k: getattr(args, k) for k in ("plain", "tsan")}
    started = time.monotonic()
    listed = known_equivalents()
    orders = [list(draw(args.seed, part.split())) for part in args.room.split(",")]
    if args.only:
        orders = [[m for order in orders for m in order if m.id in args.only]]
    if args.list:
        for m in itertools.chain(*(order[:args.count] for order in orders)):
            print("%s:%d: %s (%s)\n- %s\n+ %s" % (m.path, m.line, m.rule, m.id, m.before, m.after))
        return 0
    os.makedirs(OUT, exist_ok=True)
    print("mutate: seed %d" % args.seed, flush=True)
    tree = tree_digest()
    stored = {} if args.only else load_results(tree)
    pristine = Tree(0, makes)
    pristine.refresh()
    builds = args.builds.split()
    names = programs_of(pristine, args.programs)
    commands = {}
    for kind in {"plain", *builds} - {"asan"}:
        output, targets = [], targets_of(pristine.build(kind), names)
        if not pristine.make(kind, *targets, output=output):
            raise SystemExit("mutate: %s: %s" % (kind, output[0]))
        commands[kind] = Commands(pristine, kind, targets)
    print("mutate: built in %d s" % (time.monotonic() - started), flush=True)
    # Some that are drawn are not counted.
    files = {m.path for order in orders for m in order[:args.count * 4 // 3]}
    coverage = Map.get(pristine, makes, args.coverage, commands["plain"], args.jobs, args.keep_map,
                       names, files)
    print("mutate: measured after %d s" % (time.monotonic() - started), flush=True)
    idle = queue.Queue()

    def prepare(n):
        copy, key = Tree(n + 1, makes), tree + args.builds
        idle.put(Worker(copy, pristine, key, coverage, commands, args.asan, builds, args.patience,
                        started + args.seconds))
        if not os.path.exists(copy.whole) or read(copy.whole) != key:
            copy.copy(pristine)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(prepare, range(args.jobs)))
    print("mutate: prepared in %d s" % (time.monotonic() - started), flush=True)

    results, lock = [], threading.Lock()
    log = open(os.path.join(OUT, "results"), "a")

    def try_one(mutant):
        row = {"tree": tree, "file": digest(os.path.join(TOP, mutant.path)), "id": mutant.id, "path": mutant.path,
               "line": mutant.line, "rule": mutant.rule, "before": mutant.before, "after": mutant.after}
        begin = time.monotonic()
        if mutant.key() in listed:
            row.update(status="listed", by="tests/mutate/equivalent")
        elif mutant.id in stored:
            row = stored[mutant.id]
        else:
            worker = idle.get()
            try:
                status, by = worker.attempt(mutant)
            except Unfinished:
                return
            finally:
                idle.put(worker)
            row.update(status=status, by=by, seconds=round(time.monotonic() - begin, 1))
        with lock:
            results.append(row)
            if row["status"] in ("caught", "survived"):
                done = sum(r["status"] in ("caught", "survived") for r in results)
                print("%4d %s:%d %s: %s: %s" % (done, row["path"], row["line"], row["rule"], row["status"], row["by"]), flush=True)
            if row["status"] != "listed" and mutant.id not in stored:
                log.write(json.dumps(row) + "\n")
                log.flush()

    # Mutants that are not counted are replaced by the next ones.
    def work(mutants, before):
        while time.monotonic() - started < args.seconds:
            with lock:
                if sum(r["status"] in ("caught", "survived") for r in results[before:]) >= args.count:
                    return
                mutant = next(mutants, None)
            if mutant is None:
                return
            try_one(mutant)

    for order in orders:
        mutants, before = iter(order), len(results)
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for done in [pool.submit(work, mutants, before) for _ in range(args.jobs)]:
                done.result()
    survivors = show(results)
    for (kind, name), why in sorted(Worker.fails_anyway.items()):
        if why:
            print("not used, because it fails without a mutant: %s %s: %s" % (kind, name, why.split("\n")[0]))
    print("mutate: seed %d, %d s, %d survivors" % (args.seed, time.monotonic() - started, len(survivors)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
