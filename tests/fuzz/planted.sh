#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Plants an overflow (tests/fuzz/planted/TARGET.patch, the first line says what it is) in a copy of the tree for each fuzz
# target and shows that the target finds it within 60 s, from its committed corpus.
# usage: tests/fuzz/planted.sh [TARGET...]    TIME: seconds for each, default 60
set -eu
cd "$(dirname "$0")/../.."
time=${TIME:-60}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/frag-planted-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
git ls-files -z -- Makefile mk libfrag proto driverd workerd fragctl tests examples | xargs -0 cp -a --parents -t "$scratch"
[ $# -gt 0 ] || set -- $(cd tests/fuzz/planted && ls -- *.patch | sed 's/\.patch$//')
# An unplanted build first, so that each fault costs few compilations; what is here already is reused.
if [ -d build-fuzz/obj ]; then
	mkdir "$scratch/build-fuzz"
	cp -a build-fuzz/obj build-fuzz/gen "$scratch/build-fuzz/"
fi
missed=0
for target; do
	patch=$PWD/tests/fuzz/planted/$target.patch
	patch -s -p1 -d "$scratch" <"$patch"
	make -s -C "$scratch" fuzz-one TARGET="$target" >"$scratch/log" 2>&1 || {
		tail -20 "$scratch/log"
		echo "planted: $target does not build"
		exit 1
	}
	start=$(date +%s)
	if (cd "$scratch" && tests/fuzz/run.sh build-fuzz "$target" "$time" -max_len=8192) >"$scratch/log" 2>&1; then
		missed=$((missed + 1))
		found="NOT FOUND within $time s"
	else
		found=$(sed -n 's/.*\(AddressSanitizer: [a-zA-Z-]*\|UndefinedBehaviorSanitizer: [a-zA-Z-]*\|libFuzzer: [a-z ]*\).*/\1/p' \
			"$scratch/build-fuzz/found/$target.log" | head -1)
		found="found after $(($(date +%s) - start)) s: $found"
	fi
	printf '%-10s %-60s %s\n' "$target" "$(head -1 "$patch")" "$found"
	patch -s -R -p1 -d "$scratch" <"$patch"
done
[ "$missed" = 0 ]
