#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""import_time.py PYTHON MS: `import frag` costs at most so many ms of processor time beyond
`python3 -c pass`, at its best of 10 times."""
import resource
import subprocess
import sys


def cost_ms(python, code, env=None):
    best = float("inf")
    for _ in range(10):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([python, "-c", code], env=env, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best * 1e3


def main():
    python, limit = sys.argv[1], float(sys.argv[2])
    ms = cost_ms(python, "import frag") - cost_ms(python, "pass")
    print("import frag: %.1f ms" % ms)
    return 0 if ms <= limit else 1


if __name__ == "__main__":
    sys.exit(main())
