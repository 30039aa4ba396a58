#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Holoscan's own tests and example programs on frag.holoscan (make holoscan-suite).

--sdk is a checkout of nvidia-holoscan/holoscan-sdk, of which python/tests and examples are copied
to a scratch folder. --wheel is a virtual environment that has Holoscan's wheel, pytest, numpy and
pyyaml: its Python runs frag too, and what the wheel passes is what frag is measured by. Where an
example prints the same four times on the wheel, so must it on frag.

not_applicable.txt names what frag is not asked to pass, with reasons; naming what the wheel passes
is an error, and so is it when less than --goal percent pass. differs.txt names examples that print
something else on purpose.
"""
import argparse
import concurrent.futures
import fnmatch
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
UNIT = ("core", "conditions", "resources", "schedulers", "decorator", "kwargs", "core_metadata",
        "data_loggers", "operators_native", "operator_naming", "logger", "pose_tree",
        "subgraph_lifetime")
STACK = 32 << 20  # bytes, which the wheel asks for
QUIET_S = 180  # without a test that starts or ends: it hangs


def files_of(sdk):
    tests = os.path.join(sdk, "python", "tests")
    system = glob.glob(os.path.join(tests, "system", "**", "test_*.py"), recursive=True)
    return ["unit/test_%s.py" % name for name in UNIT] + \
        sorted(os.path.relpath(path, tests) for path in system)


def reasons(name):
    """Patterns of tests and programs with the reasons."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        rows = [line.split(None, 1) for line in file if line.strip() and line[0] != "#"]
    return [(pattern, reason.strip()) for pattern, reason in rows]


def reason_of(name, rows):
    return next((reason for pattern, reason in rows
                 if fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))), None)


