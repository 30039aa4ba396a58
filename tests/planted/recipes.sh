#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Follows the recipes of HACKING.md: applies tests/planted/recipes/NAME.patch in a copy of the tree,
# builds it and runs its tests. A patch begins with a line that says what it adds and a line
# `Test: NAME...`. It may touch at most 4 files of the product, that is outside tests/ and docs/.
# Patches that do not meet are built and tested together, because most of them change a header that
# all includes; when that fails, each is tried by itself.
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

# recipe_tests NAME...
recipe_tests() {
	local name
	for name; do
		sed -n 's/^Test: //p' "$scratch/$faults/$name.patch" | grep . || return
	done
}

plant_build() {
	local tests
	tests=$(recipe_tests "$@") || { echo "error: no line Test: in one of $*"; return 1; }
	(cd "$scratch" && make -s -j"$(nproc)" B="$b" CFLAGS="-O0 -g" \
		$(tests/run.py --build "$b" --targets --tests $tests))
}

# Notices that the recipe works, and in how many files.
plant_notice() {
	local tests count
	tests=$(recipe_tests "$1") || return
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

# together NAME...: applies those that do not meet, into taken; the others into left. Then builds
# them and runs their tests; 1 when something failed.
together() {
	local name tests result=0
	taken= left=
	for name; do
		if plant_do "$name" 2>/dev/null; then
			taken="$name $taken"
		else
			left+=" $name"
		fi
	done
	[ -n "$taken" ] || return 1
	if ! plant_build $taken >"$scratch.log" 2>&1; then
		result=1
	else
		tests=$(recipe_tests $taken)
		(cd "$scratch" && tests/run.py --build "$b" --tests $tests) >"$scratch.log" 2>&1 || result=1
	fi
	for name in $taken; do
		plant_undo "$name" || exit 1
	done
	return $result
}

# follow NAME...: 0 when every recipe works
follow() {
	local left=$* taken name count status=0
	while [ -n "$left" ]; do
		if ! together $left; then
			plant_each ${taken:-$left} || status=1
			[ -n "$taken" ] || left=
			continue
		fi
		for name in $taken; do
			count=$(product_files "$faults/$name.patch" | wc -l)
			[ "$count" -le $files_max ] || status=1
			printf '%-34s %s: %s files, at most %s\n' "$name" "$(plant_title "$name")" "$count" $files_max
		done
		tail -n 1 "$scratch.log"
	done
	return $status
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
follow $names
