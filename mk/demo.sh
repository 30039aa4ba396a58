#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs driverd and two workerd as processes of this machine. One fragment decodes a video in real
# time, the other finds what moves in it. They use any free port, or that of FRAG_ADDRESS.
set -eu
B=${B:-build}
OUT=${OUT:-$B/demo}
rm -rf "$OUT"
mkdir -p "$OUT"
out=$(cd "$OUT" && pwd)
mkfifo "$out/address"

pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || :; done; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "the demo failed with exit code $status; the workers logged:" >&2
	cat "$out/worker1.log" "$out/worker2.log" >&2
	exit "$status"
}

echo "frag demo: a street camera, decoded in one process, watched in another; 30 s" >&2
FRAG_ADDRESS_FD=3 "$B/bin/driverd" --address "${FRAG_ADDRESS:-127.0.0.1:0}" \
	--app examples/video_replayer_distributed/app.yaml --summary "$out/summary.json" \
	-- --data "$(pwd)/examples/data" --out "$out" 3>"$out/address" &
driver=$!
pids=$driver
status=0
# The address, or nothing when the driver has ended.
if ! read -r address <"$out/address"; then
	wait "$driver" || status=$?
	echo "the demo did not start${FRAG_ADDRESS:+; without FRAG_ADDRESS it takes any free port}" >&2
	exit "$status"
fi
"$B/bin/workerd" --address "$address" --fragments fragment1 --allow-write "$out" --once \
	2>"$out/worker1.log" &
pids="$pids $!"
"$B/bin/workerd" --address "$address" --fragments fragment2 --allow-write "$out" --once \
	2>"$out/worker2.log" &
pids="$pids $!"
wait "$driver" || status=$?
[ "$status" = 0 ] || fail
wait
pids=
rm "$out/address"
echo
# libgcrypt, which FFmpeg loads, warns of insecure memory where none may be locked; nothing here is
# secret.
frames=$(ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames \
	-of default=nk=1:nw=1 "$out/boxes.mp4" 2>"$out/ffprobe.log") ||
	cat "$out/ffprobe.log" >&2
echo "video:   $OUT/boxes.mp4 ($frames frames)"
echo "picture: $OUT/frame.png"
echo "summary: $OUT/summary.json"
