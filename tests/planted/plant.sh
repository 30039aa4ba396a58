# SPDX-License-Identifier: Apache-2.0
# Plants faults in a copy of the tree, one after the other, and shows that each is noticed. A fault
# is a row of KIND.txt (table.py says how it is written). sim.sh, oracle.sh, fuzz.sh, races.sh and
# features.sh in this folder source this and define
#   kind                the table
#   plant_build NAME    builds the copy, $scratch; what it prints is shown when it fails
#   plant_notice NAME   prints what noticed the fault, in a few words; fails when nothing did
# recipes.sh does the same with patches that must work: it defines the four functions for a row
# (plant_do, plant_undo, plant_title, plant_all) itself, and says so with other words:
#   plant_good, plant_bad    what is printed for a patch that was noticed, or not

# plant_do NAME, plant_undo NAME: make the mistake in the copy, and take it out again
plant_do() {
	tests/planted/table.py plant "$kind" "$1" "$scratch"
}

plant_undo() {
	tests/planted/table.py mend "$kind" "$1" "$scratch"
}

# plant_title NAME: what the mistake is
plant_title() {
	tests/planted/table.py title "$kind" "$1"
}

# plant_all: the names of all faults
plant_all() {
	tests/planted/table.py names "$kind"
}

# plant_copy FOLDER...: the tree, and those folders of a build in it, so that each fault costs few
# compilations
plant_copy() {
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/frag-plant-XXXXXX") || exit 1
	trap 'rm -rf "$scratch" "$scratch.log"' EXIT
	trap 'exit 130' INT TERM
	export GIT_CEILING_DIRECTORIES=${scratch%/*} # the copy belongs to no repository
	git ls-files -z --cached --others --exclude-standard |
		xargs -0 cp -a --parents -t "$scratch" || exit 1
	for folder; do
		[ ! -d "$folder" ] || cp -a --parents -t "$scratch" "$folder" || exit 1
	done
}

# plant_each NAME...: 0 when every fault was noticed
plant_each() {
	local name result by noticed=0 other=0
	for name; do
		by=
		if ! plant_do "$name" 2>"$scratch.log"; then
			result=STALE
			by=$(cat "$scratch.log")
		else
			if ! plant_build "$name" >"$scratch.log" 2>&1; then
				result=UNBUILT
				by=$(grep -m 1 'error' "$scratch.log")
			elif by=$(plant_notice "$name"); then
				result=${plant_good:-noticed}
			else
				result=${plant_bad:-MISSED}
			fi
			plant_undo "$name" || exit 1
		fi
		if [ "$result" = "${plant_good:-noticed}" ]; then
			noticed=$((noticed + 1))
		else
			other=$((other + 1))
		fi
		printf '%-34s %-8s %s: %s\n' "$name" "$result" "$(plant_title "$name")" "${by:-nothing}"
		rm -f "$scratch.log"
	done
	echo "$noticed ${plant_good:-noticed}, $other not"
	[ $other = 0 ]
}

# plant_names [NAME...]: the names of all faults, or those given, which must be there
plant_names() {
	local name all
	all=$(plant_all) || return
	for name in ${*:-$all}; do
		if ! grep -Fqx -e "$name" <<<"$all"; then
			echo "$0: no fault $name; those there are: $(echo $all)" >&2
			return 2
		fi
		echo "$name"
	done
}
