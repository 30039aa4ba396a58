#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small mistakes in a copy of the tree, all at once, and prints those that no test notices
when it runs with one of them. docs/TESTING.md, "Mutants", describes it.

usage: tests/mutate/mutate.py [--count N] [--seed S] [--room "edge sched, ops"] [--jobs N]
                              [--only ID...] [--seconds N] [--patience N]
                              [--builds "plain leak asan tsan"] [--programs REGEX] [--keep-map] [--list]
                              [--stage build|judge] --plain MAKE --asan MAKE --tsan MAKE

The three MAKE are the commands that build a whole tree; mk/mutate.mk passes them. Everything is
kept in build-mutate: `tree` with its builds, `map.json` what each program reaches, `results` a line
for each mutant that was tried, of which the last one counts.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import ctypes
import hashlib
import itertools
import json
import os
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
import bounds  # noqa: E402
import run  # noqa: E402
from mutants import mutants_of  # noqa: E402
from schema import with_mutants  # noqa: E402

OUT = os.path.join(TOP, "build-mutate")
EQUIVALENT = os.path.join(HERE, "equivalent")
ROOMS = ["driverd", "workerd", "proto/wire", "libfrag/src", "libfrag/modules", "libfrag/ops", "fragctl", "runner", "python/src"]
SHELLS = ("driverd", "workerd", "workerd/host")
NO_CORE_FILES = ["prlimit", "--core=0:"]
MARK = "mutant-"
SIM = "tests/sim/sim"
# The second is the first with LeakSanitizer, which needs no build of its own.
BUILDS = {"plain": "build", "leak": "build", "asan": "build-asan", "tsan": "build-tsan"}
BUILT = ("plain", "asan", "tsan")
# What runs with a checker, too.
INNER = re.compile(r"tests/(unit|shared|conformance|operators)/")


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


def product_digest():
    """What it depends on that no test notices a mutant, the test programs aside."""
    whole = hashlib.sha256()
    for path in files_of(TOP):
        if "/" not in path and path != "Makefile":
            continue  # such as what make printed
        if not path.startswith(("docs/", "tests/mutate/")) and not re.match(r"tests/\w+/test_\w+\.(c|py)$", path) and \
                not os.path.islink(os.path.join(TOP, path)):
            whole.update(("%s %s\n" % (path, digest(os.path.join(TOP, path)))).encode())
    return whole.hexdigest()[:16]


def for_gpus():
    """Headers that kernels of a GPU include: nothing there can look at a variable."""
    found, left = set(), [p for p in files_of(TOP) if p.endswith(".cu")]
    while left:
        path = left.pop()
        with open(os.path.join(TOP, path)) as f:
            names = re.findall(r'^#include "(.+)"', f.read(), re.M)
        headers = {os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in names}
        left += [h for h in headers - found if os.path.exists(os.path.join(TOP, h))]
        found |= headers
    return found


def sources():
    left_out = for_gpus()
    return [p for p in files_of(TOP) if p.endswith((".c", ".h")) and p.startswith(tuple(r + "/" for r in ROOMS)) and
            p not in left_out]


def stands(path, code):
    """How often; the code of a mutant may go over several lines."""
    text = read(os.path.join(TOP, path)) if os.path.exists(os.path.join(TOP, path)) else ""
    return [l.strip() for l in text.splitlines()].count(code) or " ".join(text.split()).count(code)


def known_equivalents():
    """{(path, before, after)} of tests/mutate/equivalent; every entry has a reason."""
    known = set()
    # A path begins an entry: a merge of two that were added may leave no empty line between them.
    for entry in re.split(r"(?m)^(?=[\w/.]+\.[ch]$)", re.sub(r"(?m)^#.*\n", "", read(EQUIVALENT))):
        lines = [l for l in entry.splitlines() if l.strip()]
        if not lines:
            continue
        before = [l[2:] for l in lines if l.startswith("- ")]
        after = [l[2:] for l in lines if l.startswith("+ ")]
        why = [l for l in lines[1:] if l[:2] not in ("- ", "+ ")]
        if len(before) != 1 or len(after) != 1 or not why:
            raise SystemExit("%s: not a path, a `- ` line, a `+ ` line and a reason: %r" % (EQUIVALENT, lines))
        path, times = lines[0].strip(), stands(lines[0].strip(), before[0].strip())
        if times != 1:
            raise SystemExit("%s: %s: `%s` stands there %d times; a reason is about one place: remove the entry, or "
                             "change the code" % (EQUIVALENT, path, before[0].strip(), times))
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


