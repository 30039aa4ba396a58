#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds make targets and shows how far it is: build.sh TARGET..., with MAKE and B in the
# environment. One updating line on a terminal, a line for each tenth elsewhere.
set -eu
# Each command that makes a file has -o, and make prints it to stdout; what compilers report is on
# stderr.
all=$($MAKE --no-print-directory -n "$@" 2>/dev/null | grep -c -- ' -o ') || all=0
[ "$all" != 0 ] || exec $MAKE --no-print-directory -s "$@"

show() {
	if [ -t 2 ]; then
		printf '\rbuilding: %d of %d files' "$1" "$all" >&2
	elif [ "$1" = 0 ] || [ $(($1 * 10 / all)) != $((($1 - 1) * 10 / all)) ]; then
		printf 'building: %d of %d files\n' "$1" "$all" >&2
	fi
}

watch() {
	done=0
	while read -r line; do
		case $line in
		*" -o "*) done=$((done + 1)) && show $done ;;
		"exit status "*) break ;;
		esac
	done
	[ ! -t 2 ] || echo >&2
	return "${line##* }"
}

echo "building into $B" >&2
show 0
{
	$MAKE --no-print-directory -j"$(nproc)" "$@" && echo "exit status 0" || echo "exit status $?"
} | watch
