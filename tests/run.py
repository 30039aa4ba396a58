#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every test and ends with one line: N passed, N failed, N skipped.

usage: tests/run.py [--build DIR] [--jobs N] [--record FILE] [--again N]
                    [--only WORD | --tests NAME...] [--share K/N]
                    [--sanitized | --threads | --valgrind | --emulated]

C programs (tests/mini_criterion) are DIR/tests/*/*; tests of daemons are the unittest classes of
tests/integration/test_*.py and tests/hostile/test_*.py. Each program runs in a process group of its
own with a time limit; what it leaves behind is killed and makes it fail.

--sanitized is for a build with ASan, UBSan and LSan (make asan): the sanitizers of a test program
and of all processes that it starts write into files, and a file fails the program. Exit statuses
alone would not do: that of a daemon does not show what was reported. --threads is the same for
ThreadSanitizer (make tsan), for what has threads. --valgrind runs the unit and conformance programs
under valgrind, with twenty times the time; there too what is written into a log fails. --emulated
runs the programs of another machine's build (tests/aarch64.sh) with the same patience; what the
emulator cannot do is in tests/skips.aarch64.

--share K/N: only the K-th of N parts of the programs. K may be any number, so that it can come from
the content of a commit: then all parts have their turn. A program of daemons or of conformance is
in one part; the others, which are quick, are in eight (in all, where there are no more). With
--threads only programs whose threads share memory are left, without those of make tsan-queues.

--again N: when at most N programs had tests that failed, each of them runs once more, alone after
all others have ended, and counts as it ended then. The last line names those that passed only then,
and above it stands what failed first. A report of a checker fails without a second run, and so does
what is left behind by a program that passed.
"""
import argparse
import concurrent.futures
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "planted")]
import features  # noqa: E402
from busy import busy  # noqa: E402

# Of tests that drive real daemons.
PYTHON_FOLDERS = ("integration", "hostile")
CLUSTER = os.path.join(HERE, "integration", "cluster.py")  # runs a file of them
LIMIT_S = 240
# The longest programs, which begin first, so that nothing is left alone at the end.
LONGEST = ("integration/test_top", "integration/test_failures", "integration/test_unruly",
           "integration/test_fragctl", "integration/test_viewer", "integration/test_nodes",
           "hostile/test_data_port", "integration/test_video", "integration/test_examples",
           "integration/test_service", "tests/conformance/test_successor",
           "integration/test_adoption", "tests/conformance/test_edge", "hostile/test_control_port",
           "integration/test_tutorial", "integration/test_migrate", "integration/test_restart",
           "integration/test_rtsp", "hostile/test_network", "tests/conformance/test_processes",
           "integration/test_python", "integration/test_web", "integration/test_gpu",
           "hostile/test_page", "integration/test_placement", "integration/test_power")
# Programs that take seconds, and how many parts of --share hold any other.
LONG = re.compile(r"(integration|hostile|tests/conformance)/")
PARTS_WITH_OTHERS = 8
QUEUES = re.compile(r"tests/unit/test_(queue|pump|pump_spin|pump_backup|lock)$")
# These look at pages, headers, makefiles and packages, load frag into a Python that has no checker,
# or count instructions of a core: a checker of the programs' memory and threads has nothing to see
# there.
ONCE = re.compile(r"integration/test_(docs|headers|pages|readmes|site|make|deploy|completion|python|holoscan_programs)$|tests/scale/")
LOOK_S = 0.5  # whether the cores are idle
ENOUGH_IDLE = 0.2
DESCRIPTORS_MIN = 256  # of a program
EXIT_S = 20  # for processes to exit after the program that started them

TAP = re.compile(r"^(not ok|ok) - (\S+)(.*)$")


class Result:
    def __init__(self, name):
        self.name = name
        self.passed, self.failed, self.skipped = [], [], []
        self.reasons = {}  # what tests that were skipped say themselves
        self.is_certain = False  # what failed would fail whenever it runs
        self.failed_first = []  # before the program ran again
        self.output = ""
        self.closing = ""
        self.seconds = self.processor_s = 0.0


def wait_for(child, limit_s):
    """Returns (exit status or None for a time-out, processor time of it and of what it waited
    for)."""
    begun = time.monotonic()
    while time.monotonic() - begun < limit_s * busy():
        pid, status, used = os.wait4(child.pid, os.WNOHANG)
        if pid != 0:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, used.ru_utime + used.ru_stime
        time.sleep(0.02)
    return None, 0.0


def lives(group):
    """Whether a process of the group is left. Dead ones stay where a container has no init."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                state, _, of = f.read().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of) == group and state not in "ZX":
            return True
    return False


def run_group(command, env, limit_s):
    """Runs command in its own process group. Returns (exit status or None for a time-out, output,
    whether processes were left, processor time)."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env,
                                 start_new_session=True)
        status, processor_s = wait_for(child, limit_s)
        # What still has to exit, with its leak check, gets the time; what is left is killed.
        until = time.monotonic() + (EXIT_S if status is not None else 0)
        while time.monotonic() < until and lives(child.pid):
            time.sleep(0.01)
        left = lives(child.pid)
        if left:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        out.seek(0)
        return status, out.read().decode("utf-8", "replace"), left, processor_s


def sanitizer_environment(checker, reports):
    """Environment that sends reports into files and leaves crashes alone, for the tests of
    crashes."""
    log = "log_path=" + os.path.join(reports, "report")
    handle = "".join(":handle_%s=0" % s for s in ("segv", "abort", "sigbus", "sigfpe", "sigill"))
    if checker == "threads":
        # A thread that is left behind is one whose compute hangs: tests of that watch it.
        return {"TSAN_OPTIONS": log + handle + ":report_thread_leaks=0:suppressions=" +
                                os.path.join(HERE, "tsan.supp"),
                "CFLAGS": "-O1 -g -fsanitize=thread",
                # UCX's patched mmap and that of TSan call each other until the stack ends.
                "UCX_MEM_EVENTS": "n"}
    suppressions = "suppressions=" + os.path.join(HERE, "lsan.supp")
    # LeakSanitizer of gcc 12 keeps wrong records of the thread-local memory of libraries that were
    # unloaded, and crashes on them when a program has loaded many.
    records = ":intercept_tls_get_addr=0"
    return {"ASAN_OPTIONS": log + handle + records +
                            ":detect_leaks=1:allocator_may_return_null=1:verify_asan_link_order=0",
            # For what tests compile against such a libfrag.so.
            "CFLAGS": "-O1 -g -fsanitize=address,undefined",
            "UBSAN_OPTIONS": log + ":print_stacktrace=1",
            "LSAN_OPTIONS": suppressions + ":print_suppressions=0"}


# Lines that report nothing wrong: UCX first asks for huge pages, which valgrind has not, and then
# takes others; and a thread may end while LeakSanitizer looks at it.
NO_REPORT = re.compile(r"valgrind ignores shmget\(shmflg\) SHM_HUGETLB$|"
                       r"^==\d+==Unable to get registers from thread \d+\.$")


def read_reports(reports):
    """What the sanitizers of a program and its children wrote: one text per process."""
    texts = []
    for f in sorted(os.listdir(reports)):
        with open(os.path.join(reports, f), encoding="utf-8", errors="replace") as report:
            lines = [line for line in report if not NO_REPORT.search(line.rstrip("\n"))]
            texts.append("".join(lines)[:20000])
    return [t for t in texts if t.strip()]


VALGRIND = ["valgrind", "-q", "--vgdb=no", "--trace-children=yes", "--leak-check=full", "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite", "--num-callers=20", "--fair-sched=yes",
            "--suppressions=" + os.path.join(HERE, "valgrind.supp")]
# Tests multiply their time limits by this.
TIMES_SLOWER = {"threads": 3, "valgrind": 20, "emulated": 20}


def run_program(command, name, build, checker=None, limit_s=None, environment=()):
    """Runs one test program; it writes its verdicts as TAP into the file FRAG_TEST_TAP."""
    result = Result(name)
    with tempfile.TemporaryDirectory(prefix="frag-test-") as runtime:
        tap = os.path.join(runtime, "tap")
        scratch = os.path.join(runtime, "scratch")
        reports = os.path.join(runtime, "reports")
        own = os.path.join(runtime, "run")
        os.mkdir(scratch)
        os.mkdir(reports)
        os.mkdir(own, 0o700)
        env = dict(
            os.environ,
            FRAG_TEST_RUNTIME=scratch,
            # Drivers and clients of a test meet no other ones of this machine.
            XDG_RUNTIME_DIR=own,
            FRAG_TEST_OWN_DRIVERS="1",
            FRAG_TEST_TAP=tap,
            FRAG_BUILD=build,
            # A wake-up that is lost hangs a test instead of costing it a moment.
            FRAG_TEST_NO_SAFETY_POLL="1",
            TMPDIR=scratch,
            PYTHONDONTWRITEBYTECODE="1",
        )
        for variable in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "JOURNAL_STREAM"):
            env.pop(variable, None)  # of a unit or container in which this runs
        env.update(environment)
        if checker in ("sanitized", "threads"):
            env.update(sanitizer_environment(checker, reports))
        elif checker == "valgrind":
            command = VALGRIND + ["--log-file=" + os.path.join(reports, "report.%p")] + command
        limit_s = limit_s or LIMIT_S * TIMES_SLOWER.get(checker, 1)
        # Read by tests/slow.h and tests/integration/cluster.py.
        env["FRAG_TEST_SLOW"] = str(TIMES_SLOWER.get(checker, 1))
        started = time.monotonic()
        command = [a.replace("{tap}", tap) for a in command]
        status, result.output, left, result.processor_s = run_group(command, env, limit_s)
        result.seconds = time.monotonic() - started
        lines = open(tap).read().splitlines() if os.path.exists(tap) else []
        # A process that is killed while ThreadSanitizer starts leaves a file of that.
        left_files = [f for f in os.listdir(scratch) if not f.startswith("tsan.rodata.")]
        texts = read_reports(reports)
    for line in lines:
        m = TAP.match(line)
        if not m:
            continue
        _, is_skipped, reason = m.group(3).partition("# SKIP")
        if is_skipped:
            result.skipped.append(m.group(2))
            result.reasons[m.group(2)] = reason.strip()
        elif m.group(1) == "ok":
            result.passed.append(m.group(2))
        else:
            result.failed.append(m.group(2))
    closing = [l for l in result.output.splitlines() if "Synthesis" in l or l.startswith("Ran ")]
    result.closing = closing[-1].strip() if closing else ""
    if status is None:
        result.failed.append("%s: still running after %d s" % (name, result.seconds))
    elif status != 0 and not result.failed:
        result.failed.append("%s: exit status %d" % (name, status))
    elif not (result.passed or result.failed or result.skipped):
        result.failed.append("%s: ran no test" % name)
    # A test that fails, or is stopped, cannot tidy up after itself.
    tidy = not result.failed
    if left:
        result.failed.append("%s: left processes behind" % name)
    if texts:
        result.failed.append("%s: %d reports of the sanitizers or valgrind" % (name, len(texts)))
        result.output += "".join(texts)
    if left_files:
        result.failed.append("%s: left files behind: %s" % (name, " ".join(left_files)))
    # LeakSanitizer may fail itself, beside a thread that ends.
    found = [t for t in texts if "LeakSanitizer has encountered a fatal error" not in t]
    result.is_certain = bool(found or (tidy and (left or left_files)))
    return result


def programs(build, seconds, is_built=os.path.exists):
    """(command, name) of every test program of a build and of every integration test; each test of
    a program may take that long."""
    found = []
    for folder, _, files in sorted(os.walk(HERE)):
        for f in sorted(files):
            name = "tests/" + os.path.relpath(os.path.join(folder, f[:-2]), HERE)
            path = os.path.join(build, name)
            if f.startswith("test_") and f.endswith(".c") and is_built(path):
                found.append(([path, "--tap={tap}", "--timeout", str(seconds)], name))
    for folder in PYTHON_FOLDERS:
        for f in sorted(os.listdir(os.path.join(HERE, folder))):
            path = os.path.join(HERE, folder, f)
            if f.startswith("test_") and f.endswith(".py"):
                found.append(([sys.executable, CLUSTER, path], folder + "/" + f[:-3]))
    return found


def place_of(name):
    """(path of its program in the build, what the program calls it) of the test of that name."""
    suite, _, test = name.partition("::")
    for folder in PYTHON_FOLDERS:
        if os.path.exists(os.path.join(HERE, folder, suite + ".py")):
            return folder + "/" + suite, test
    # The name may be an argument of a macro that makes tests of that suite, or of one that makes
    # tests for every kind of edge, which tests/conformance/pair.h lists as X(suite, ...).
    wanted = [r"(?:\bTest|_TEST)\(%s(?=,).*[(,]\s*%s[,)]" % (re.escape(suite), re.escape(test))]
    with open(os.path.join(HERE, "conformance", "pair.h"), encoding="utf-8") as kinds:
        if re.search(r"\bX\(%s," % re.escape(suite), kinds.read()):
            wanted.append(r"\b(EDGE|KIND)_TEST\(%s[,)]" % re.escape(test))
    wanted = re.compile("|".join(wanted), re.S)
    for folder, _, files in sorted(os.walk(HERE)):
        for f in sorted(files):
            if f.startswith("test_") and f.endswith(".c"):
                path = os.path.join(folder, f)
                with open(path, encoding="utf-8") as source:
                    if wanted.search(source.read()):
                        return "tests/" + os.path.relpath(path, HERE)[:-2], suite + "/" + test
    raise SystemExit(
        "tests/run.py: there is no test %s; a test is called suite::name, or file::Class.test" % name
    )


class Skips(dict):
    """Reasons by name; FILE::CLASS.* stands for all tests of a class."""

    def __missing__(self, name):
        return self[self.of_class(name)]

    def __contains__(self, name):
        return dict.__contains__(self, name) or dict.__contains__(self, self.of_class(name))

    @staticmethod
    def of_class(name):
        if name.endswith(".*"):
            raise KeyError(name)
        return name.rpartition(".")[0] + ".*"


def known_skips(file):
    """tests/skips and the like: one `name reason` a line."""
    names = Skips()
    with open(os.path.join(HERE, file)) as f:
        for line in f:
            line = line.strip()
            if line and not line.startswith("#"):
                name, _, reason = line.partition(" ")
                names[name] = reason.strip()
    return names


def read_arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--jobs", type=int, help="programs at once; default: two more than cores, with a checker as many, and up to four for each core while cores are idle")
    p.add_argument("--record", help="write the name of every test that ran and passed")
    p.add_argument("--again", type=int, default=0, metavar="N", help="repeat programs that failed, unless they are more than N")
    p.add_argument("--only", help="only programs whose path holds this word")
    p.add_argument("--share", metavar="K/N", help="only that part of the programs")
    p.add_argument("--tests", nargs="+", metavar="NAME", help="only these tests, by the names of docs/features.tests")
    p.add_argument("--targets", action="store_true", help="run nothing: print what make is to build")
    p.add_argument("--sanitized", action="store_true", help="the build has sanitizers: what they report fails")
    p.add_argument("--threads", action="store_true", help="the same for ThreadSanitizer")
    p.add_argument("--valgrind", action="store_true", help="the unit and conformance programs, under valgrind")
    p.add_argument("--emulated", action="store_true", help="all but integration tests, of a build that an emulator runs")
    return p.parse_args()


def mentions(name, pattern):
    """Whether the source of a C program has a match."""
    with open(os.path.join(os.path.dirname(HERE), name + ".c"), encoding="utf-8") as f:
        return re.search(pattern, f.read(), re.M) is not None


def has_threads(name):
    if not name.startswith("tests/"):
        # test_ping and test_examples run the same threads; these have many pixels besides.
        return not re.search("integration/test_(video|runner)$", name)
    # The core of a daemon neither has threads nor calls the system.
    return not (re.match("tests/(sim|fuzz|operators)/", name) or
                mentions(name, r'^#include "\w+_world\.h"$'))


def in_share(name, share):
    part, parts = (int(n) for n in share.split("/"))
    if not LONG.match(name):
        parts = max(parts // PARTS_WITH_OTHERS, 1)
    return (zlib.crc32(name.encode()) - part) % parts == 0


def shares_memory(name):
    if name.startswith("tests/unit/"):
        pattern = r"pthread_|\brig\.h|\bstore_rig\.h|event_based|scheduler|frag_run|fragi_run"
        return not QUEUES.match(name) and mentions(name, pattern)
    return not name.startswith("hostile/")  # those attacked are daemons, which have one thread


def choose_programs(programs, args, chosen):
    """Those that fit the checker and what was asked for; chosen: the tests of each program."""
    if args.valgrind:
        # valgrind 3.19 does not know pidfd_open, without which a worker starts nothing.
        wanted = re.compile(r"tests/(unit|conformance|checkers)/(?!test_(worker_spawn|fraghost)$)")
        programs = [p for p in programs if wanted.match(p[1])]
    if args.emulated:
        programs = [(c + ["--exec"], n) for c, n in programs if n.startswith("tests/")]
    if args.sanitized or args.threads:
        programs = [p for p in programs if not ONCE.search(p[1])]
    if args.threads:
        programs = [p for p in programs if has_threads(p[1])]
    if args.share:
        programs = [p for p in programs if in_share(p[1], args.share) and
                    not (args.threads and not shares_memory(p[1]))]
    if args.only:
        programs = [p for p in programs if args.only in p[1]]
    if args.tests:
        programs = [(c + (["--filter=@(%s)" % "|".join(chosen[n])] if n.startswith("tests/") else chosen[n]), n)
                    for c, n in programs if n in chosen]

    def length(name):
        if name in LONGEST:
            return LONGEST.index(name)
        return len(LONGEST) + (not name.startswith(PYTHON_FOLDERS))

    return sorted(programs, key=lambda p: length(p[1]))


class Idle:
    """How much of the time the cores have been idle."""

    def __init__(self):
        self.before = self.read()

    @staticmethod
    def read():
        """(idle, all) since the machine was started."""
        with open("/proc/stat", encoding="utf-8") as f:
            ticks = [int(n) for n in f.readline().split()[1:9]]
        return ticks[3] + ticks[4], sum(ticks)

    def share(self):
        """Since the last call."""
        now, before = self.read(), self.before
        self.before = now
        return (now[0] - before[0]) / max(now[1] - before[1], 1)


def run_side_by_side(programs, run_one, jobs, most, idle):
    """jobs of them at once, and up to `most` while a fifth of the cores is idle, since most
    programs of daemons wait four fifths of their time."""
    waiting, running = list(programs), set()
    with concurrent.futures.ThreadPoolExecutor(most) as pool:
        while waiting or running:
            share = idle.share() if jobs <= len(running) < most else 0
            if waiting and (len(running) < jobs or share > ENOUGH_IDLE):
                running.add(pool.submit(run_one, waiting.pop(0)))
                if len(running) < jobs:
                    continue
            done, running = concurrent.futures.wait(running, LOOK_S,
                                                    concurrent.futures.FIRST_COMPLETED)
            for ended in done:
                ended.result()


def run_programs(programs, build, checker, args, emulator_skips):
    """Returns the result of each program, of its last run."""
    lock = threading.Lock()
    results = []

    def run_one(item):
        result = run_program(item[0], item[1], build, checker)
        result.skipped += [n for n in result.failed if n in emulator_skips]
        result.failed = [n for n in result.failed if n not in emulator_skips]
        with lock:
            results.append(result)
            print("%-44s %5.1f s, %5.1f s of a core  %3d/%d  %s" %
                  (result.name, result.seconds, result.processor_s, len(results), len(programs),
                   result.closing))
            if result.failed:
                print(result.output)
                for f in result.failed:
                    print("FAILED %s" % f)
            sys.stdout.flush()

    cores = os.cpu_count() or 1
    jobs = args.jobs or (cores if checker else cores + 2)
    run_side_by_side(programs, run_one, jobs, args.jobs or 4 * cores, Idle())
    failed = [r for r in results if r.failed]
    if len(failed) > args.again:
        return results
    for first in [r for r in failed if not r.is_certain]:
        print("again, alone: %s" % first.name)
        results.remove(first)
        run_one(next(p for p in programs if p[1] == first.name))
        results[-1].failed_first = first.failed
    return results


def report(results, skips, args, checks_features):
    """Prints what was skipped and what failed. Returns the exit status."""
    passed = sorted(n for r in results for n in r.passed)
    failed = sorted(n for r in results for n in r.failed)
    skipped = sorted(n for r in results for n in r.skipped if not args.tests or n in args.tests)
    reasons = {n: r.reasons[n] for r in results for n in r.reasons}
    for name in skipped:
        if name in skips:
            print("skipped %s: %s" % (name, reasons.get(name) or skips[name]))
        else:
            print("FAILED %s: skipped, and tests/skips does not say why" % name)
            failed.append(name)
    if checks_features:
        excused = {n for n in skipped if n in skips}
        shown = set(passed) | excused
        wrong = ["docs/features.md: " + s for s in features.check(shown)]
        wrong += ["docs/SECURITY.md: " + s for s in features.check_names(features.SECURITY, shown)]
        for sentence in wrong:
            print(sentence)
        (failed if wrong else passed).append("features::rows_are_shown_by_tests")
    if args.record:
        with open(args.record, "w") as f:
            f.writelines(n + "\n" for n in passed)
    for name in failed:
        print("failed: %s" % name)
    if failed:
        print("what each wrote is above; to run one alone: python3 tests/run.py --build %s --tests NAME" % args.build)
    again = sorted((r for r in results if r.failed_first), key=lambda r: r.name)
    for result in again:
        for name in result.failed_first:
            print("ran twice: %s, in which this failed first: %s" % (result.name, name))
    twice = ", ran twice: " + " ".join(r.name for r in again) if again else ""
    excused = len([s for s in skipped if s in skips])
    print("%d passed, %d failed, %d skipped%s" % (len(passed), len(failed), excused, twice))
    return 1 if failed or not passed else 0


def allow_descriptors():
    """As many as the daemons of a test need; a test that needs more asks for them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < DESCRIPTORS_MIN:
        sys.exit("tests need %d descriptors, and the limit is %d; raise it (ulimit -n %d, docker run --ulimit nofile=%d)" %
                 (DESCRIPTORS_MIN, hard, DESCRIPTORS_MIN, DESCRIPTORS_MIN))
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, DESCRIPTORS_MIN), hard))


def main():
    args = read_arguments()
    # A shell that starts this in the background ignores SIGINT, and so would every program.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build = os.path.abspath(args.build)
    checker = next((c for c in ("sanitized", "threads", "valgrind", "emulated") if getattr(args, c)), None)
    emulator_skips = known_skips("skips.aarch64") if args.emulated else {}
    skips = known_skips("skips")
    skips.update(emulator_skips)
    chosen = {}
    for name in args.tests or []:
        program, test = place_of(name)
        chosen.setdefault(program, []).append(test)
    if args.targets:
        wanted = choose_programs(programs(build, 0, lambda path: True), args, chosen)
        print("all", *sorted(os.path.join(args.build, n) for _, n in wanted if n.startswith("tests/")))
        return 0
    allow_descriptors()
    wanted = choose_programs(programs(build, 120 * TIMES_SLOWER.get(checker, 1)), args, chosen)
    began = time.monotonic()
    results = run_programs(wanted, build, checker, args, emulator_skips)
    used = os.times()
    print("%.0f s, and %.0f s of processor time" %
          (time.monotonic() - began, used.children_user + used.children_system))
    checks_features = checker is None and not (args.only or args.tests or args.share)
    return report(results, skips, args, checks_features)


if __name__ == "__main__":
    sys.exit(main())