class Reached:
    """Shared memory in which functions with mutants mark their bytes."""

    def __init__(self, size):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.shmat.restype = ctypes.c_void_p
        self.id = self.libc.shmget(0, ctypes.c_size_t(size), 0o1666)
        at = self.libc.shmat(self.id, None, 0) if self.id >= 0 else ctypes.c_void_p(-1).value
        if at == ctypes.c_void_p(-1).value:
            raise SystemExit("mutate: no shared memory of %d bytes: %s; see ipcs -l"
                             % (size, os.strerror(ctypes.get_errno())))
        self.bytes = (ctypes.c_char * size).from_address(at)

    def close(self):
        """The numbers that were marked."""
        found = [i for i, b in enumerate(self.bytes.raw) if b]
        self.libc.shmdt(ctypes.c_void_p(ctypes.addressof(self.bytes)))
        self.libc.shmctl(self.id, 0, None)  # IPC_RMID
        return found


class Tree:
    """A copy of the working tree with all mutants, and its builds."""

    def __init__(self, makes):
        self.path = os.path.join(OUT, "tree")
        cores = str(os.cpu_count() or 1)
        self.leaks = subprocess.run(["gcc", "-print-file-name=liblsan.so"], capture_output=True,
                                    text=True).stdout.strip()
        self.makes = {k: shlex.split(m.replace("$(nproc)", cores)) for k, m in makes.items()}
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}

    def refresh(self, planted):
        """Makes the copy equal to the working tree, but for the files of {path: text}, and takes
        its build the first time. Files keep their times, so that make finds what is up to date."""
        wanted = set(files_of(TOP))
        for path in wanted - set(planted):
            here, there = os.path.join(TOP, path), os.path.join(self.path, path)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            if os.path.islink(here) or not os.path.exists(there) or digest(here) != digest(there):
                was_planted = os.path.lexists(there)
                if was_planted:
                    os.unlink(there)
                shutil.copy2(here, there, follow_symlinks=False)
                if was_planted and not os.path.islink(there):
                    os.utime(there)
        for path in set(files_of(self.path)) - wanted:
            os.unlink(os.path.join(self.path, path))
        if os.path.isdir(os.path.join(TOP, "build")) and not os.path.isdir(os.path.join(self.path, "build")):
            subprocess.run(["cp", "-a", os.path.join(TOP, "build"), self.path], check=True)
        for path, text in planted.items():
            place = os.path.join(self.path, path)
            if not os.path.exists(place) or read(place) != text:
                with open(place, "w", encoding="utf-8") as f:
                    f.write(text)

    def make(self, kind, *arguments):
        """(whether make succeeded, output)."""
        done = subprocess.run(self.makes[kind] + list(arguments), cwd=self.path, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode == 0, done.stdout

    def plant(self, mutants, numbers, refused, wanted):
        """Builds with all of them but those that gcc does not take, which join refused, what the
        programs need whose names match."""
        while True:
            texts = {}
            for path in {m.path for m in mutants}:
                own = [m for m in mutants if m.path == path and m.id not in refused]
                source = read(os.path.join(TOP, path))
                texts[path], unable = with_mutants(path, source, own, numbers)
                refused.update((m.id, "schema.py cannot copy its function") for m in unable)
            self.refresh(texts)
            names = programs_of(self, wanted)
            only = [os.path.join(BUILDS["plain"], n) for n in names if not is_script(n)]
            # Some programs start the daemons, which no program depends on.
            good, output = self.make("plain", "-k", *(["all"] + only if only and len(only) == len(names)
                                                      else ["tests"]))
            # The second is an error in a macro, which gcc reports where that is defined.
            found = set(map(int, re.findall(r"\bmutant-(\d+):\d+:\d+: (?:fatal )?error", output) +
                            re.findall(r"\bmutant-(\d+): In function .*\n\S+: (?:fatal )?error", output)))
            more = {m.id: "the compiler" for m in mutants if numbers[m.id] in found}
            if not found:
                places = set(re.findall(r"(?m)^(\S+?):\d+:\d+: (?:fatal )?error", output))
                more = {m.id: "gcc does not take the copies of its file" for m in mutants if m.path in places}
            if good:
                return
            if not set(more) - set(refused):
                raise SystemExit("mutate: the build fails:\n%s" % output[-3000:])
            refused.update(more)

    def is_same(self, mutant):
        """Whether the object file is the same as without it, debugging information aside."""
        _, output = self.make("plain", "-n", "-W", mutant.path, "tests")
        line = next((l for l in output.replace("\\\n", " ").splitlines()
                     if re.search(r" -c %s( |$)" % re.escape(mutant.path), l)), None)
        if line is None:
            return False
        source, texts = read(os.path.join(TOP, mutant.path)), []
        copy = os.path.join(os.path.dirname(mutant.path), "same.tmp.c")
        place = os.path.join(self.path, copy)
        line = re.sub(r" -c \S+", " -c " + copy, re.sub(r" -MM?D| -MP| -MF \S+", "", line))
        for text in (source, mutant.apply(source)):
            with open(place, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run("%s -o %s.o && strip -g %s.o" % (re.sub(r" -o \S+", "", line), copy, copy),
                                  shell=True, cwd=self.path, capture_output=True)
            texts.append(digest(place + ".o") if done.returncode == 0 else "")
        for made in (place, place + ".o"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(made)
        return texts[0] == texts[1] != ""

    def run(self, kind, name, limit_s, planted=0, fail_fast=True):
        """(what failed, seconds)."""
        build = os.path.join(self.path, BUILDS[kind])
        mark = MARK + uuid.uuid4().hex
        env = dict(TEST_MUTANT=mark, PLANTED=str(planted))
        if kind == "leak":
            env.update(LD_PRELOAD=self.leaks,
                       LSAN_OPTIONS="print_suppressions=0:suppressions=" + os.path.join(TOP, "tests", "lsan.supp"))
        started = time.monotonic()
        try:
            if name == SIM:
                command = NO_CORE_FILES + [os.path.join(build, SIM), "--runs", "1000", "--jobs", "1"]
                status, output, _, _ = run.run_group(command, dict(os.environ, **env), limit_s)
                said = output.splitlines() or ["still running after %d s" % limit_s]
                failed = [] if status == 0 else ["the simulator: " + said[0][:120]]
            else:
                if is_script(name):
                    tests = os.path.join(self.path, "tests")
                    file, _, test = name.partition("::")
                    command = [sys.executable, os.path.join(tests, "integration", "cluster.py"),
                               os.path.join(tests, file + ".py")] + [test] * bool(test) + ["-f"] * fail_fast
                else:
                    command = [os.path.join(build, name), "--tap={tap}", "--timeout", "120"] + \
                        ["--fail-fast"] * fail_fast
                checker = {"asan": "sanitized", "tsan": "threads"}.get(kind)
                command = NO_CORE_FILES + command
                failed = run.run_program(command, name, build, checker, limit_s, env).failed
        finally:
            kill_marked(mark)
        return failed, time.monotonic() - started


def is_script(name):
    return name.startswith(("integration/", "hostile/"))


def programs_of(tree, wanted):
    """Names of the test programs, integration tests and simulator that the expression wants; not of
    those that look at pages, headers and packages. What tests python/src does so once, too."""
    names = [name for _, name in run.programs(os.path.join(tree.path, "build"), 120)] + [SIM]
    names = [n for n in dict.fromkeys(names) if re.search(wanted, n) and
             (not run.ONCE.search(n) or n.endswith("/test_python"))]
    # The long ones first, so that the two ends meet.
    return sorted(names, key=lambda n: not is_script(n))


LIST = """
import os, sys, unittest
def flat(tests):
    for t in tests:
        yield from flat(t) if isinstance(t, unittest.TestSuite) else [t.id().partition(".")[2]]
for path in sys.argv[1:]:
    folder, file = os.path.split(path)
    sys.path[:0] = [folder, os.path.join(os.path.dirname(folder), "integration")]
    print(path, *flat(unittest.defaultTestLoader.loadTestsFromName(file[:-3])))
"""


def one_by_one(tree, names):
    """Those names, each integration test for itself: most of a program's would run for nothing."""
    tests, build = os.path.join(tree.path, "tests"), os.path.join(tree.path, "build")
    paths = {os.path.join(tests, n + ".py"): n for n in names if is_script(n)}
    done = subprocess.run([sys.executable, "-B", "-c", LIST] + list(paths), check=True, text=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, FRAG_BUILD=build))
    found = [line.split(" ") for line in done.stdout.splitlines()]
    return ["%s::%s" % (paths[path], t) for path, *own in found for t in own] + \
        [n for n in names if not is_script(n)]


def source_of(name):
    return os.path.join(TOP, "tests", name.partition("::")[0] + ".py") if is_script(name) else \
        os.path.join(TOP, name + ".c" if name != SIM else "tests/sim/main.c")


class Map:
    """Which program calls the function of which mutant, how long each takes, and what of it fails
    without a mutant."""

    FILE = os.path.join(OUT, "map.json")

    def __init__(self, tree, mutants, numbers, product):
        self.tree, self.lock = tree, threading.Lock()
        self.programs, self.saved = {}, 0
        key = repr((product, sorted(numbers.items())))
        self.key = hashlib.sha256(key.encode()).hexdigest()[:16]
        self.ids = {numbers[m.id]: m.id for m in mutants}
        self.all = json.loads(read(self.FILE)) if os.path.exists(self.FILE) else {}

    def measure(self, names, jobs, keep):
        """Runs those that are not known."""
        def one(name):
            known = self.all.get(name, {})
            if known and (keep or (known["key"] == self.key and known["source"] == digest(source_of(name)))):
                return
            reached = Reached(max(self.ids) + 1)
            try:
                failed, seconds = self.tree.run("plain", name, 600, -1 - reached.id, False)
            finally:
                numbers = reached.close()
            row = dict(key=self.key, source=digest(source_of(name)), seconds=seconds, failed=failed,
                       reached=[self.ids[n] for n in numbers if n in self.ids])
            with self.lock:
                self.all[name] = row
                if time.monotonic() > self.saved + 5:
                    self.save()
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, names))
        self.save()
        self.programs = {n: self.all[n] for n in names}

    def save(self):
        with open(self.FILE, "w") as f:
            json.dump(self.all, f)
        self.saved = time.monotonic()

    def near(self, mutant):
        """The programs that reach the mutant's function, the nearest first."""
        words = set(re.split(r"\W|_", mutant.path)) - {"c", "h", "src", "libfrag", "core"}
        header = "/%s.h" % os.path.splitext(os.path.basename(mutant.path))[0]

        def order(name):
            like = len(words & set(re.split(r"\W|_", os.path.basename(name))))
            includes = header in read(source_of(name))
            return (is_script(name), self.programs[name]["seconds"] - 2 * like - 4 * includes)

        return sorted((n for n, p in self.programs.items() if mutant.id in p["reached"]), key=order)


