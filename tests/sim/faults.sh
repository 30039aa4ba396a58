#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each fault of tests/sim/faults in a copy of the tree and shows that the simulator finds it.
# usage: tests/sim/faults.sh [NAME...]     RUNS: seeds for each, default 10000; B: the build folder, default build
set -u
cd "$(dirname "$0")/../.." || exit 1
runs=${RUNS:-10000}
b=${B:-build}
make -s B="$b" "$b/tests/sim/sim" || exit 1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/frag-faults-XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/$b/tests/sim"
git ls-files -z -- Makefile mk libfrag proto driverd workerd fragctl tests examples | xargs -0 cp -a --parents -t "$scratch"
cp -a "$b/obj" "$scratch/$b/"
cp -a "$b/gen" "$scratch/$b/"

names=("$@")
[ ${#names[@]} -gt 0 ] || names=($(cd tests/sim/faults && ls -- *.patch | sed 's/\.patch$//'))
found=0
missed=0
printf '%-26s %-8s %-20s %s\n' fault seed invariant class
for name in "${names[@]}"; do
	patch=$PWD/tests/sim/faults/$name.patch
	class=$(head -1 "$patch")
	if ! git -C "$scratch" apply "$patch"; then
		printf '%-26s %-8s %-20s %s\n' "$name" - "does not apply" "$class"
		missed=$((missed + 1))
		continue
	fi
	if ! make -s -C "$scratch" B="$b" WERROR= CFLAGS="-O2 -g -w" "$b/tests/sim/sim" >"$scratch/log" 2>&1; then
		seed=-
		invariant="does not build"
	else
		"$scratch/$b/tests/sim/sim" --runs "$runs" >"$scratch/log" 2>&1
		status=$?
		seed=$(sed -n 's/^seed \([0-9]*\): .*/\1/p' "$scratch/log" | head -1)
		invariant=$(sed -n 's/^seed [0-9]*: \([^:]*\): .*/\1/p' "$scratch/log" | head -1)
		if [ -z "$seed" ] && [ $status -ne 0 ]; then
			seed="<=$runs"
			invariant="it crashes"
		fi
	fi
	if [ -n "$seed" ] && [ "$seed" != - ]; then
		found=$((found + 1))
	else
		missed=$((missed + 1))
		[ "$seed" = - ] || invariant="NOT FOUND"
	fi
	printf '%-26s %-8s %-20s %s\n' "$name" "${seed:--}" "$invariant" "$class"
	git -C "$scratch" apply -R "$patch"
done
echo "$found found, $missed not found, within $runs seeds each"
[ $missed -eq 0 ]
