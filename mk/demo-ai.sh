#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs examples/people with driverd and two workerd as processes of this machine: one fragment finds
# people, the other shows them on a web page. It opens no window, prints the address of the page,
# and leaves the last picture. Its arguments are those of the application.
set -eu
B=${B:-build}
OUT=${OUT:-$B/demo-ai}
rm -rf "$OUT"
mkdir -p "$OUT"
out=$(cd "$OUT" && pwd)
mkfifo "$out/address"
FRAG_OPENVINO=$(pwd)/.cache/ai/openvino
export FRAG_OPENVINO

pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || :; done; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "frag demo: people in the picture of a street camera, on a web page" >&2
FRAG_ADDRESS_FD=3 "$B/bin/driverd" --address "${FRAG_ADDRESS:-127.0.0.1:0}" \
	--app examples/people/app.yaml --summary "$out/summary.json" \
	-- --data "$(pwd)/examples/data" --models "$(pwd)/.cache/ai/models" \
	--picture "$out/picture.jpg" "$@" 3>"$out/address" &
driver=$!
pids=$driver
status=0
# The address, or nothing when the driver has ended.
if ! read -r address <"$out/address"; then
	wait "$driver" || status=$?
	echo "the demo did not start" >&2
	exit "$status"
fi
for n in 1 2; do
	"$B/bin/workerd" --address "$address" --fragments fragment$n --allow-write "$out" --once \
		2>"$out/worker$n.log" &
	pids="$pids $!"
done
page() {
	sed -n 's/.*shows its pictures at \(http[^ ]*\).*/\1/p' "$out/worker2.log" 2>/dev/null || :
}
while [ -z "$(page)" ] && kill -0 "$driver" 2>/dev/null; do
	sleep 0.1
done
page=$(page)
[ -z "$page" ] || echo "page:    $page"
wait "$driver" || status=$?
if [ "$status" != 0 ]; then
	echo "the demo failed with exit code $status; the workers logged:" >&2
	cat "$out/worker1.log" "$out/worker2.log" >&2
	exit "$status"
fi
wait
pids=
rm "$out/address"
echo
echo "picture: $OUT/picture.jpg"
echo "summary: $OUT/summary.json"