class Unfinished(Exception):
    """The time of the whole run is over."""


class Judge:
    """Each kind of build gets `patience` seconds for a mutant, and none after `deadline`."""

    def __init__(self, tree, map_, numbers, patience, deadline):
        self.tree, self.map, self.numbers = tree, map_, numbers
        self.patience, self.deadline = patience, deadline
        self.anyway = {}  # (kind, name): what a program without a mutant reports

    def fails_anyway(self, kind, name, limit_s):
        if (kind, name) not in self.anyway:
            self.anyway[kind, name] = names_of(self.map.programs[name]["failed"]) if kind == "plain" and \
                self.map.programs[name]["failed"] else \
                names_of(self.tree.run(kind, name, limit_s, fail_fast=False)[0])
        return self.anyway[kind, name]

    def fails(self, kind, name, number, limit_s):
        """What a program reports with that mutant and not without it; empty when nothing."""
        failed, seconds = self.tree.run(kind, name, limit_s, number)
        # A test with a clock may fail on a busy machine, and a slow one reach its limit there.
        if failed and seconds < limit_s and (self.map.programs[name]["seconds"] > 1 or "unit" not in name):
            failed, seconds = self.tree.run(kind, name, limit_s, number)
        anyway = self.fails_anyway(kind, name, limit_s) if failed else set()
        if anyway:
            failed = self.tree.run(kind, name, limit_s, number, fail_fast=False)[0]
        return next((f for f in failed if not names_of([f]) <= anyway), "")

    def noticed(self, kind, mutant, tried):
        """What notices it. tried: {"kind name": the program's source} of those that did not."""
        begin, slower = time.monotonic(), {"plain": 1, "leak": 2, "asan": 4, "tsan": 10}[kind]
        for name in self.map.near(mutant):
            mark, source = "%s %s" % (kind, name), digest(source_of(name))
            if tried.get(mark) == source or (kind != "plain" and not INNER.match(name)):
                continue
            if time.monotonic() > self.deadline:
                raise Unfinished
            if time.monotonic() - begin > self.patience:
                break
            limit_s = (10 + 4 * self.map.programs[name]["seconds"]) * slower
            why = self.fails(kind, name, self.numbers[mutant.id], limit_s)
            if why:
                return "%s%s: %s" % ("" if kind == "plain" else kind + " ", name, why.split("\n")[0][:100])
            tried[mark] = source
        return ""


