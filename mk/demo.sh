#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs driverd and two workerd as processes of this machine. One fragment decodes a video in real
# time, the other finds what moves in it.
set -eu
B=${B:-build}
address=${FRAG_ADDRESS:-127.0.0.1:57777}
out=$(pwd)/$B/demo
rm -rf "$out"
mkdir -p "$out"

pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || :; done; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "frag demo: a street camera, decoded in one process, watched in another; 30 s" >&2
"$B/bin/driverd" --address "$address" --app examples/video_replayer_distributed/app.yaml \
	--summary "$out/summary.json" -- --data "$(pwd)/examples/data" --out "$out" &
driver=$!
pids=$driver
"$B/bin/workerd" --address "$address" --fragments fragment1 --once 2>"$out/worker1.log" &
pids="$pids $!"
"$B/bin/workerd" --address "$address" --fragments fragment2 --once 2>"$out/worker2.log" &
pids="$pids $!"
status=0
wait "$driver" || status=$?
if [ "$status" != 0 ]; then
	echo "the demo failed with exit code $status (another port: FRAG_ADDRESS=127.0.0.1:PORT make demo); the workers logged:" >&2
	cat "$out/worker1.log" "$out/worker2.log" >&2
	exit "$status"
fi
wait
pids=
echo
echo "video:   $B/demo/boxes.mp4 ($(ffprobe -v error -count_frames -select_streams v \
	-show_entries stream=nb_read_frames -of default=nk=1:nw=1 "$out/boxes.mp4") frames)"
echo "picture: $B/demo/frame.png"
echo "summary: $B/demo/summary.json"
