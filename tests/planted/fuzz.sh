#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants the overflow of each fuzz target, the row TARGET of fuzz.txt, in a copy of the tree
# and shows that the target finds it from its committed corpus.
# usage: tests/planted/fuzz.sh [TARGET...]     TIME: seconds for each, default 60
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
kind=fuzz
time=${TIME:-60}

plant_build() {
	make -s -C "$scratch" fuzz-one TARGET="$1"
}

plant_notice() {
	local start=$SECONDS
	if (cd "$scratch" && tests/fuzz/run.sh build-fuzz "$1" "$time" -max_len=8192) >/dev/null 2>&1; then
		echo "nothing within $time s"
		return 1
	fi
	echo "$((SECONDS - start)) s: $(sed -n 's/.*\(AddressSanitizer: [a-zA-Z-]*\|UndefinedBehaviorSanitizer: [a-zA-Z-]*\|libFuzzer: [a-z ]*\).*/\1/p' \
		"$scratch/build-fuzz/found/$1.log" | head -1)"
}

names=$(plant_names "$@") || exit
plant_copy build-fuzz/obj build-fuzz/gen
plant_each $names
