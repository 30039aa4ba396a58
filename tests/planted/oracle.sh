#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each fault of oracle.txt in a copy of the tree and shows that the oracle of the schedulers
# finds it.
# usage: tests/planted/oracle.sh [NAME...]  B: the build folder, default build; GRAPHS: for each,
#                                default 2000
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
kind=oracle
graphs=${GRAPHS:-2000}
b=${B:-build}

plant_build() {
	make -s -C "$scratch" B="$b" WERROR= CFLAGS="-O2 -g -w" "$b/tests/oracle/oracle"
}

plant_notice() {
	local status=0
	"$scratch/$b/tests/oracle/oracle" --graphs "$graphs" --jobs 2 --no-shrink >"$scratch.log" 2>&1 ||
		status=$?
	if [ $status != 0 ]; then
		grep -m 1 '^seed' "$scratch.log" || echo "status $status"
		return 0
	fi
	echo "nothing in $graphs graphs"
	return 1
}

names=$(plant_names "$@") || exit
make -s B="$b" "$b/tests/oracle/oracle" || exit 1
plant_copy "$b/obj" "$b/gen"
plant_each $names
