#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# checkers.sh FOLDER --sanitized|--threads|--valgrind WORD COMPILER...: builds test_faulty.c, whose
# tests pass but leak and race, and shows that tests/run.py fails them with a report that contains
# WORD.
set -eu
folder=$1 checker=$2 word=$3
shift 3
mkdir -p "$folder/tests/checkers"
"$@" -o "$folder/tests/checkers/test_faulty" "$(dirname "$0")/test_faulty.c"
if python3 "$(dirname "$0")/../run.py" --build "$folder" "$checker" --only checkers/test_faulty >"$folder/log" 2>&1 ||
	! grep -q "$word" "$folder/log"; then
	cat "$folder/log"
	echo "checkers: tests/run.py $checker does not see what is planted" >&2
	exit 1
fi
