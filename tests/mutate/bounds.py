# SPDX-License-Identifier: Apache-2.0
"""Ends what a mutant makes allocate or write without end.

Limits of resources are no way to do so: where the address space or the files of hosts are limited,
they share no memory, and no test of that could notice anything.
"""
import os
import signal
import threading
import time

MEMORY_MAX = 6 << 30  # resident
WRITTEN_MAX = 16 << 30  # to files, pipes and sockets
LOOK_S = 0.5
PAGE = os.sysconf("SC_PAGE_SIZE")


def is_beyond(pid):
    with open("/proc/%s/statm" % pid, encoding="utf-8") as f:
        if int(f.read().split()[1]) * PAGE > MEMORY_MAX:
            return True
    with open("/proc/%s/io" % pid, encoding="utf-8") as f:
        return int(f.read().split("wchar: ")[1].split()[0]) > WRITTEN_MAX


def end_beyond(mark):
    """Ends the processes beyond a bound that have the mark in their environment."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if not is_beyond(pid):
                continue
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark in f.read():
                    os.kill(int(pid), signal.SIGKILL)
        except (OSError, ValueError, IndexError):
            pass  # it has ended, or is of somebody else


def watch(mark):
    """Does so from now on."""
    def look():
        while True:
            end_beyond(mark)
            time.sleep(LOOK_S)

    threading.Thread(target=look, daemon=True).start()
