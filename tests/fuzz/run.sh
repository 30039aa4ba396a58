#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD TARGET SECONDS [LIBFUZZER-FLAGS]: fuzzes one target from its corpus, unpacked into
# BUILD/inputs/TARGET. New inputs that reach something new stay in BUILD/corpus/TARGET; an input
# that fails is kept in BUILD/found and printed by name.
set -eu
build=$1 target=$2 seconds=$3
shift 3
here=$(dirname "$0")
mkdir -p "$build/corpus/$target" "$build/found"
"$here/corpus.py" unpack "$target" "$build/inputs/$target"
log=$build/found/$target.log
status=0
"$build/fuzz/$target" -max_total_time="$seconds" -artifact_prefix="$build/found/$target-" -print_final_stats=1 "$@" \
	"$build/corpus/$target" "$build/inputs/$target" >"$log" 2>&1 || status=$?
if [ "$status" != 0 ]; then
	grep -v '^#' "$log" | tail -60
	echo "fuzz: $target failed; the input is named above, the log is $log" >&2
	exit 1
fi
awk -v target="$target" '
	/^#[0-9]+.*cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "corp:") corpus = $(i + 1) } }
	/stat::number_of_executed_units/ { runs = $2 }
	/stat::peak_rss_mb/ { rss = $2 }
	/stat::slowest_unit_time_sec/ { slow = $2 }
	END { printf "fuzz: %-10s %9d runs, %5d edges, corpus %s, slowest %s s, peak %s MB\n", target, runs, cov, corpus, slow, rss }
' "$log"