def names_of(failed):
    return {f.split(": ")[0] for f in failed}


def load_results(product):
    """{id: result}. What was caught stays so while the mutated file is the same, what survived
    while the product and the programs that were tried are."""
    found = {}
    if os.path.exists(os.path.join(OUT, "results")):
        with open(os.path.join(OUT, "results")) as f:
            for line in f:
                r = json.loads(line)
                place = os.path.join(TOP, r["path"])
                if os.path.exists(place) and digest(place) == r["file"] and \
                        (r["status"] != "survived" or r["product"] == product):
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
    p.add_argument("--builds", default="plain leak asan tsan", help="the builds whose test programs run")
    p.add_argument("--programs", default="", metavar="REGEX", help="runs only test programs whose names match")
    p.add_argument("--keep-map", action="store_true", help="measures only programs that were never measured")
    p.add_argument("--list", action="store_true", help="prints the mutants and tries none")
    p.add_argument("--stage", choices=("build", "judge"), help="only builds; or judges with a build that is there")
    for kind in BUILT:
        p.add_argument("--" + kind, required=True)
    args = p.parse_args()
    started = time.monotonic()
    listed = known_equivalents()
    # Some that are drawn are not counted: the next ones take their places.
    orders = [list(itertools.islice(draw(args.seed, part.split()), args.count * 3 // 2 + 10))
              for part in args.room.split(",")]
    drawn = {m.id: m for order in orders for m in order}
    if args.list:
        for m in itertools.chain(*(order[:args.count] for order in orders)):
            print("%s:%d: %s (%s)\n- %s\n+ %s" % (m.path, m.line, m.rule, m.id, m.before, m.after))
        return 0
    os.makedirs(OUT, exist_ok=True)
    print("mutate: seed %d" % args.seed, flush=True)
    product, lock = product_digest(), threading.Lock()
    results = load_results(product)
    refused = {i: r["by"] for i, r in results.items() if r["status"] == "refused" and i in drawn}
    log = open(os.path.join(OUT, "results"), "a")

    def store(m, status, by, **more):
        row = dict(product=product, file=digest(os.path.join(TOP, m.path)), id=m.id, path=m.path,
                   line=m.line, rule=m.rule, before=m.before, after=m.after, status=status, by=by,
                   **more)
        with lock:
            results[m.id] = row
            log.write(json.dumps(row) + "\n")
            log.flush()
            if status in ("caught", "survived"):
                print("%s:%d %s: %s: %s" % (m.path, m.line, m.rule, status, by), flush=True)

    planted = list(drawn.values())
    numbers = {m.id: len(orders) * i + k + 1
               for k, order in enumerate(orders) for i, m in enumerate(order)}
    tree = Tree({k: getattr(args, k) for k in BUILT})
    if args.stage != "judge":
        tree.plant(planted, numbers, refused, args.programs)
    for m in planted:
        if m.id in refused and m.id not in results:
            store(m, "refused", refused[m.id])
    print("mutate: built in %d s, %d refused" % (time.monotonic() - started, len(refused)), flush=True)
    if args.stage == "build":
        return 0
    bounds.watch(MARK.encode())
    reach = Map(tree, planted, numbers, product)
    names = one_by_one(tree, programs_of(tree, args.programs))
    if not names:
        raise SystemExit("mutate: no test program is called like %r; leave BY out, or see tests/" % args.programs)
    reach.measure(names, args.jobs, args.keep_map)
    print("mutate: measured after %d s" % (time.monotonic() - started), flush=True)
    judge = Judge(tree, reach, numbers, args.patience, started + args.seconds)

    def is_open(m):
        """Whether tests may still notice it."""
        return m.key() not in listed and results.get(m.id, {"status": "survived"})["status"] == "survived"

    def chosen():
        """The first COUNT of each part that count."""
        for order in orders:
            counted = [m for m in order if not args.only or m.id in args.only]
            yield from [m for m in counted if m.key() not in listed and
                        results.get(m.id, {}).get("status") not in ("refused", "same")][:args.count]

    def try_one(kind, m):
        old = {} if args.only else results.get(m.id, {})
        tried = dict(old.get("tried", {}))
        try:
            by = judge.noticed(kind, m, tried)
        except Unfinished:
            return
        compare = args.stage != "judge" and not old.get("compared")
        if by:
            store(m, "caught", by)
        elif compare and tree_locked(lambda: tree.is_same(m)):
            store(m, "same", "the object file is the same")
        elif compare or tried != old.get("tried"):
            store(m, "survived", "%d programs ran" % len(tried), tried=tried, reached=reach.near(m),
                  compared=compare or old.get("compared", False))

    same_lock = threading.Lock()

    def tree_locked(f):
        with same_lock:
            return f()

    def run_kind(kind, mutants):
        if kind != "plain":
            mutants = [m for m in mutants if m.id in results and
                       (kind != "tsan" or "atomic_" in read(os.path.join(TOP, m.path)))]
            names = sorted({n for m in mutants for n in reach.near(m) if INNER.match(n)})
            if not names:
                return
            targets = [os.path.join(BUILDS[kind], n) for n in names]
            good, output = tree.make(kind, *targets) if kind in BUILT else (True, "")
            if not good:
                raise SystemExit("mutate: %s: %s" % (kind, output[-3000:]))
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            list(pool.map(lambda m: try_one(kind, m), mutants))

    for kind in args.builds.split():
        done = set()
        while True:
            more = [m for m in chosen() if m.id not in done and is_open(m)]
            if not more or time.monotonic() - started > args.seconds:
                break
            run_kind(kind, more)
            done.update(m.id for m in more)
    counted = {m.id for m in chosen()}
    rows = [results[i] for i in drawn if i in results and (i in counted or results[i]["status"] in ("refused", "same"))]
    rows += [dict(path=m.path, status="listed") for m in drawn.values() if m.key() in listed]
    survivors = show(rows)
    for (kind, name), why in sorted(judge.anyway.items()):
        if why:
            print("without a mutant, too, these fail: %s %s: %s" % (kind, name, ", ".join(sorted(why))))
    print("mutate: seed %d, %d s, %d survivors" % (args.seed, time.monotonic() - started, len(survivors)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
