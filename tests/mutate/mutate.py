#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants small mistakes in copies of the tree, one after the other, and prints those that no test
notices. docs/TESTING.md, "Mutants", describes it.

usage: tests/mutate/mutate.py [--count N] [--seed S] [--room "edge sched"] [--jobs N] [--only ID...]
                              [--seconds N] [--patience N] [--builds "plain asan tsan"]
                              [--programs REGEX] [--keep-map] [--list]
                              --plain MAKE --asan MAKE --tsan MAKE --coverage MAKE

The four MAKE are the commands that build each kind of tree; mk/mutate.mk passes them. Everything
is kept in build-mutate: `tree.N` the copies, `map.json` which program reaches which line, `results`
a line for each mutant that was tried.
"""
import argparse
import collections
import concurrent.futures
import hashlib
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
    """What the result of a mutant depends on."""
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
    """Mutants in the order of that seed: lines are shuffled, and each gives one of its mutants
    before any gives a second."""
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

    def __init__(self, number, makes):
        self.path = os.path.join(OUT, "tree.%d" % number)
        self.whole = self.path + ".whole"  # holds a key while the copy has no mistake in it
        jobs = "1" if number else str(os.cpu_count() or 1)
        self.makes = {kind: shlex.split(m.replace("$(nproc)", jobs)) for kind, m in makes.items()}
        self.env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
        if number:  # mutants stay out of ccache
            self.env["CCACHE_DISABLE"] = "1"

    def is_whole(self, key):
        with open(self.whole, "w") as f:
            f.write(key)

    def refresh(self):
        """Makes the copy equal to the working tree; what did not change keeps its time."""
        wanted = set(files_of(TOP))
        for path in wanted:
            here, there = os.path.join(TOP, path), os.path.join(self.path, path)
            os.makedirs(os.path.dirname(there), exist_ok=True)
            if os.path.islink(here) or not os.path.exists(there) or digest(here) != digest(there):
                if os.path.lexists(there):
                    os.unlink(there)
                shutil.copyfile(here, there, follow_symlinks=False)
                if not os.path.islink(here):
                    shutil.copymode(here, there)
        for path in set(files_of(self.path)) - wanted:
            os.unlink(os.path.join(self.path, path))

    def make(self, kind, *arguments, output=None):
        """Returns whether make succeeded."""
        done = subprocess.run(self.makes[kind] + list(arguments), cwd=self.path, env=self.env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace")
        if output is not None:
            output.append(done.stdout)
        return done.returncode == 0

    def build(self, kind):
        return {"plain": "build", "asan": "build-asan", "tsan": "build-tsan", "coverage": "build-cov"}[kind]

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


class Map:
    """Which program reaches which line, measured with gcov, and how long each takes."""

    FILE = os.path.join(OUT, "map.json")

    def __init__(self, data):
        self.data = data
        self.times = data["seconds"]
        self.changed = {n for n in data["programs"] if not os.path.exists(source_of(n)) or
                        digest(source_of(n)) != data["programs"][n]}
        self.moved = {p for p in data["reach"] if not os.path.exists(os.path.join(TOP, p)) or
                      digest(os.path.join(TOP, p)) != data["files"].get(p)}

    @staticmethod
    def get(tree, jobs, keep, wanted):
        if os.path.exists(Map.FILE):
            data = json.loads(read(Map.FILE))
            if keep or (data["tree"] == tree_digest() and data["wanted"] == wanted):
                return Map(data)
        print("mutate: measuring which test reaches which line", flush=True)
        names = programs_of(tree, wanted)
        output = []
        if not tree.make("coverage", *targets_of("build-cov", names), output=output):
            raise SystemExit(output[0])
        counters = os.path.join(OUT, "counters")
        shutil.rmtree(counters, ignore_errors=True)
        obj = os.path.join(tree.path, "build-cov", "obj")
        strip = str(len(obj.strip("/").split("/")))
        data = {"tree": tree_digest(), "wanted": wanted, "programs": {}, "seconds": {}, "reach": {},
                "files": {}}

        def measure(name):
            folder = os.path.join(counters, name.replace("/", "."))
            os.makedirs(folder)
            _, data["seconds"][name] = tree.run("coverage", name, 600,
                                                {"GCOV_PREFIX": folder, "GCOV_PREFIX_STRIP": strip})
            data["programs"][name] = digest(source_of(name))
            for path, line in Map.taken(folder, obj):
                data["reach"].setdefault(path, {}).setdefault(str(line), []).append(name)
            shutil.rmtree(folder)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(measure, names))
        data["files"] = {p: digest(os.path.join(TOP, p)) for p in data["reach"] if os.path.exists(os.path.join(TOP, p))}
        with open(Map.FILE, "w") as f:
            json.dump(data, f)
        return Map(data)

    @staticmethod
    def taken(folder, obj):
        """(path, line) of each line that the counters in that folder show as taken."""
        lines = set()
        for sub, _, files in os.walk(folder):
            counted = [f for f in files if f.endswith(".gcda")]
            for f in counted:
                note = os.path.join(obj, os.path.relpath(sub, folder), f[:-5] + ".gcno")
                if os.path.exists(note):
                    os.symlink(note, os.path.join(sub, f[:-5] + ".gcno"))
            if not counted:
                continue
            out = subprocess.run(["gcov", "--json-format", "--stdout"] + counted, cwd=sub, capture_output=True,
                                 text=True).stdout
            for text in out.splitlines():
                for f in json.loads(text)["files"]:
                    if f["file"].startswith(tuple(ROOMS)):
                        lines.update((f["file"], l["line_number"]) for l in f["lines"] if l["count"])
        return lines

    def near(self, mutant):
        """The programs that reach the mutant's line, the nearest first; where none does, or the
        file has changed since, those that reach the file."""
        lines = self.data["reach"].get(mutant.path, {})
        numbers = range(mutant.line, mutant.last_line + 1)
        at_line = {n for l in numbers for n in lines.get(str(l), ())}
        in_file = {n for names in lines.values() for n in names}
        if mutant.path in self.moved or not at_line:
            at_line = in_file
        words = set(re.split(r"\W|_", mutant.path)) - {"c", "h", "src", "libfrag", "core"}

        def order(name):
            known = name in self.data["programs"]
            fresh = not known or name in self.changed
            like = words & set(re.split(r"\W|_", os.path.basename(name)))
            # A changed program may reach the line now; it comes last, so that others have time.
            may_reach = fresh and name not in at_line
            return (may_reach, is_script(name), self.times[name] - 2 * len(like))

        programs = set(self.times)
        fresh = {n for n in programs if n not in self.data["programs"] or n in self.changed}
        return sorted((programs & at_line) | fresh, key=order)


class Unfinished(Exception):
    """The time of the whole run is over."""


class Worker:
    """Tries mutants in a tree of its own. Each kind of build gets `patience` seconds for a mutant,
    and none after `deadline`."""

    fails_anyway = {}  # (kind, name): what a program without a mutant reports

    def __init__(self, tree, pristine, coverage_map, key, builds, patience, deadline):
        self.tree, self.pristine, self.map = tree, pristine, coverage_map
        self.key, self.builds = key, builds
        self.patience, self.deadline = patience, deadline

    def objects(self, kind, path, product_only):
        """The objects that are made from a source, in that build."""
        obj = os.path.join(self.tree.build(kind), "obj")
        if path.endswith(".c"):
            return [os.path.join(obj, path[:-2] + ".o")]
        found = []
        for folder, _, files in os.walk(os.path.join(self.pristine.path, obj)):
            inside = os.path.relpath(folder, self.pristine.path)
            if product_only and not inside.startswith(tuple(os.path.join(obj, r) for r in ROOMS)):
                continue
            for f in files:
                if f.endswith(".d") and os.path.exists(os.path.join(folder, f[:-2] + ".o")) and \
                        path in read(os.path.join(folder, f)).split():
                    found.append(os.path.join(inside, f[:-2] + ".o"))
        return found

    def is_pristine(self, path):
        here, there = os.path.join(self.pristine.path, path), os.path.join(self.tree.path, path)
        return os.path.exists(there) and digest(there) == digest(here)

    def restore(self, mutant, kinds, times):
        place = os.path.join(self.tree.path, mutant.path)
        shutil.copyfile(os.path.join(self.pristine.path, mutant.path), place)
        os.utime(place, ns=times)
        for kind in kinds:
            for o in self.objects(kind, mutant.path, False):
                here, there = os.path.join(self.pristine.path, o), os.path.join(self.tree.path, o)
                if not self.is_pristine(o):
                    shutil.copyfile(here, there)

    def attempt(self, mutant):
        """(status, what noticed it)."""
        if os.path.exists(self.tree.whole):
            os.unlink(self.tree.whole)
        place = os.path.join(self.tree.path, mutant.path)
        state = os.stat(place)
        kinds = ["plain"]
        source = read(place)
        with open(place, "w", encoding="utf-8") as f:
            f.write(mutant.apply(source))
        try:
            objects = self.objects("plain", mutant.path, True)
            if not self.tree.make("plain", *objects):
                return "refused", "the compiler"
            if all(self.is_pristine(o) for o in objects):
                return "same", "the object file is the same"
            near = self.map.near(mutant)
            by = self.noticed("plain", near)
            if by:
                return "caught", by
            inner = [n for n in near if re.match(r"tests/(unit|shared|conformance|operators)/", n)]
            for kind, slower in (("asan", 4), ("tsan", 10)):
                if by or kind not in self.builds or (kind == "tsan" and "atomic_" not in source):
                    continue
                kinds.append(kind)
                by = self.noticed(kind, inner, slower)
            return ("caught", by) if by else ("survived", "%d programs reach it" % len(near))
        finally:
            self.restore(mutant, kinds, (state.st_atime_ns, state.st_mtime_ns))
            self.tree.is_whole(self.key)

    def noticed(self, kind, names, slower=1):
        """The name of the first program that fails; empty when none does."""
        at, begin = 0, time.monotonic()
        while at < len(names) and time.monotonic() - begin < self.patience:
            batch = [names[at]] if at == 0 else names[at:at + (4 if at < 5 else 12)]
            at += len(batch)
            build = self.tree.build(kind)
            so = os.path.join(build, "lib", "libfrag.so.1")
            output = []
            # What only loads the library need not be linked again.
            if not (self.tree.make(kind, so, output=output) and
                    self.tree.make(kind, "-o", so, *targets_of(build, batch), output=output)):
                return "the linker: " + output[-1][-200:]
            for name in batch:
                if time.monotonic() > self.deadline:
                    raise Unfinished
                if self.fails_anyway.get((kind, name)):
                    continue
                limit_s = (10 + 4 * self.map.times[name]) * slower
                why, seconds = self.tree.run(kind, name, limit_s)
                # A test with a clock may fail on a busy machine.
                if why and seconds < limit_s and (self.map.times[name] > 1 or "unit" not in name):
                    why, seconds = self.tree.run(kind, name, limit_s)
                if why:
                    if (kind, name) not in self.fails_anyway:
                        self.fails_anyway[kind, name] = self.pristine.run(kind, name, limit_s)[0]
                    why = why if not self.fails_anyway[kind, name] else ""
                if why:
                    return "%s%s: %s" % ("" if kind == "plain" else kind + " ", name, why.split("\n")[0][:100])
        return ""


def load_results(tree):
    found = {}
    if os.path.exists(os.path.join(OUT, "results")):
        with open(os.path.join(OUT, "results")) as f:
            for line in f:
                r = json.loads(line)
                if r["tree"] == tree:
                    found[r["id"]] = r
    return found


def show(results):
    survivors = sorted((r for r in results if r["status"] == "survived"), key=lambda r: (r["path"], r["line"]))
    if survivors:
        print("\nsurvivors, which a test should notice or tests/mutate/equivalent explain:")
    for r in survivors:
        print("%s:%d: %s (%s; %s)\n- %s\n+ %s" % (r["path"], r["line"], r["rule"], r["id"], r["by"], r["before"], r["after"]))
    rooms = sorted({room_of(r["path"]) for r in results})
    print("\n%-20s %8s %8s %9s %7s   %s" % ("room", "mutants", "caught", "survived", "share", "not counted: listed, same object, refused"))
    for room in rooms + ["all"]:
        counts = collections.Counter(r["status"] for r in results if room in ("all", room_of(r["path"])))
        tried = counts["caught"] + counts["survived"]
        print("%-20s %8d %8d %9d %5.1f %%   %d, %d, %d" % (
            room, tried, counts["caught"], counts["survived"], 100.0 * counts["caught"] / tried if tried else 100.0,
            counts["listed"], counts["same"], counts["refused"]))
    return survivors


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--room", default="")
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
    makes = {k: getattr(args, k) for k in ("plain", "asan", "tsan", "coverage")}
    started = time.monotonic()
    listed = known_equivalents()
    order = draw(args.seed, args.room.split())
    if args.only:
        order = [m for m in order if m.id in args.only]
    if args.list:
        for m in list(order)[:args.count]:
            print("%s:%d: %s (%s)\n- %s\n+ %s" % (m.path, m.line, m.rule, m.id, m.before, m.after))
        return 0
    os.makedirs(OUT, exist_ok=True)
    print("mutate: seed %d" % args.seed, flush=True)
    tree = tree_digest()
    stored = {} if args.only else load_results(tree)
    pristine = Tree(0, makes)
    pristine.refresh()
    builds = args.builds.split()
    for kind in builds:
        output = []
        if not pristine.make(kind, "tests", os.path.join(pristine.build(kind), SIM), output=output):
            raise SystemExit("mutate: %s: %s" % (kind, output[0]))
    print("mutate: built in %d s" % (time.monotonic() - started), flush=True)
    coverage_map = Map.get(pristine, args.jobs, args.keep_map, args.programs)
    print("mutate: measured after %d s" % (time.monotonic() - started), flush=True)
    idle = queue.Queue()

    def prepare(n):
        copy, key = Tree(n + 1, makes), tree + args.builds
        idle.put(Worker(copy, pristine, coverage_map, key, builds, args.patience,
                        started + args.seconds))
        if os.path.exists(copy.whole) and read(copy.whole) == key:
            return
        copy.refresh()
        for kind in builds:
            build = copy.build(kind)
            shutil.rmtree(os.path.join(copy.path, build), ignore_errors=True)
            subprocess.run(["cp", "-a", os.path.join(pristine.path, build), copy.path], check=True)
        own = [f for f in os.listdir(pristine.path) if not f.startswith("build")]
        subprocess.run(["cp", "-a", *own, copy.path], cwd=pristine.path, check=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(prepare, range(args.jobs)))
    print("mutate: prepared in %d s" % (time.monotonic() - started), flush=True)

    results, lock = [], threading.Lock()
    log = open(os.path.join(OUT, "results"), "a")

    def try_one(mutant):
        row = {"tree": tree, "id": mutant.id, "path": mutant.path, "line": mutant.line, "rule": mutant.rule,
               "before": mutant.before, "after": mutant.after}
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
    mutants = iter(order)

    def work(_):
        while True:
            with lock:
                if sum(r["status"] in ("caught", "survived") for r in results) >= args.count:
                    return
                mutant = next(mutants, None)
            if mutant is None:
                return
            try_one(mutant)
            if time.monotonic() - started > args.seconds:
                return

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(work, range(args.jobs)))
    survivors = show(results)
    for (kind, name), why in sorted(Worker.fails_anyway.items()):
        if why:
            print("not used, because it fails without a mutant: %s %s: %s" % (kind, name, why.split("\n")[0]))
    print("mutate: seed %d, %d s, %d survivors" % (args.seed, time.monotonic() - started, len(survivors)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
