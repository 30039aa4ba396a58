#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks running applications at seeded moments and holds what comes of it against what is specified.

usage: tests/torture/torture.py [--runs N] [--stream N] [--stop N] [--seed S] [--load N] [--logs DIR] [--verbose]

--runs: one process of an application is killed or stopped, in its start, its flow or its drain.
--stream: 10,000 messages of 64 KiB at full speed. --stop: Ctrl-C and SIGTERM at any moment.
Beside all of them runs an application of another driver that must lose nothing. A failing run prints its seed and
keeps its logs; --runs 1 --seed S is that run again.
"""
import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

import attack
import stream
import world


class Table:
    """How the runs went, by phase and victim."""

    def __init__(self):
        self.cells = collections.defaultdict(lambda: [0, 0, 0.0])

    def add(self, phase, victim, ok, took_s):
        cell = self.cells[phase, victim]
        cell[0] += 1
        cell[1] += not ok
        cell[2] = max(cell[2], took_s)

    def count(self, phase):
        return sum(c[0] for (p, _), c in self.cells.items() if p == phase)

    def show(self):
        print("%-6s %-18s %5s %7s %9s" % ("phase", "victim", "runs", "failed", "slowest"))
        for (phase, victim), (runs, failed, slowest) in sorted(self.cells.items()):
            print("%-6s %-18s %5d %7d %7.2f s" % (phase, victim, runs, failed, slowest))


class Session:
    def __init__(self, options):
        self.options = options
        self.failed = 0
        self.table = Table()
        self.scratch = tempfile.mkdtemp(prefix="frag-torture-")

    def say(self, text):
        if self.options.verbose:
            print("  " + text, flush=True)

    def one(self, label, run, seed, work):
        """Does work; a failure is told with its seed and its logs are kept. Returns what work returned, and if it went well."""
        try:
            return work(), True
        except Exception as e:  # whatever it is, the next run follows
            self.failed += 1
            folder = os.path.join(self.options.logs, "%s-%d" % (label, seed))
            run.keep(folder, "%s\n\n%s" % (run.words, traceback.format_exc()))
            print("FAILED %s seed %d: %s\n  %s\n  its logs: %s" %
                  (label, seed, run.words, str(e).splitlines()[0] if str(e) else type(e).__name__, folder), flush=True)
            return None, False
        finally:
            run.close()

    def attacks(self, count, seed, idle, bystander):
        clip = world.make_clip(os.path.join(self.scratch, "clip.mp4")) if world.have_video() else None
        done = spare = 0
        while done < count and spare <= count:
            plan = attack.Plan(seed + done + spare, clip is not None)
            run = attack.Attack()
            run.words = str(plan)
            run.prepare(plan, clip, idle)
            started = time.monotonic()
            _, ok = self.one("attack", run, plan.seed, run.run_it)
            bystander.check_goes_on()
            phase = run.phase or plan.phase
            self.table.add(phase, plan.victim + " " + plan.deed, ok, run.took_s)
            self.say("%s; hit in %s, ended in %.2f s, %.1f s in all%s" %
                     (plan, phase, run.took_s, time.monotonic() - started, "" if ok else ": FAILED"))
            # What came too late has been looked at too, but stands in for no attack.
            if phase == "after":
                spare += 1
            else:
                done += 1
        if done >= 15:
            for phase in attack.PHASES:
                if self.table.count(phase) * 5 < done:
                    self.failed += 1
                    print("FAILED: only %d of %d runs were hit in %s" % (self.table.count(phase), done, phase))

    def streams(self, count):
        times = []
        for i in range(count):
            run = stream.Stream()
            run.words = "run %d of %d" % (i + 1, count)
            run.prepare()
            took_s, ok = self.one("stream", run, i, run.run_it)
            if ok:
                times.append(took_s)
                self.say("%s: %.2f s" % (run.words, took_s))
        if times:
            times.sort()
            print("%d of %d streams of %d messages of %d KiB complete; median %.2f s, slowest %.2f s" %
                  (len(times), count, stream.MESSAGES, stream.BYTES // 1024, times[len(times) // 2], times[-1]))

    def stops(self, count, seed):
        times = []
        for i in range(count):
            run = stream.Stop()
            run.prepare(seed + i)
            run.words = str(run)
            took_s, ok = self.one("stop", run, seed + i, run.run_it)
            if ok:
                times.append(took_s)
                self.say("seed %d: %s: %.2f s" % (seed + i, run.words, took_s))
        if times:
            times.sort()
            print("%d of %d stops lost nothing; median %.2f s, slowest %.2f s" %
                  (len(times), count, times[len(times) // 2], times[-1]))

    def run(self):
        o = self.options
        idle = world.idle_worker()
        bystander = world.Bystander()
        load = world.Load(o.load)
        try:
            if o.runs:
                self.attacks(o.runs, o.seed, idle, bystander)
            if o.stream:
                self.streams(o.stream)
            if o.stop:
                self.stops(o.stop, o.seed)
            load.end()
            print("the bystander lost none of its %d messages" % bystander.end())
        finally:
            load.end()
            bystander.world.close()
            shutil.rmtree(self.scratch, True)
        if o.runs:
            self.table.show()
        print("torture: %d failed, seed %d" % (self.failed, o.seed))
        return self.failed


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--runs", type=int, default=0)
    p.add_argument("--stream", type=int, default=0)
    p.add_argument("--stop", type=int, default=0)
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--load", type=int, default=os.cpu_count())
    p.add_argument("--logs", default=os.path.join(world.cluster.BUILD, "torture"))
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1000000)
    if not options.runs and not options.stream and not options.stop:
        options.runs = 20
    started = time.monotonic()
    failed = Session(options).run()
    print("in %.0f s" % (time.monotonic() - started))
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
