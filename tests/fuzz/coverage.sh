#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# coverage.sh BUILD TARGET...: which share of the lines of what each target fuzzes its corpus
# reaches, by llvm-cov. Fails below 80 %. The programs in BUILD/fuzz are built with
# -fprofile-instr-generate -fcoverage-mapping. FUZZ_MORE names a folder of further corpora
# (build-fuzz/corpus).
set -eu
build=$1
shift
here=$(dirname "$0")
out=$build/coverage
mkdir -p "$out"

# What a target is there for. A file that others use as well counts where it is fuzzed on purpose.
files() {
	text=libfrag/src/text base=libfrag/src/base data=libfrag/src/data
	case $1 in
	control)
		ls proto/wire/*.c | grep -v -e /connection.c -e /tls -e /keys.c -e /cert -e /cred
		;;
	source) echo $text/source_pack.c ;;
	graph) echo $text/node.c $text/spec.c $text/spec_operator.c $text/spec_fragment.c \
		$text/spec_flow.c $text/spec_scheduler.c $text/when.c $text/config.c \
		$text/settings.c $text/fields.c $text/replace.c $text/builder.c ;;
	arguments) echo $base/flags.c $text/arguments.c $text/sets.c driverd/options.c \
		workerd/options.c ;;
	units) echo $base/units.c $base/address.c $base/suggest.c ;;
	value) echo $data/value.c $data/metadata.c $data/stream.c ;;
	message) echo libfrag/src/data/codec.c libfrag/src/edge/remote/header.h ;;
	tls) echo proto/wire/tls.c proto/wire/keys.c ;;
	ledger) echo libfrag/src/edge/ledger.c workerd/page.c ;;
	remote) ls libfrag/src/edge/remote/*.c | grep -v -e /bodies.c -e /seal.c ;;
	sealed) echo libfrag/src/edge/remote/seal.c libfrag/modules/crypto/aead.c ;;
	shm) ls libfrag/modules/shm/*.c | grep -v -e /shm.c -e /bell.c -e /heap.c -e /address.c ;;
	ucx) ls libfrag/modules/ucx/*.c | grep -v -e /ucx.c -e /sockets.c -e /gate.c \
		-e /preface.c ;;
	preface) echo libfrag/modules/ucx/preface.c ;;
	esac
}

status=0
for target; do
	"$here/corpus.py" unpack "$target" "$build/inputs/$target"
	set -- "$build/inputs/$target"/* $([ ! -d "${FUZZ_MORE:-}/$target" ] || find "$FUZZ_MORE/$target" -type f)
	LLVM_PROFILE_FILE=$out/$target.raw "$build/fuzz/$target" -timeout=60 "$@" >"$out/$target.log" 2>&1 || {
		tail -5 "$out/$target.log" >&2
		exit 1
	}
	llvm-profdata merge -o "$out/$target.prof" "$out/$target.raw"
	# shellcheck disable=SC2046
	llvm-cov export -summary-only -instr-profile="$out/$target.prof" "$build/fuzz/$target" $(files "$target") \
		>"$out/$target.json"
	python3 - "$target" "$out/$target.json" <<'END' || status=1
import json, os, sys
target, path = sys.argv[1:]
data = json.load(open(path))["data"][0]
rows = [(os.path.relpath(f["filename"]), f["summary"]["lines"]) for f in data["files"]]
total = sum(l["count"] for _, l in rows)
covered = sum(l["covered"] for _, l in rows)
percent = 100.0 * covered / max(total, 1)
print("%-10s %5.1f %% of %4d lines" % (target, percent, total))
for name, lines in rows:
    if lines["percent"] < 80:
        print("           %5.1f %%  %s" % (lines["percent"], name))
sys.exit(percent < 80)
END
done
[ $status != 0 ] || echo "fuzz-coverage: the corpus of each target reaches 80 % of the lines of what it fuzzes, or more"
exit $status
