# SPDX-License-Identifier: Apache-2.0
# Completion of fragctl for bash. fragctl itself knows what may follow.
_fragctl()
{
	local IFS=$'\n' typed=${COMP_WORDS[COMP_CWORD]#[\'\"]} candidate prefix file

	[ "$typed" != = ] || typed=
	COMPREPLY=()
	for candidate in $("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
		case $candidate in
		:files:*)
			prefix=${candidate#:files:}
			[ -n "$prefix" ] || compopt -o filenames 2>/dev/null
			for file in $(compgen -f -- "${typed#"$prefix"}"); do
				COMPREPLY+=("$prefix$file")
			done
			;;
		*=)
			compopt -o nospace 2>/dev/null
			COMPREPLY+=("$candidate")
			;;
		*)
			COMPREPLY+=("$candidate")
			;;
		esac
	done
}
complete -F _fragctl fragctl
