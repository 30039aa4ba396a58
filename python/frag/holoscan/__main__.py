# SPDX-License-Identifier: Apache-2.0
"""python3 -m frag.holoscan APP.py FLAGS...: runs a program of Holoscan on frag."""
import os
import runpy
import sys

from ._finder import install


def main(argv):
    if len(argv) < 2 or argv[1].startswith("-"):
        print("usage: python3 -m frag.holoscan APP.py FLAGS...", file=sys.stderr)
        return 2
    path = argv[1]
    if not os.path.exists(path):
        print("frag.holoscan: there is no file %s" % path, file=sys.stderr)
        return 2
    install()
    sys.argv = argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    runpy.run_path(path, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
