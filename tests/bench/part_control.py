# SPDX-License-Identifier: Apache-2.0
"""Control connections on loopback, with a key and without: both ends in one thread."""
JOINS = 200
MESSAGES = 50000


def run(bench):
    join = bench.row("control.join", "us")
    join_tls = bench.row("control.join.tls", "us", floor=join)
    stream = bench.row("control.stream", "/s", more_is_better=True)
    stream_tls = bench.row("control.stream.tls", "/s", floor=stream, more_is_better=True)
    for _ in bench.rounds():
        for what, count, plain, tls in (("join", JOINS, join, join_tls), ("stream", MESSAGES, stream, stream_tls)):
            plain.add(bench.figures("control", what, count)[0])
            tls.add(bench.figures("control", what, count, "tls")[0])
