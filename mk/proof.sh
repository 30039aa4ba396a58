#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# proof.sh proof|nightly: runs its steps one after the other, stops at the first that fails, and ends with what each took.
# proof is what every submission passes after make check; nightly the long form of everything.
set -eu
cd "$(dirname "$0")/.."
mkdir -p build
times=build/$1.txt
: >"$times"

step() {
	name=$1
	shift
	echo "$run: $name: $*"
	begin=$(date +%s)
	if ! "$@"; then
		echo "$run: $name failed: $*" >&2
		exit 1
	fi
	printf '%6d s  %s\n' $(($(date +%s) - begin)) "$name" >>"$times"
}

run=$1
case $run in
proof)
	step sim make -s sim RUNS=10000
	step faults tests/sim/faults.sh wrong_transition timer_not_cancelled epoch_not_compared_worker
	step fuzz make -s fuzz TIME=10
	step asan make -s asan
	step tsan make -s tsan
	step instructions make -s bench-instructions
	step torture make -s torture RUNS=20
	;;
nightly)
	step lint make -s lint
	step builds tests/builds.sh
	step sim make -s sim RUNS=1000000
	step faults tests/sim/faults.sh
	step fuzz make -s fuzz TIME=600
	step fuzz-coverage make -s fuzz-coverage
	step planted tests/fuzz/planted.sh
	step asan make -s asan
	step coverage make -s coverage
	step tsan make -s tsan
	step valgrind make -s valgrind
	step aarch64 make -s aarch64
	step torture make -s torture RUNS=1000
	step bench make -s bench
	;;
*)
	echo "usage: mk/proof.sh proof|nightly" >&2
	exit 2
	;;
esac
echo "$run: all of it passed"
cat "$times"
