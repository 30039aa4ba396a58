#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Takes features away, one after the other, in a copy of the tree, and shows that one of the tests
# of its row in docs/features.tests fails, or the one that the mistake names. The row ROW or
# ROW-WHAT of features.txt takes away the feature of that row or a part of it.
# usage: tests/planted/features.sh [COUNT|all|ROW...|NAME...]     COUNT at random, default 10, with
#                                  SEED (default: a new one)
#        B: the build folder, default build
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
kind=features
b=${B:-build}

# features_tests NAME...: the tests that these mistakes name, or all of their features
features_tests() {
	local name named
	for name; do
		named=$(tests/planted/table.py get features "$name" test) || return
		if [ -n "$named" ]; then
			echo "$named"
		else
			tests/planted/features.py "${name%%-*}"
		fi
	done | sort -u
}

features_run() {
	(cd "$scratch" && tests/run.py --build "$b" --tests "$@")
}

features_build() {
	(cd "$scratch" && make -s -j"$(nproc)" B="$b" WERROR= CFLAGS="-O2 -g -w" $(tests/run.py --build "$b" --targets --tests "$@"))
}

plant_build() {
	features_build $(features_tests "$1")
}

plant_notice() {
	local tests failed
	tests=$(features_tests "$1")
	features_run $tests >"$scratch.log" 2>&1
	failed=$(sed -n 's/^failed: //p' "$scratch.log" | grep -Fx -f <(echo "$tests"))
	echo $failed
	[ -n "$failed" ]
}

case ${1:-10} in
all)
	names=$(plant_names) || exit
	;;
[0-9]*)
	seed=${SEED:-$RANDOM}
	echo "SEED=$seed $0 ${1:-10}"
	names=$(plant_names | shuf -n "${1:-10}" --random-source=<(yes "$seed")) || exit
	;;
*)
	all=$(plant_all) || exit
	names=
	for word; do
		names+=" $(grep -E -e "^$word(-.*)?$" <<<"$all" || echo "$word")"
	done
	names=$(plant_names $names) || exit
	;;
esac
make -s -j"$(nproc)" B="$b" tests || exit 1
plant_copy "$b"
# What fails anyhow notices nothing.
tests=$(features_tests $names) || exit 1
if ! features_build $tests >"$scratch.log" 2>&1 || ! features_run $tests >>"$scratch.log" 2>&1; then
	cat "$scratch.log"
	echo "$0: the tests fail before anything is broken; mend that first" >&2
	rm -f "$scratch.log"
	exit 1
fi
plant_each $names