class Side:
    """What runs programs: frag or the wheel."""

    def __init__(self, name, python, options, env):
        self.name = name
        self.python = [python, *options]
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith("HOLOSCAN_")}
        self.env.update(env, PYTHONDONTWRITEBYTECODE="1")

    def start(self, args, cwd, out, err=subprocess.STDOUT):
        def limit():
            hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
            soft = STACK if hard < 0 else min(STACK, hard)
            resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
        return subprocess.Popen([*self.python, *args], cwd=cwd, env=self.env,
                                stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                start_new_session=True, preexec_fn=limit)


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def read_events(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def run_once(side, scratch, test_file, done, log):
    """One process of pytest. Returns its events, and how it ended: "" in order."""
    with tempfile.TemporaryDirectory() as folder:
        events, known = os.path.join(folder, "events"), os.path.join(folder, "known")
        with open(known, "w", encoding="utf-8") as file:
            json.dump(sorted(done), file)
        process = side.start([os.path.join(HERE, "recorder.py"), events, known, "-q", "-p",
                              "no:cacheprovider", "--rootdir", scratch, test_file], scratch, log)
        seen, since = -1, time.monotonic()
        while process.poll() is None:
            time.sleep(0.05)
            size = os.path.getsize(events) if os.path.exists(events) else 0
            if size != seen:
                seen, since = size, time.monotonic()
            if time.monotonic() - since > QUIET_S:
                break
        end = "hangs" if process.poll() is None else \
            "crashes: exit code %d" % process.returncode if process.returncode not in (0, 1, 5) else ""
        kill(process)
        return read_events(events), end


def run_file(side, scratch, test_file):
    """The outcome of each test: {name: [outcome, reason]}. One that crashes costs itself only."""
    results = {}
    path = os.path.join(scratch, side.name + "-" + test_file.replace("/", "-") + ".log")
    with open(path, "wb") as log:
        while True:
            events, end = run_once(side, scratch, "tests/" + test_file, results, log)
            started = None
            for event in events:
                name = event["test"]
                if event["event"] == "start":
                    started = name
                elif event["event"] != "found" and results.get(name, ["passed"])[0] == "passed":
                    results[name] = [event["event"], event.get("reason", "")]
            if not end:
                break
            if started is None or started in results:
                break  # it has crashed outside a test, after the last one
            results[started] = ["failed", end]
        if end and not results:
            results["tests/" + test_file] = ["failed", end]
    return {name.removeprefix("tests/"): outcome for name, outcome in results.items()}


def run_tests(side, scratch, files, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(zip(files, pool.map(lambda f: run_file(side, scratch, f), files)))


def remembered(path, compute, files):
    """The results of the wheel are kept, since they do not change."""
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    missing = [f for f in files if f not in known]
    if missing:
        known.update(compute(missing))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(known, file, indent=1)
    return {f: known[f] for f in files}


def tests(args, frag, wheel, scratch, rows):
    """Runs the tests. Returns how many the wheel passes, how many of these pass, and mistakes."""
    shutil.rmtree(os.path.join(scratch, "tests"), ignore_errors=True)
    shutil.copytree(os.path.join(args.sdk, "python", "tests"), os.path.join(scratch, "tests"))
    files = [f for f in files_of(args.sdk) if fnmatch.fnmatch(f, args.only)]
    judge = None
    if wheel:
        judge = remembered(os.path.join(scratch, "wheel.json"),
                           lambda some: run_tests(wheel, scratch, some, args.jobs), files)
    found = run_tests(frag, scratch, files, args.jobs)
    return report("tests", found, judge, rows, args.verbose)


EXAMPLE_S = 60


def run_example(side, scratch, path):
    """Runs a program in its folder: [outcome, why, lines of its stdout]."""
    folder, program = os.path.split(os.path.join(scratch, "examples", path))
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = side.start([program], folder, out, err)
        try:
            status = process.wait(EXAMPLE_S)
        except subprocess.TimeoutExpired:
            status = "does not end within %d s" % EXAMPLE_S
        kill(process)
        out.seek(0)
        err.seek(0)
        lines = out.read().decode(errors="replace").splitlines()
        last = err.read().decode(errors="replace").strip().splitlines()[-1:]
    if status == 0:
        return ["passed", "", lines]
    return ["failed", status if isinstance(status, str) else "exit code %d: %s" % (
        status, "".join(last)), lines]


def judge_examples(side, scratch, paths):
    """What the wheel does: its outcome, and what of four outputs is the same: "" or "lines"."""
    known = {}
    for path in paths:
        first = run_example(side, scratch, path)
        if first[0] == "passed":
            others = [run_example(side, scratch, path)[2] for _ in range(3)]
            first.append("order" if all(lines == first[2] for lines in others) else "lines" if all(
                sorted(lines) == sorted(first[2]) for lines in others) else "")
        known[path] = first
    return known


def compare_example(mine, wheel, differs=None):
    """Where the wheel prints the same each time, so does frag, unless it differs on purpose."""
    same = wheel[3] if len(wheel) > 3 else ""
    if mine[0] != "passed" or not same or differs:
        return mine[:2]
    left, right = (wheel[2], mine[2]) if same == "order" else (sorted(wheel[2]), sorted(mine[2]))
    # Lines of several threads may run into each other: then all characters count.
    if left == right or same != "order" and sorted("".join(left)) == sorted("".join(right)):
        return ["passed", ""]
    at = next((i for i, pair in enumerate(zip(left, right)) if pair[0] != pair[1]),
              min(len(left), len(right)))
    return ["failed", "line %d is %r; the wheel prints %r" % (
        at + 1, right[at] if at < len(right) else None, left[at] if at < len(left) else None)]


def examples(args, frag, wheel, scratch, rows):
    """Runs the programs of examples/. Returns how many the wheel runs, how many of these pass."""
    folder = os.path.join(args.sdk, "examples")
    shutil.rmtree(os.path.join(scratch, "examples"), ignore_errors=True)
    shutil.copytree(folder, os.path.join(scratch, "examples"))
    paths = sorted(os.path.relpath(path, folder) for path in glob.glob(
        os.path.join(folder, "**", "*.py"), recursive=True))
    paths = [path for path in paths if fnmatch.fnmatch(path, args.only)]
    judge = {}
    if wheel:
        judge = remembered(os.path.join(scratch, "wheel-examples.json"),
                           lambda some: judge_examples(wheel, scratch, some), paths)
    paths = [path for path in paths if not reason_of(path, rows)
             or judge.get(path, ["failed"])[0] == "passed"]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        found = dict(zip(paths, pool.map(lambda p: run_example(frag, scratch, p), paths)))
    differs = reasons("differs.txt")
    results = {path: {path: compare_example(mine, judge.get(path, []), reason_of(path, differs))}
               for path, mine in found.items()}
    for path, reason in ((path, reason_of(path, differs)) for path in found):
        if reason:
            print("%s: prints something else: %s" % (path, reason))
    verdict = {path: {path: mine[:2]} for path, mine in judge.items()} if wheel else None
    return report("examples", results, verdict, rows, args.verbose)


def sides(args):
    python = os.path.join(args.wheel, "bin", "python3") if args.wheel else args.python
    frag = Side("frag", python, ["-m", "frag.holoscan"], {
        "PYTHONPATH": os.path.abspath(os.path.join(args.build, "python")),
        "PATH": os.path.abspath(os.path.join(args.build, "bin")) + ":" + os.environ["PATH"]})
    if not args.wheel:
        return frag, None
    packages = glob.glob(os.path.join(os.path.abspath(args.wheel), "lib", "python3*", "site-packages"))[0]
    return frag, Side("wheel", python, [], {
        "LD_LIBRARY_PATH": ":".join(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))})


def table(title, rows, totals):
    print("%-58s%8s%8s%8s%8s" % (title, "wheel", "passed", "failed", "n/a"))
    for name, *numbers in rows:
        print("%-58s%8s%8s%8s%8s" % (name, *numbers))
    print("%-58s%8s%8s%8s%8s" % ("all", *totals))


def report(title, found, wheel, rows, verbose):
    """Prints the table. Returns how many the wheel passes, how many of these pass, and mistakes."""
    lines, wrong = [], []
    sums = [0, 0, 0, 0]
    asked = passed_of_asked = 0
    for file, tests in found.items():
        judge = wheel.get(file, {}) if wheel is not None else None
        names = {**tests, **(judge or {})}
        numbers = [0, 0, 0, 0]
        for name in names:
            outcome, why = tests.get(name, ["failed", "not found"])
            by_wheel = judge is not None and judge.get(name, ["failed"])[0] == "passed"
            reason = reason_of(name, rows)
            numbers[0] += by_wheel
            if reason and by_wheel:
                wrong.append("%s: not_applicable.txt names it, but the wheel passes it" % name)
            if judge is not None and not by_wheel and not reason and outcome != "passed":
                reason = "the wheel does not pass it: " + judge.get(name, ["", "no such test"])[1]
            if by_wheel or (judge is None and not reason and outcome != "skipped"):
                asked += 1
                passed_of_asked += outcome == "passed"
            numbers[1] += outcome == "passed"
            if outcome != "passed":
                numbers[3 if reason or outcome == "skipped" and not by_wheel else 2] += 1
                if verbose and not reason:
                    print("%s: %s: %s" % (name, outcome, " ".join(why.split())[:300]))
                elif verbose > 1:
                    print("%s: not applicable: %s" % (name, reason))
        lines.append((file, *numbers))
        sums = [a + b for a, b in zip(sums, numbers)]
    table(title, lines, sums)
    print("of %d that %s, %d pass: %.1f %%" % (
        asked, "the wheel passes" if wheel is not None else "apply", passed_of_asked,
        100 * passed_of_asked / max(asked, 1)))
    return asked, passed_of_asked, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sdk", required=True)
    parser.add_argument("--wheel", help="virtual environment with Holoscan's wheel")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--only", default="*", help="pattern of files")
    parser.add_argument("--goal", type=float, default=95)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="ask for what needs a GPU too")
    parser.add_argument("--part", choices=("tests", "examples"), action="append")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    args = parser.parse_args()
    frag, wheel = sides(args)
    scratch = os.path.realpath(os.path.join(args.build, "holoscan-suite"))
    rows = [row for row in reasons("not_applicable.txt") if not args.gpu or row[1] != "needs a GPU"]
    asked = passed = 0
    mistakes = []
    for part in args.part or ("tests", "examples"):
        run = {"tests": tests, "examples": examples}[part]
        some, good, wrong = run(args, frag, wheel, scratch, rows)
        asked, passed, mistakes = asked + some, passed + good, mistakes + wrong
    for line in mistakes:
        print(line, file=sys.stderr)
    return 1 if mistakes or passed * 100 < asked * args.goal else 0


if __name__ == "__main__":
    sys.exit(main())
