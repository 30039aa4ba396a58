#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# proof.sh proof|nightly [STEP...]: runs its steps, or those named, one after the other, each into build/RUN/STEP.log, and ends with
# a table of them. proof is what every submission passes after make check, and stops at the first step that fails; nightly, the
# long form of everything, goes on to the end. What nightly passed for this very commit (nothing uncommitted) is not run again,
# so that it goes on after an interruption; an empty build/nightly begins anew.
set -eu
cd "$(dirname "$0")/.."
run=${1:-}
# A step a line: NAME COMMAND...
case $run in
proof)
	steps='patches tests/planted/features.py --patches
sim make -s sim RUNS=10000
faults tests/planted/sim.sh wrong_transition timer_not_cancelled epoch_not_compared_worker
fuzz make -s fuzz TIME=10
asan make -s asan
call-sites make -s faults
tsan make -s tsan
instructions make -s bench-instructions
torture make -s torture RUNS=20 LINK=4'
	;;
nightly)
	steps='lint make -s lint
patches tests/planted/features.py --patches
builds tests/builds.sh
sim make -s sim RUNS=1000000
faults tests/planted/sim.sh
fuzz make -s fuzz TIME=600
fuzz-coverage make -s fuzz-coverage
planted tests/planted/fuzz.sh
features tests/planted/features.sh 10
asan make -s asan
call-sites make -s faults
call-sites-asan make -s asan-faults
coverage make -s coverage
tsan make -s tsan
valgrind make -s valgrind
aarch64 make -s aarch64
torture make -s torture RUNS=1000 STREAM=20 STOP=100 LINK=50 SOAK=40
bench make -s bench'
	;;
*)
	echo "usage: mk/proof.sh proof|nightly [STEP...]" >&2
	exit 2
	;;
esac
shift
for word in "$@"; do
	echo "$steps" | grep -q "^$word " || {
		echo "$run: there is no step $word; there are" $(echo "$steps" | cut -d ' ' -f 1) >&2
		exit 2
	}
done
only=" $* " failures=0
logs=build/$run
mk/deps.sh proof

# What a step has to be run again for; empty: always.
state=
if [ "$run" = nightly ] && [ -z "$(git status --porcelain 2>&1)" ]; then
	state=$(git rev-parse HEAD)
fi

row() {
	row=$(printf '%6s s  %-14s %s' "$2" "$1" "$3")
	echo "$row" >>"$logs/table"
	echo "$run: $row"
}

# step NAME COMMAND...
step() {
	name=$1
	shift
	log=$logs/$name.log passed=$logs/$name.passed
	[ "$only" = "  " ] || [ "${only#* $name }" != "$only" ] || return 0
	if [ -n "$state" ] && [ "$(sed -n 1p "$passed" 2>/dev/null)" = "$state" ]; then
		row "$name" "$(sed -n 2p "$passed")" "passed before: $(tail -n 1 "$log")"
		return 0
	fi
	rm -f "$passed"
	echo "$run: $name: $*"
	begin=$(date +%s)
	if "$@" >"$log" 2>&1; then
		took=$(($(date +%s) - begin))
		[ -z "$state" ] || printf '%s\n%s\n' "$state" "$took" >"$passed"
		row "$name" "$took" "$(tail -n 1 "$log")"
		return 0
	fi
	tail -n 60 "$log"
	row "$name" $(($(date +%s) - begin)) "FAILED: $*; all it wrote is in $log"
	failures=$((failures + 1))
	[ "$run" = nightly ] || finish
}

finish() {
	echo "$run:"
	cat "$logs/table"
	if [ "$failures" != 0 ]; then
		echo "$run: $failures failed"
		exit 1
	fi
	echo "$run: all of it passed"
	exit 0
}

mkdir -p "$logs"
: >"$logs/table"
while read -r name command; do
	step "$name" $command </dev/null
done <<END
$steps
END
finish
