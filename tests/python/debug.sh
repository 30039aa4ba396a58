#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# debug.sh BUILD: all tests with a debug build of Python and an extension with sanitizers, and the
# references that are left of a million messages and of many runs.
set -eu
build=$(realpath "$1")
cd "$(dirname "$0")"
export ASAN_OPTIONS=detect_leaks=0 PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$build/python"
export FRAG_PY_RUNS="${FRAG_PY_RUNS:-10000}" FRAG_PY_MESSAGES="${FRAG_PY_MESSAGES:-1000000}"
export LD_PRELOAD="$("${CC:-gcc}" -print-file-name=libasan.so)"
python3-dbg -c 'import sys, pathlib, frag._frag as f
symbols = pathlib.Path(f.__file__).read_bytes()
assert hasattr(sys, "gettotalrefcount") and b"__asan" in symbols and b"_Py_IncRef" in symbols'
python3-dbg -X dev -m unittest
echo "python-debug: holds"
