# SPDX-License-Identifier: Apache-2.0
"""What encryption costs a stream between two hosts: the same messages plain and encrypted, and
AES-256-GCM alone (`openssl speed`, blocks of the same size), in turns."""
import os
import re
import shutil
import subprocess

from part_edge import COUNTS, SIZES, STREAM, app
from rows import pin

MODE = "busy_poll"
MEASURED = (64 << 10, 8 << 20)
ENCRYPTED = STREAM.replace("capacity:", "encrypt: on, capacity:")


def openssl(size):
    """MB/s of one core."""
    command = "openssl speed -elapsed -seconds 1 -evp aes-256-gcm -bytes".split() + [str(size)]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                       timeout=60, preexec_fn=pin({0}), check=True)
    return float(re.search(r"(?m)^AES-256-GCM +([0-9.]+)k", r.stdout, re.I).group(1)) / 1e3


def stream(bench, text, size):
    """MB/s."""
    count, first, last = app(bench, text, MODE, size, COUNTS[size][2])
    return (count - 1) * size * 1e3 / (last - first)


def run(bench):
    have_openssl = shutil.which("openssl") is not None
    if not have_openssl:
        bench.lack("openssl, whose speed is the floor of encryption")
    for module in ("ucx", "crypto"):
        if not os.path.exists(bench.path("lib/frag/modules", module + ".so")):
            bench.lack("encrypted edges: built without " + module)
            return
    if len(os.sched_getaffinity(0)) < 2:
        bench.lack("encrypted edges: they need two cores")
        return
    rows = {}
    for size in MEASURED:
        rows[size, "openssl"] = bench.row("openssl.aes-256-gcm.%s" % SIZES[size], "MB/s", more_is_better=True)
        rows[size, "plain"] = bench.row("encrypted.%s.plain" % SIZES[size], "MB/s", more_is_better=True)
        rows[size, "encrypted"] = bench.row("encrypted.%s" % SIZES[size], "MB/s", floor=rows[size, "plain"],
                                            more_is_better=True)
    for _ in bench.rounds():
        for size in MEASURED:
            if have_openssl:
                rows[size, "openssl"].add(openssl(size))
            rows[size, "plain"].add(stream(bench, STREAM, size))
            rows[size, "encrypted"].add(stream(bench, ENCRYPTED, size))
