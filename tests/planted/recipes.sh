#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Follows the recipes of HACKING.md: applies each tests/planted/recipes/NAME.patch in a copy of the
# tree, builds it and runs its tests. A patch begins with a line that says what it adds and a line
# `Test: NAME...`. It may touch at most 4 files of the product, that is outside tests/ and docs/.
# usage: tests/planted/recipes.sh [NAME...]     B: the build folder, default build
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
faults=tests/planted/recipes
b=${B:-build}
files_max=4

# product_files PATCH: those that it touches
product_files() {
	git apply --numstat "$1" | cut -f 3 | grep -v -e '^tests/' -e '^docs/' -e '\.md$'
}

recipe_tests() {
	sed -n 's/^Test: //p' "$scratch/$faults/$1.patch"
}

plant_build() {
	local tests
	tests=$(recipe_tests "$1")
	[ -n "$tests" ] || { echo "error: no line Test: in $1.patch"; return 1; }
	(cd "$scratch" && make -s -j"$(nproc)" B="$b" CFLAGS="-O0 -g" \
		$(tests/run.py --build "$b" --targets --tests $tests))
}

# Notices that the recipe works, and in how many files.
plant_notice() {
	local tests count
	tests=$(recipe_tests "$1")
	count=$(product_files "$scratch/$faults/$1.patch" | wc -l)
	if [ "$count" -gt $files_max ]; then
		echo "touches $count files of the product, at most $files_max are allowed"
		return 1
	fi
	if ! (cd "$scratch" && tests/run.py --build "$b" --tests $tests) >"$scratch.log" 2>&1; then
		grep -m 3 -e '^failed: ' -e 'expected' "$scratch.log" | tr '\n' ' '
		return 1
	fi
	echo "$count files, $(tail -n 1 "$scratch.log")"
}

plant_good=works plant_bad=FAILED
plant_do() {
	git -C "$scratch" apply "$faults/$1.patch"
}

plant_undo() {
	git -C "$scratch" apply -R "$faults/$1.patch"
}

plant_title() {
	head -n 1 "$scratch/$faults/$1.patch"
}

plant_all() {
	(cd "$faults" && ls -- *.patch | sed 's/\.patch$//')
}

names=$(plant_names "$@") || exit
make -s -j"$(nproc)" B="$b" all tests || exit 1
plant_copy "$b"
plant_each $names
