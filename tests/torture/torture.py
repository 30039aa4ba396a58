#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks running applications at seeded moments and holds what comes of it against what is
specified.

usage: tests/torture/torture.py [--runs N] [--restart N] [--stream N] [--stop N] [--link N]
                                [--service N] [--soak N] [--soak-service S] [--many N]
                                [--seed S] [--load N] [--logs DIR] [--verbose]

--runs: one process of an application is killed or stopped, in its start, its flow or its drain.
--restart: hosts that are to be started again are killed and stopped several times.
--service: N attacks on the processes of services, the driver among them, which is started again and
adopts. --stream: 10,000 messages of 64 KiB at full speed. --stop: Ctrl-C and SIGTERM at any moment.
--link: two nodes with a slow, lossy or cut link. --soak: two workers serve N attacked applications
one after the other. --soak-service: a service has a fault every 2 s, for that many seconds. --many:
a service with N workers. Beside all of them runs an application of another driver that must lose
nothing. A failing run prints its seed and keeps its logs; --runs 1 --seed S is that run again.
"""
import argparse
import collections
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

import attack
import links
import many
import relay
import restarts
import service
import soak
import stream
import world

TRIES = 3


class Table:
    """How the runs went, by phase and victim."""

    def __init__(self):
        self.cells = collections.defaultdict(lambda: [0, 0, 0, 0.0])

    def add(self, phase, victim, ok, took_s, promised_s=float("inf")):
        cell = self.cells[phase, victim]
        cell[0] += 1
        cell[1] += not ok
        cell[2] += took_s > promised_s
        cell[3] = max(cell[3], took_s)

    def count(self, phase):
        return sum(c[0] for (p, _), c in self.cells.items() if p == phase)

    def show(self):
        """late: ended in order, but later than is promised; a busy machine may do that."""
        print("%-6s %-20s %5s %7s %5s %9s" % ("phase", "victim", "runs", "failed", "late", "slowest"))
        for (phase, victim), (runs, failed, late, slowest) in sorted(self.cells.items()):
            print("%-6s %-20s %5d %7d %5d %7.2f s" % (phase, victim, runs, failed, late, slowest))


class Session:
    def __init__(self, options):
        self.options = options
        self.failed = self.repeated = 0
        self.hits = collections.Counter()
        self.watch = world.Watch()
        self.table = Table()
        self.scratch = tempfile.mkdtemp(prefix="frag-torture-")

    def say(self, text):
        if self.options.verbose:
            print("  " + text, flush=True)

    def keep(self, run, label, seed, words):
        folder = os.path.join(self.options.logs, "%s-%d" % (label, seed))
        run.keep(folder, words)
        return folder

    def once(self, label, run, seed, work):
        """Does work. Returns what it returned, and None or what was wrong."""
        self.watch.worst_s()
        try:
            r = work()
            if self.options.keep:
                self.keep(run, label, seed, run.words)
            return r, None
        except Exception as e:  # whatever it is, the next run follows
            folder = self.keep(run, label, seed, "%s\n\n%s" % (run.words, traceback.format_exc()))
            return None, "%s seed %d: %s\n  %s\n  its logs: %s" % (
                label,
                seed,
                run.words,
                str(e).splitlines()[0] if str(e) else type(e).__name__,
                folder,
            )
        finally:
            run.close()

    def one(self, label, seed, prepare, work):
        """A run; what fails while the machine stands still is done again. Returns the run, its
        result, if it went well."""
        for again in range(TRIES):
            run = prepare()
            r, wrong = self.once(label, run, seed, lambda: work(run))
            stall_s = self.watch.worst_s()
            if wrong is None:
                return run, r, True
            if again + 1 == TRIES or stall_s < world.DEAD_MS / 4000:
                break
            self.repeated += 1
            print("again, for the machine stood still for %.1f s: %s" % (stall_s, wrong), flush=True)
        self.failed += 1
        print("FAILED " + wrong, flush=True)
        return run, None, False

    def attacks(self, count, seed, idle, bystander):
        clip = (
            world.make_clip(os.path.join(self.scratch, "clip.mp4")) if world.have_video() else None
        )
        seeds = [itertools.count(seed + i, len(attack.PHASES)) for i in range(len(attack.PHASES))]
        phases = [attack.PHASES[(seed + i) % len(attack.PHASES)] for i in range(len(attack.PHASES))]
        done = spare = 0
        while done < count and spare <= count:
            # Some moments slip into the next phase: the one with the fewest so far is next.
            fewest = min(range(len(phases)), key=lambda i: self.table.count(phases[i]))
            plan = attack.Plan(next(seeds[fewest]), clip is not None)
            started = time.monotonic()
            run, _, ok = self.one(
                "attack",
                plan.seed,
                lambda: attack.Attack().prepare(plan, clip, idle),
                lambda r: r.run_it(),
            )
            bystander.check_goes_on()
            phase = run.phase or plan.phase
            self.table.add(
                phase, plan.victim + " " + plan.deed, ok, run.took_s, attack.PROMISED_S[plan.deed]
            )
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

    def restarts(self, count, seed, bystander):
        times = []
        for i in range(count):
            run, took_s, ok = self.one(
                "restart",
                seed + i,
                lambda: restarts.Restarts().prepare(seed + i),
                lambda r: r.run_it(),
            )
            bystander.check_goes_on()
            if ok:
                times.append(took_s)
                self.say("%s: %.2f s" % (run.words, took_s))
        if times:
            times.sort()
            print("%d of %d applications went on after their hosts died; median %.2f s, slowest %.2f s after the last death" %
                  (len(times), count, times[len(times) // 2], times[-1]))

    def services(self, count, seed, bystander):
        times, attacks = [], 0
        while attacks < count:
            run, took_s, ok = self.one(
                "service",
                seed,
                lambda: service.Service().prepare(seed),
                lambda r: r.run_it(),
            )
            bystander.check_goes_on()
            attacks += sum(map(len, run.blows))
            for what, n in run.hits.items():
                self.hits[what] += n
            if ok:
                times.append(took_s)
                self.say("%s: %.2f s" % (run.words, took_s))
            seed += 1
        if times:
            times.sort()
            hits = ", ".join("%s %d" % hit for hit in sorted(self.hits.items()))
            print("%d services recovered from %d attacks (%s); median %.2f s, slowest %.2f s after a blow" %
                  (len(times), sum(self.hits.values()), hits, times[len(times) // 2], times[-1]))

    def streams(self, count):
        times = []
        for i in range(count):
            run, took_s, ok = self.one(
                "stream", i, lambda: stream.Stream().prepare(("shm", "ucx")[i % 2]), lambda r: r.run_it()
            )
            if ok:
                times.append(took_s)
                self.say("%d of %d: %.2f s" % (i + 1, count, took_s))
        if times:
            times.sort()
            print(
                "%d of %d streams of %d messages of %d KiB complete; median %.2f s, slowest %.2f s"
                % (
                    len(times),
                    count,
                    stream.MESSAGES,
                    stream.BYTES // 1024,
                    times[len(times) // 2],
                    times[-1],
                )
            )

    def stops(self, count, seed):
        times = []
        for i in range(count):
            run, took_s, ok = self.one(
                "stop", seed + i, lambda: stream.Stop().prepare(seed + i), lambda r: r.run_it()
            )
            if ok:
                times.append(took_s)
                self.say("seed %d: %s: %.2f s" % (seed + i, run.words, took_s))
        if times:
            times.sort()
            print("%d of %d stops lost nothing; median %.2f s, slowest %.2f s" %
                  (len(times), count, times[len(times) // 2], times[-1]))

    def links(self, count, seed):
        lacks = relay.why_not()
        if lacks:
            print("links are not tried, for this machine gives no network namespaces with tun devices: " + lacks)
            return
        for i in range(count):
            run, took_s, ok = self.one(
                "link", seed + i, lambda: links.Links().prepare(seed + i), lambda r: r.run_it()
            )
            self.table.add("link", "%s in %s" % (run.deed, run.moment), ok, took_s or 0.0)
            if ok:
                self.say("seed %d: %s: %.2f s" % (seed + i, run.words, took_s))

    def soak(self, count, seed, idle):
        run, took_s, ok = self.one(
            "soak",
            seed,
            lambda: soak.Soak().prepare_rounds(count, seed, idle),
            lambda r: r.run_rounds(),
        )
        if ok:
            print("two workers served %d attacked applications in %.0f s and kept nothing of them" % (count, took_s))

    def soak_service(self, seconds, seed):
        run, found, ok = self.one(
            "soak-service",
            seed,
            lambda: soak.ServiceSoak().prepare_for(seconds, seed),
            lambda r: r.run_for(),
        )
        self.hits.update(run.hits)
        if ok:
            print("\n".join(found))

    def many(self, count, seed):
        run, took, ok = self.one(
            "many", seed, lambda: many.Many().prepare_many(count, seed), lambda r: r.run_it()
        )
        if ok:
            print("%d workers: %s" % (count, took))

    def run(self):
        o = self.options
        idle = world.idle_worker()
        bystander = world.Bystander()
        load = world.Load(o.load)
        try:
            if o.runs:
                self.attacks(o.runs, o.seed, idle, bystander)
            if o.restart:
                self.restarts(o.restart, o.seed, bystander)
            if o.service:
                self.services(o.service, o.seed, bystander)
            if o.stream:
                self.streams(o.stream)
            if o.stop:
                self.stops(o.stop, o.seed)
            if o.link:
                self.links(o.link, o.seed)
            if o.soak:
                self.soak(o.soak, o.seed, idle)
            if o.many:
                self.many(o.many, o.seed)
            if o.soak_service:
                self.soak_service(o.soak_service, o.seed)
            load.end()
            print("the bystander lost none of its %d messages" % bystander.end())
        finally:
            load.end()
            self.watch.end()
            bystander.world.close()
            shutil.rmtree(self.scratch, True)
        if o.runs or o.link:
            self.table.show()
        return self.failed

    def account(self, took_s):
        """All of it in a line."""
        o = self.options
        tried = []
        if o.runs:
            phases = [(self.table.count(phase), phase) for phase in (*attack.PHASES, "after")]
            tried.append("%d attacks (%s)" % (sum(n for n, _ in phases), ", ".join("%d in %s" % p for p in phases if p[0])))
        if o.link:
            tried.append("%d of %d links" % (self.table.count("link"), o.link))
        tried += ["%d %s" % (n, what) for n, what in
                  ((o.restart, "restarts"), (sum(self.hits.values()), "attacks on services"), (o.stream, "streams"), (o.stop, "stops"), (o.soak, "applications in a soak"), (o.many, "workers of a service")) if n]
        return "torture: %s, %d failed, %d done again, seed %d, in %.0f s" % (
            ", ".join(tried), self.failed, self.repeated, o.seed, took_s)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--runs", type=int, default=0)
    p.add_argument("--restart", type=int, default=0)
    p.add_argument("--service", type=int, default=0)
    p.add_argument("--stream", type=int, default=0)
    p.add_argument("--stop", type=int, default=0)
    p.add_argument("--link", type=int, default=0)
    p.add_argument("--soak", type=int, default=0)
    p.add_argument("--soak-service", type=int, default=0)
    p.add_argument("--many", type=int, default=0)
    p.add_argument("--seed", type=int, default=None)
    p.add_argument("--load", type=int, default=os.cpu_count())
    p.add_argument("--logs", default=os.path.join(world.cluster.BUILD, "torture"))
    p.add_argument("--keep", action="store_true", help="logs of runs that went well, too")
    p.add_argument("--verbose", action="store_true")
    options = p.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1000000)
    if not any((options.runs, options.restart, options.service, options.stream, options.stop,
                options.link, options.soak, options.soak_service, options.many)):
        options.runs = 20
    started = time.monotonic()
    session = Session(options)
    failed = session.run()
    print(session.account(time.monotonic() - started))
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
