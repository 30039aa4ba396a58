#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# net.sh FOLDER --sanitized|--threads|--valgrind WORD COMPILER...: shows that tests/run.py fails tests which pass and leak or race
# (faulty.c), and that the report says WORD.
set -eu
folder=$1 checker=$2 word=$3
shift 3
mkdir -p "$folder/tests/unit"
"$@" -o "$folder/tests/unit/test_faulty" "$(dirname "$0")/faulty.c"
if python3 "$(dirname "$0")/../run.py" --build "$folder" "$checker" --only unit/test_faulty >"$folder/log" 2>&1 ||
	! grep -q "$word" "$folder/log"; then
	cat "$folder/log"
	echo "net: tests/run.py $checker does not see what is planted" >&2
	exit 1
fi
