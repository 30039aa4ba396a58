#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs driverd and two workerd as processes of this machine. One fragment decodes a video in real
# time, the other finds what moves in it. Then a worker of another application is killed, which goes
# on elsewhere (mk/demo-survive.yaml). On a terminal fragctl top shows both while they run.
# They use any free port, or that of FRAG_ADDRESS.
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
	cat "$out"/*.log >&2
	exit "$status"
}

# The address that a driver wrote, or nothing when it has ended.
take_address() {
	read -r address <"$out/address" || address=
}

work() { # NAME FRAGMENTS: a worker of the driver
	"$B/bin/workerd" --address "$address" --name "$1" --fragments "$2" --allow-write "$out" \
		--once 2>"$out/$1.log" &
	pids="$pids $!"
}

# Top has the terminal, if there is one, until the driver ends.
begin_top() {
	[ -t 0 ] && [ -t 1 ] || return 0
	"$B/bin/fragctl" top --address "$address" </dev/tty 2>"$out/top.log" &
	top=$!
	pids="$pids $top"
}

end_top() {
	[ -n "$top" ] || return 0
	kill "$top" 2>/dev/null || :
	wait "$top" || :
	top=
}

watch_street() {
	echo "frag demo: a street camera, decoded in one process, watched in another; 30 s" >&2
	log=/dev/stderr
	if [ -t 0 ] && [ -t 1 ]; then
		log=$out/driver.log
	fi
	FRAG_ADDRESS_FD=3 "$B/bin/driverd" --address "${FRAG_ADDRESS:-127.0.0.1:0}" \
		--app examples/video_replayer_distributed/app.yaml --summary "$out/summary.json" \
		-- --data "$(pwd)/examples/data" --out "$out" 3>"$out/address" >"$out/table" 2>>"$log" &
	driver=$!
	pids=$driver
	take_address
	if [ -z "$address" ]; then
		wait "$driver" || status=$?
		[ "$log" = /dev/stderr ] || cat "$log" >&2
		echo "the demo did not start${FRAG_ADDRESS:+; without FRAG_ADDRESS it takes any free port}" >&2
		exit "$status"
	fi
	work worker1 fragment1
	work worker2 fragment2
	begin_top
	wait "$driver" || status=$?
	end_top
	cat "$out/table"
	[ "$status" = 0 ] || fail
	wait
	pids=
	echo
	# libgcrypt, which FFmpeg loads, warns of insecure memory where none may be locked; nothing
	# here is secret.
	frames=$(ffprobe -v error -count_frames -select_streams v \
		-show_entries stream=nb_read_frames -of default=nk=1:nw=1 "$out/boxes.mp4" 2>"$out/ffprobe.log") ||
		cat "$out/ffprobe.log" >&2
	echo "video:   $OUT/boxes.mp4 ($frames frames)"
	echo "picture: $OUT/frame.png"
	echo "summary: $OUT/summary.json"
}

kill_a_node() {
	echo "now a node dies: worker b is killed while it receives 100 messages a second" >&2
	FRAG_ADDRESS_FD=3 "$B/bin/driverd" --address 127.0.0.1:0 --app mk/demo-survive.yaml \
		3>"$out/address" >"$out/table" 2>"$out/survive.log" &
	driver=$!
	pids=$driver
	take_address
	work a camera
	work b detector
	b=$!
	until grep -q "runs in 2 hosts" "$out/survive.log" || ! kill -0 "$driver" 2>/dev/null; do
		sleep 0.1
	done
	work c detector
	begin_top
	sleep 3
	[ -n "$top" ] || echo "kill -9 workerd b, and its host" >&2
	# shellcheck disable=SC2046
	kill -9 "$b" $(cat "/proc/$b/task/$b/children" 2>/dev/null)
	wait "$driver" || status=$?
	[ -z "$top" ] || { end_top; echo "kill -9 workerd b, and its host" >&2; }
	sed -n 's/.*survives_a_dead_node: \(worker b .*\|detector .* again .*\)/  \1/p' "$out/survive.log" >&2
	cat "$out/table"
	[ "$status" = 0 ] || fail
	wait
	pids=
	echo "lost: what was on its way into the node that died; nobody can know whether it was received"
}

status=0 top=
case ${1:-all} in
all)
	watch_street
	echo
	kill_a_node
	;;
*) "$1" ;; # one half of it, for tests
esac
rm "$out/address"
