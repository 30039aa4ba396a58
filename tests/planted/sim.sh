#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each fault of sim.txt in a copy of the tree and shows that the simulator finds it.
# usage: tests/planted/sim.sh [NAME...]     B: the build folder, default build; RUNS: seeds for
#                             each, default as many as make check takes
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
kind=sim
runs=${RUNS:-10800}
b=${B:-build}

plant_build() {
	make -s -C "$scratch" B="$b" WERROR= CFLAGS="-O2 -g -w" "$b/tests/sim/sim"
}

plant_notice() {
	local status=0 found
	"$scratch/$b/tests/sim/sim" --runs "$runs" >"$scratch.log" 2>&1 || status=$?
	found=$(sed -n 's/^seed \([0-9]*\): \([^:]*\): .*/seed \1: \2/p' "$scratch.log" | head -1)
	if [ -n "$found" ]; then
		echo "$found"
	elif grep -q ': Assertion ' "$scratch.log"; then
		sed -n "s/^.*: \([^ :]*\):[0-9]*: .*: Assertion .\(.*\). failed.*/assert in \1: \2/p" "$scratch.log" |
			head -1
	elif [ $status != 0 ]; then
		echo "a seed up to $runs: it crashes: $(grep -m 1 -e 'ssertion' -e 'illegal' "$scratch.log")"
	else
		echo "nothing within $runs seeds"
		return 1
	fi
}

names=$(plant_names "$@") || exit
make -s B="$b" "$b/tests/sim/sim" || exit 1
plant_copy "$b/obj" "$b/gen"
plant_each $names
