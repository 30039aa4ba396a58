#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Other ways to build frag, each with the tests that fit: builds.sh [clang|less]...
#   clang   by clang, -Werror as always
#   less    without UCX, OpenSSL's module and FFmpeg: what is missing is named, and the rest works
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- clang less
jobs=$(nproc)

# Every test program below $1/tests that matches the words behind it.
run_tests() {
	build=$1
	shift
	for kind; do
		for t in "$build/tests/$kind"/test_*; do
			[ -x "$t" ] || continue
			"$t" --timeout 120 >"$build/log" 2>&1 || {
				tail -30 "$build/log"
				echo "builds: $t failed"
				exit 1
			}
		done
	done
}

# expect STATUS WORD COMMAND...: it exits so, and says the word.
expect() {
	status=0 want=$1 word=$2
	shift 2
	"$@" >build-less/log 2>&1 || status=$?
	if [ "$status" != "$want" ] || ! grep -q -- "$word" build-less/log; then
		tail -20 build-less/log
		echo "builds: $*: exit $status and not $want, or no word of $word"
		exit 1
	fi
}

# build FOLDER ARGUMENTS...
build() {
	folder=$1
	shift
	mkdir -p "$folder"
	make -s -j"$jobs" B="$folder" "$@" tests >"$folder/build.log" 2>&1 || {
		tail -30 "$folder/build.log"
		echo "builds: $folder does not build"
		exit 1
	}
}

for name; do
	case $name in
	clang)
		build build-clang CC=clang
		run_tests build-clang unit shared operators fuzz
		;;
	less)
		build build-less WITHOUT="ucx crypto video viewer web"
		grep -q "ucx.so is not built" build-less/build.log
		grep -q "crypto.so is not built" build-less/build.log
		grep -q "libvideo.so is not built" build-less/build.log
		grep -q "libviewer.so is not built" build-less/build.log
		grep -q "http.so is not built" build-less/build.log
		run_tests build-less unit shared operators fuzz
		build-less/tests/conformance/test_edge --filter 'inproc/*' >build-less/log 2>&1 || {
			tail -30 build-less/log
			exit 1
		}
		expect 0 "Rx message value: 10" build-less/bin/fragctl run examples/ping_distributed/app.yaml
		expect 3 "the module http is not there" build-less/bin/fragctl web
		expect 3 "transport module ucx" build-less/bin/fragctl run --workers 2 \
			examples/ping_distributed/app.yaml
		printf '%s\n' "frag: 1" "application: pinned" "operators: {tx: {type: ping_tx}}" \
			"extensions: [{name: ./tests/sample_plugins/libgood.so, sha256: $(printf '%064d' 0)}]" \
			>build-less/pinned.yaml
		expect 3 "the module crypto is not there" build-less/bin/fragctl run \
			build-less/pinned.yaml
		expect 2 "video_replayer" build-less/bin/fragctl run \
			examples/video_replayer_distributed/app.yaml
		;;
	*)
		echo "builds: there is no build $name" >&2
		exit 2
		;;
	esac
	echo "builds: $name is fine"
done
