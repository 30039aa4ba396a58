#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes every call site of ours fail once, each in a short application of its own, and holds what
comes of it.

usage: tests/faults/faults.py [--role R]... [--site WORD] [--sample N] [--skip N] [--depth N]
                              [--jobs N] [--sanitized] [--verbose]

The application is a stream over two workers (in the role fragctl: of one process). In one of its
processes, the role, a preloaded library (failing.c) first writes down which sites are reached; then
there is a run for each of them, in which it fails. Nobody may crash, hang or leave something
behind; either all of it arrives and is accounted for, or the exit code is that of a failure and
somebody says what failed and why.

--site tries only those sites whose words hold WORD, --sample about N of each role, of each kind
some; --skip lets that many calls of a site succeed before; --depth is how many callers tell two
sites apart.
"""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time
import traceback

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [TESTS, os.path.join(TESTS, "torture")]

import run as runner  # noqa: E402
import world  # noqa: E402

cluster = world.cluster
FAILING = os.path.join(cluster.BUILD, "tests", "faults", "failing.so")
MESSAGES = 300
# LeakSanitizer of gcc 12 may crash itself at the end of a fraghost that had to prepare on its main
# thread: seen where it receives.
LSAN_CRASHED = "LeakSanitizer has encountered a fatal error"
TRIES = 3  # to reach a site; threads take turns
# Whose environment says so, in which program it is (what workerd starts inherits it), and how the
# messages travel.
ROLES = {"driver": ("driver", "driverd", "auto"), "worker": ("a", "workerd", "auto"),
         "sender": ("a", "fraghost", "shm"), "receiver": ("b", "fraghost", "shm"),
         "sender_ucx": ("a", "fraghost", "ucx"), "receiver_ucx": ("b", "fraghost", "ucx"),
         "fragctl": ("driver", "fragctl", "auto")}
# What a sentence must hold that says why, by what failed.
WHY = {"memory": "(?i)memory|too long to keep", "ENOSPC": "No space left", "EMFILE": "Too many open files",
       "EAGAIN": "Resource temporarily unavailable", "ECONNRESET": "(?i)reset|lost|gone"}
KINDS = {"ENOSPC": ("write", "ftruncate", "epoll_ctl", "rename", "fflush", "fclose"), "ECONNRESET": ("send",),
         "EAGAIN": ("fork", "pthread_create"),
         "EMFILE": ("memfd_create", "fopen", "open", "opendir", "pipe2", "socketpair", "eventfd", "timerfd_create",
                    "epoll_create1", "dup2")}


def why(site):
    """The words for what was made to fail at a site."""
    function = site.split()[0]
    if function == "dlopen":
        return "made to fail"
    return WHY[next((k for k, names in KINDS.items() if function in names), "memory")]


class Run(world.World):
    """One run with one role, in which a site fails, or none."""

    def prepare(self, role, options, site=None, leaks=True):
        self.open(variable=True)
        self.env["FRAG_DEAD_MS"] = "3000"  # nobody is to be taken for dead on a busy machine
        self.role, self.site = role, site
        self.reports = self.path("reports")
        os.mkdir(self.reports)
        if options.sanitized:
            self.env.update(runner.sanitizer_environment("sanitized", self.reports))
            self.env["ASAN_OPTIONS"] += ":detect_leaks=%d" % leaks
        self.log = self.path("sites")
        self.fault_env = {"LD_PRELOAD": FAILING, "FAULT_PROGRAM": ROLES[role][1], "FAULT_ROOT": cluster.BUILD,
                          "FAULT_LOG": self.log, "FAULT_DEPTH": str(options.depth),
                          "FAULT_SKIP": str(options.skip)}
        if site is not None:
            self.fault_env["FAULT_SITE"] = site
        return self

    def env_of(self, who):
        return self.fault_env if ROLES[self.role][0] == who else None

    def begin(self):
        words = ["--", "--count", str(MESSAGES), "--edge", ROLES[self.role][2]]
        self.workers = []
        if self.role == "fragctl":
            self.d = self.start("fragctl", "run", "--output", "json", self.app, *words, env=self.env_of("driver"))
        else:
            # Who starts it reads the address from a pipe, for the line of the log may be what
            # fails.
            reading, writing = os.pipe()
            env = dict(self.env_of("driver") or {}, FRAG_ADDRESS_FD=str(writing))
            self.d = self.start("driverd", "--address", "127.0.0.1:0", "--app", self.app, "--output", "json",
                                "--start-timeout", "6s", *words, env=env, pass_fds=(writing,))
            os.close(writing)
            with open(reading) as address:
                self.address = address.read().strip()
        self.named["driver"] = self.d
        if self.role != "fragctl" and self.address:
            for i, name in enumerate("ab"):
                w = self.worker("--name", name, "--once", fragments="fragment%d" % (i + 1), env=self.env_of(name))
                self.workers.append(w)
                self.named[name] = w

    def play(self):
        """Returns the exit codes."""
        self.begin()
        gone = lambda: self.d.child.poll() is not None
        # The driver waits for a worker that has ended before it served: a person would stop it.
        alone = lambda: any(
            w.child.poll() is not None and "none -> spawning" not in w.stderr for w in self.workers
        )
        self.wait_until("the end of the application, or of a worker before it", lambda: gone() or alone(), 20)
        if not gone():
            self.d.signal(signal.SIGTERM)
        codes = [self.d.wait(20)]
        return codes + [self.end_worker(w) for w in self.workers]

    def end_worker(self, worker):
        """Its exit code. One that has not served waits for another driver, until it is told to
        end."""
        if worker.child.poll() is None and "none -> spawning" not in worker.stderr:
            worker.signal(signal.SIGTERM)
            code = worker.wait(20)
            # one that has hardly begun has no handler yet
            return 0 if code == 128 + signal.SIGTERM else code
        return worker.wait(20)

    def sites(self):
        with open(self.log) as f:
            return f.read().splitlines()

    def has_failed(self):
        return "failed %s" % self.site in self.sites()

    def said(self):
        return "\n".join(p.stderr for p in self.named.values())

    def check(self, codes):
        for name, code in zip(self.named, codes):
            self.assertIn(code, (0, 1, 2, 3, 4), "%s ended with %d" % (name, code))
        self.assertNotRegex(self.said(), r"crashed|called exit")
        self.assert_clean_logs()
        self.assertEqual(runner.read_reports(self.reports), [], "the sanitizers")
        self.assert_nothing_left()
        if self.site is None:
            self.assertEqual(set(codes), {0}, self.said())
        elif any(codes):
            self.assertRegex(self.said(), why(self.site), "nobody says why")
        if self.d.stdout == "":
            self.assertTrue(self.role == "fragctl" or "cannot write the summary to stdout: " in self.d.stderr,
                            "no summary")
            self.assertNotEqual(codes[0], 0, "no summary")
            return
        summary = self.summary(self.d)
        if "flows" not in summary:  # fragctl failed before it had an application
            self.assertNotEqual(codes[0], 0, "exit codes")
            return
        self.assert_balanced(summary)
        if summary["result"] == "done":
            # All went well but what came after: the summary may have nowhere to go.
            # A worker may still run out of memory while it ends, and says so.
            for worker, code in zip(self.workers, codes[1:]):
                self.assertEqual(code != 0, "out of memory: this worker" in worker.stderr, "exit codes")
            unwritten = re.search("cannot write (the summary|to stdout)", self.said())
            self.assertIn(codes[0], (0, 3) if unwritten else (0,))
            self.assert_complete(summary, "done")
            self.assertEqual(self.truth("received"), list(range(1, MESSAGES + 1)))
            if not (self.site or "").startswith("write "):  # it may be the log's
                self.assertIn(world.HEARD, self.said())
        else:
            self.assertEqual(codes[0], summary["exit_code"])
            self.assertTrue(any(codes), "it ended early, and no exit code tells it")
            # Where memory is short for the driver itself, it no longer knows the flows.
            if summary.get("flows") or summary.get("failure", {}).get("code") != "out_of_memory":
                self.assert_truth(summary)


class Names:
    """What addresses are called, for people."""

    def __init__(self, build):
        self.build = build
        self.cache = {}

    def learn(self, sites):
        """Looks them up with one addr2line for each file: it reads all that is known of a file."""
        unknown = {}
        for site in sites:
            for place in site.split(" ")[1].split(","):
                if place not in self.cache:
                    unknown.setdefault(place.rsplit("+", 1)[0], {})[place] = None
        for file, places in unknown.items():
            for folder in ("", "bin", "libexec/frag"):
                path = os.path.join(self.build, folder, file)
                if os.path.isfile(path):
                    break
            before = ["0x%x" % (int(p.rsplit("+", 1)[1], 16) - 1) for p in places]
            out = subprocess.run(["addr2line", "-f", "-s", "-e", path], input="\n".join(before) + "\n",
                                 capture_output=True, text=True, check=True).stdout.split("\n")
            for place, function, line in zip(places, out[::2], out[1::2]):
                self.cache[place] = "%s (%s)" % (function, line.split(" ")[0])

    def words(self, site):
        function, places = site.split(" ")
        return "%s in %s" % (function, " of ".join(self.cache[p] for p in places.split(",")))


def list_sites(role, options):
    """All that two runs reach, for threads take turns; in the order in which they are first
    reached."""
    found = {}
    for _ in range(2):
        run = Run().prepare(role, options)
        try:
            run.check(run.play())
            found.update(dict.fromkeys(run.sites()))
        finally:
            run.close()
    if not found:
        raise SystemExit("no call of %s was seen: is %s preloaded?" % (role, FAILING))
    return list(found)


def fail_site(role, site, options, leaks=True):
    """One run. Returns ("went on", "failed" or "not reached", what is to be told of it, None or
    what was wrong)."""
    run = Run().prepare(role, options, site, leaks)
    ended, wrong, codes = "not reached", None, None
    started = time.monotonic()
    try:
        codes = run.play()
        if run.has_failed():
            run.check(codes)
            ended = "failed" if any(codes) else "went on"
    except Exception as e:  # whatever it is, the next run follows
        wrong = str(e) or traceback.format_exc()
        folder = os.path.join(cluster.BUILD, "faults", "%s-%08x" % (role, hash(site) & 0xffffffff))
        run.keep(folder, site)
        wrong += "\n  its logs: " + folder
    said = [l for l in run.said().splitlines() if re.search(why(site), l)]
    run.close()
    if wrong and leaks and LSAN_CRASHED in wrong:
        ended, text, wrong = fail_site(role, site, options, leaks=False)
        return ended + ", leaks not looked for", text, wrong
    return ended, "exit codes %s, %.1f s" % (codes, time.monotonic() - started) + "".join("\n      " + l for l in said), wrong


class Sweep:
    """All sites of a role, or some of them."""

    def __init__(self, options):
        self.options = options
        self.names = Names(cluster.BUILD)
        self.tried = self.failed = 0
        self.seen = {}  # sites of a process, whichever way the messages travelled

    def choose(self, sites):
        """As many as wanted, spread over the kinds of calls, and over the order in which they are
        reached."""
        self.names.learn(sites)
        words = {s: self.names.words(s) for s in sites}
        # fragctl links libuv from its archive: what libuv itself calls is left alone all the same
        sites = [s for s in sites if self.options.site in words[s] and " in uv_" not in words[s]]
        if self.options.sample == 0 or len(sites) <= self.options.sample:
            return sites
        kinds = {}
        for site in sites:
            kinds.setdefault(site.split()[0], []).append(site)
        share = max(1, self.options.sample // len(kinds))
        return [s for of_kind in kinds.values() for s in of_kind[::-(-len(of_kind) // share)]]

    def one(self, role, site):
        for _ in range(TRIES):
            ended, text, wrong = fail_site(role, site, self.options)
            if ended != "not reached":
                break
        words = self.names.words(site)
        if wrong:
            print("FAILED %s: %s\n  %s" % (role, words, wrong), flush=True)
        if wrong or self.options.verbose:
            print("  %s: %s: %s" % (role, words, text), flush=True)
        return "wrong" if wrong else ended

    def role(self, role):
        started = time.monotonic()
        seen = self.seen.setdefault(ROLES[role][:2], set())
        sites = [s for s in list_sites(role, self.options) if s not in seen]
        seen.update(sites)
        chosen = self.choose(sites)
        if sites and not chosen and not self.options.site:
            raise SystemExit("none of %d call sites of %s is chosen" % (len(sites), role))
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            ended = list(pool.map(lambda site: self.one(role, site), chosen))
        self.tried += len(ended) - ended.count("not reached")
        self.failed += ended.count("wrong")
        print(
            "%-12s %d of %d sites: %s; %.0f s"
            % (
                role,
                len(chosen),
                len(sites),
                ", ".join("%d %s" % (ended.count(e), e) for e in sorted(set(ended))),
                time.monotonic() - started,
            ),
            flush=True,
        )


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--role", action="append", choices=list(ROLES))
    p.add_argument("--site", default="")
    p.add_argument("--sample", type=int, default=0)
    p.add_argument("--skip", type=int, default=0)
    p.add_argument("--depth", type=int, default=6)
    p.add_argument("--jobs", type=int, default=4)
    p.add_argument("--sanitized", action="store_true", help="the build has ASan, UBSan and LSan: what they report fails")
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    sweep = Sweep(options)
    for role in options.role or ROLES:
        sweep.role(role)
    if sweep.tried == 0:
        raise SystemExit("no call site was made fail: %s" % (options.site or "there is none"))
    print("%d call sites failed, %d times something was wrong" % (sweep.tried, sweep.failed))
    sys.exit(sweep.failed != 0)


if __name__ == "__main__":
    main()
