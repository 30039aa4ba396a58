# SPDX-License-Identifier: Apache-2.0
"""What benchmarks measure, as rows of a table: series of values beside the floor of the same run
and the target."""
import json
import os
import statistics
import subprocess
import sys
import time


class Row:
    """Series of one figure; the first, which warms up, is dropped. floor: a Row or a number;
    target: of the floor's median."""

    def __init__(self, name, unit, floor=None, target=None, more_is_better=False, own=False):
        self.name, self.unit, self.floor, self.target = name, unit, floor, target
        self.more_is_better, self.own = more_is_better, own
        self.values, self.dropped = [], 0

    def add(self, value):
        if self.dropped < Bench.drop:
            self.dropped += 1
        else:
            self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def floor_median(self):
        if isinstance(self.floor, Row):
            return self.floor.median if self.floor.values else None
        return self.floor

    @property
    def target_value(self):
        if callable(self.target):
            return None if self.floor_median is None else self.target(self.floor_median)
        return self.target

    def verdict(self):
        target = self.target_value
        if target is None:
            return ""
        if self.median <= target if not self.more_is_better else self.median >= target:
            return "met"
        noise = (
            max(self.floor.values) - min(self.floor.values) if isinstance(self.floor, Row) else 0
        )
        near = target - noise if self.more_is_better else target + noise
        within = self.median <= near if not self.more_is_better else self.median >= near
        return "missed, by less than the floor's spread of %s" % figure(noise) if within else "missed"

    def line(self):
        return "%-36s %-8s %10s [%s..%s]%s%s" % (
            self.name,
            self.unit,
            figure(self.median),
            figure(min(self.values)),
            figure(max(self.values)),
            "" if self.floor_median is None else "   floor %s" % figure(self.floor_median),
            (
                ""
                if self.target_value is None
                else "   target %s %s: %s"
                % (">=" if self.more_is_better else "<=", figure(self.target_value), self.verdict())
            ),
        )

    def cells(self):
        """The same as a row of a Markdown table."""
        return "| %s | %s | %s [%s..%s] | %s | %s |" % (
            self.name, self.unit, figure(self.median), figure(min(self.values)),
            figure(max(self.values)),
            "" if self.floor_median is None else figure(self.floor_median),
            "" if self.target_value is None else "%s %s: %s" % (
                ">=" if self.more_is_better else "<=", figure(self.target_value), self.verdict()))

    def json(self):
        return {"name": self.name, "unit": self.unit, "median": self.median, "min": min(self.values),
                "max": max(self.values), "floor": self.floor_median, "target": self.target_value}


def figure(x):
    return "%d" % round(x) if abs(x) >= 1000 or x == 0 else "%.4g" % x if abs(x) < 1 else "%.1f" % x


class Bench:
    """Where the programs are, and the rows of a run."""
    drop = 1

    def __init__(self, build, series, headline):
        self.build, self.series, self.headline = os.path.abspath(build), series, headline
        self.rows = []
        self.missing = []
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("FRAG_", "UCX_"))}

    def path(self, *names):
        return os.path.join(self.build, *names)

    def row(self, name, unit, **more):
        self.rows.append(Row(name, unit, **more))
        return self.rows[-1]

    def lack(self, what):
        if what not in self.missing:
            self.missing.append(what)

    def figures(self, program, *args, cores=None, timeout=120, env=None):
        """The numbers in the last line that a program of build/bench prints."""
        r = subprocess.run(
            [self.path("bench", program), *map(str, args)],
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout,
            env=dict(self.env, **(env or {})),
            preexec_fn=pin(cores),
            check=True,
        )
        return [float(x) for x in r.stdout.splitlines()[-1].split()]

    def rounds(self):
        """Numbers the series; says on a terminal how far it is."""
        for i in range(self.series + self.drop):
            if sys.stderr.isatty():
                print("\r  series %d of %d " % (i + 1, self.series + self.drop), end="", file=sys.stderr, flush=True)
            yield i
        if sys.stderr.isatty():
            print("\r                      \r", end="", file=sys.stderr, flush=True)

    def show(self, since):
        for row in self.rows[since:]:
            if row.values:
                print(row.line(), flush=True)

    def save(self):
        """Writes BUILD/bench.json and, under the headline, BUILD/bench.md."""
        rows = [r for r in self.rows if r.values]
        with open(self.path("bench.json"), "w", encoding="utf-8") as f:
            json.dump([r.json() for r in rows], f, indent=1)
            f.write("\n")
        with open(self.path("bench.md"), "w", encoding="utf-8") as f:
            f.write("# %s\n\n" % self.headline)
            f.write("| figure | unit | median [min..max] | floor | target |\n|---|---|---|---|---|\n")
            f.writelines(r.cells() + "\n" for r in rows)


def pin(cores):
    return None if cores is None else lambda: os.sched_setaffinity(0, cores)


def now_ns():
    """The clock of the operators in libbench.so."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
