# SPDX-License-Identifier: Apache-2.0
"""Reading graphs: parse and check of a file, and composing in C; both up to where nothing but running is left."""
import os
import tempfile

SIZES = (10, 1000, 10000)
COMPOSED = 100000
STARTED = (1000, 10000, 100000)


def write(path, operators):
    """A line of operators."""
    with open(path, "w", encoding="utf-8") as f:
        f.write("frag: 1\napplication: chain\nextensions: [libbench.so]\noperators:\n"
                "  o0: {type: bench_source, parameters: {count: 1}}\n")
        for i in range(1, operators - 1):
            f.write("  o%d: {type: bench_pass}\n" % i)
        f.write("  o%d: {type: bench_sink}\nflows:\n" % (operators - 1))
        for i in range(operators - 1):
            f.write("  - {from: o%d, to: o%d}\n" % (i, i + 1))


def run(bench):
    kinds = (("", "ms", 0), (".cpu", "ms cpu", 1))
    rows = {}
    for kind, unit, _ in kinds:
        for n in SIZES:
            rows[n, "floor", kind] = bench.row("libyaml.file.%d%s" % (n, kind), unit)
            rows[n, "parse", kind] = bench.row("graph.file.%d.parse%s" % (n, kind), unit, floor=rows[n, "floor", kind])
            rows[n, "build", kind] = bench.row("graph.file.%d.check%s" % (n, kind), unit)
        rows["malloc", kind] = bench.row("malloc.%d%s" % (COMPOSED, kind), unit)
        rows["compose", kind] = bench.row("graph.compose.%d%s" % (COMPOSED, kind), unit, floor=rows["malloc", kind])
        for n in STARTED:
            rows["names", n, kind] = bench.row("operators.%d%s" % (n, kind), unit)
            rows["start", n, kind] = bench.row(
                "graph.start.%d%s" % (n, kind), unit, floor=rows["names", n, kind],
                target=lambda floor: 3 * floor)
    with tempfile.TemporaryDirectory(prefix="frag-bench-") as folder:
        files = {n: os.path.join(folder, "%d.yaml" % n) for n in SIZES}
        for n, path in files.items():
            write(path, n)
        for _ in bench.rounds():
            for n, path in files.items():
                floor, ours = bench.figures("floor", "yaml", path), bench.figures("graph", "file", path)
                for kind, _, i in kinds:
                    rows[n, "floor", kind].add(floor[i])
                    rows[n, "parse", kind].add(ours[2 * i])
                    rows[n, "build", kind].add(ours[2 * i + 1])
            floor, ours = bench.figures("floor", "malloc", COMPOSED), bench.figures("graph", "compose", COMPOSED)
            for n in STARTED:
                names = bench.figures("floor", "operators", n)
                started = bench.figures("graph", "start", n)
                for kind, _, i in kinds:
                    rows["names", n, kind].add(names[i])
                    rows["start", n, kind].add(started[2 * i] + started[2 * i + 1])
            for kind, _, i in kinds:
                rows["malloc", kind].add(floor[i])
                rows["compose", kind].add(ours[2 * i + 1])
