# SPDX-License-Identifier: Apache-2.0
"""python -m frag.host: a host of workerd, in the place of fraghost, for fragments in Python."""
import os
import sys

from . import _frag
from ._failure import Error, print_tracebacks


def main():
    print_tracebacks()
    # Operators' lines are to appear when they are printed.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)
    try:
        status = _frag.host()
    except Error as error:
        print("frag.host: %s" % error, file=sys.stderr)
        return 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # threads of operators do not keep the process


if __name__ == "__main__":
    sys.exit(main())
