# SPDX-License-Identifier: Apache-2.0
# Plants faults in a copy of the tree, one after the other, and shows that each is noticed. A fault
# is FOLDER/NAME.patch, its first line says what the mistake is. sim.sh, oracle.sh, fuzz.sh and
# features.sh in this folder source this and define
#   faults              the folder
#   plant_build NAME    builds the copy, $scratch; what it prints is shown when it fails
#   plant_notice NAME   prints what noticed the fault, in a few words; fails when nothing did
# recipes.sh does the same with patches that must work, and says so with other words:
#   plant_good, plant_bad    what the table calls a patch that was noticed, or not

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
	local name patch result by noticed=0 other=0
	for name; do
		patch=$scratch/$faults/$name.patch
		by=
		if ! git -C "$scratch" apply "$patch" 2>"$scratch.log"; then
			result=STALE
			by="$faults/$name.patch does not apply: write it anew, for the code as it is now"
		else
			if ! plant_build "$name" >"$scratch.log" 2>&1; then
				result=UNBUILT
				by=$(grep -m 1 'error' "$scratch.log")
			elif by=$(plant_notice "$name"); then
				result=${plant_good:-noticed}
			else
				result=${plant_bad:-MISSED}
			fi
			git -C "$scratch" apply -R "$patch" || exit 1
		fi
		if [ "$result" = "${plant_good:-noticed}" ]; then
			noticed=$((noticed + 1))
		else
			other=$((other + 1))
		fi
		printf '%-34s %-8s %s: %s\n' "$name" "$result" "$(head -1 "$patch")" "${by:-nothing}"
		rm -f "$scratch.log"
	done
	echo "$noticed ${plant_good:-noticed}, $other not"
	[ $other = 0 ]
}

# plant_names [NAME...]: the names of all faults, or those given, which must be there
plant_names() {
	local name
	if [ $# = 0 ]; then
		(cd "$faults" && ls -- *.patch | sed 's/\.patch$//')
		return
	fi
	for name; do
		if [ ! -f "$faults/$name.patch" ]; then
			echo "$0: no fault $name; those there are: $(cd "$faults" && echo *.patch | sed 's/\.patch//g')" >&2
			return 2
		fi
		echo "$name"
	done
}
