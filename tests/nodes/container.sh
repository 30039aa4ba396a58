#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the image of deploy/container does in podman: container.sh IMAGE (make container-check).
# Limits and cgroups are those that podman may set inside a container as well.
set -eu
image=$1
folder=$(mktemp -d)
driver=frag-check-$$
podman="podman --runtime runc --cgroup-manager=cgroupfs"
flags="--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"
tmux="tmux -S $folder/tmux"
trap '$tmux kill-server 2>/dev/null || :
	[ ! -e "$folder/compose/frag.key" ] || decompose; $podman rm -f $driver >/dev/null 2>&1 || :
	rm -rf "$folder"' EXIT

fail() {
	echo "container: $1" >&2
	cat "$folder"/* >&2
	exit 1
}

# run FILE WORDS: in a container without a network; what it printed is in FILE
run() {
	out=$folder/$1
	shift
	# shellcheck disable=SC2086
	timeout 600 $podman run --rm --network none $flags "$@" >"$out" 2>&1
}

run version "$image" fragctl version && grep -q '^fragctl [0-9]' "$folder/version" || fail version
[ "$($podman image inspect --format '{{.User}}' "$image")" = 65532:65532 ] || fail "it runs as root"
run line "$image" fragctl run -e 'ping_tx count=3 ! ping_rx' || fail "a graph in a line"
grep -q 'value: 3$' "$folder/line" || fail "a graph in a line prints nothing"

# What is missing is named with the flag that gives it back.
run doctor "$image" fragctl doctor && fail "nothing is missing in a container" || :
grep -A 2 '^rtprio  *wrong' "$folder/doctor" | grep -q 'mend   podman run --ulimit rtprio=90' ||
	fail "doctor does not name the flag for real-time priorities"
grep -q '^state_folder  *ok  */var/lib/frag-driver, .* free' "$folder/doctor" ||
	fail "the state folder cannot be written"
grep -q '^interface  *ok .* podman run --network host' "$folder/doctor" ||
	fail "doctor does not name the network"
run shm --shm-size 100m "$image" fragctl doctor || :
grep -q '/dev/shm has 100 MiB' "$folder/shm" || fail "--shm-size is not seen"

# A driver and two workers, each in a container of its own, on one network.
# shellcheck disable=SC2086
$podman run -d --name $driver --network none $flags "$image" driverd \
	--app /usr/share/frag/examples/ping_distributed/app.yaml >"$folder/id"
for fragment in fragment1 fragment2; do
	# shellcheck disable=SC2086
	timeout 120 $podman run --rm --network container:$driver $flags "$image" workerd \
		--fragments $fragment --once >"$folder/$fragment" 2>&1 &
done
[ "$($podman wait $driver)" = 0 ] || fail "the application failed"
$podman logs $driver >"$folder/table" 2>"$folder/log"
wait
grep -q '^fragment1.tx.out -> fragment2.rx.in  *10  *10  *0  *0 ' "$folder/table" || fail "the account"

# compose.yaml, with the names of a network, but for limits that cannot be set inside a container.
compose=$folder/compose
mkdir "$compose"
cp "$(dirname "$0")/../../deploy/container/compose.yaml" "$compose"
printf '[network]\nnetwork_backend = "netavark"\n' >"$compose/containers.conf"
cat >"$compose/podman" <<END
#!/bin/sh
for word; do
	shift
	case \$word in
	--ulimit | --cap-add) drop=1 ;;
	run) set -- "\$@" run $flags ;;
	*) [ -n "\$drop" ] || set -- "\$@" "\$word"; drop= ;;
	esac
done
exec $podman "\$@"
END
chmod +x "$compose/podman"
compose() {
	(cd "$compose" && CONTAINERS_CONF=$compose/containers.conf timeout 120 podman-compose \
		-p "$driver" --podman-path "$compose/podman" "$@" >>"$folder/compose.log" 2>&1)
}
decompose() { # podman-compose leaves the network
	compose down -v || :
	CONTAINERS_CONF=$compose/containers.conf $podman network rm -f "${driver}_default" \
		>/dev/null 2>&1 || :
}
run key "$image" fragctl key new && cp "$folder/key" "$compose/frag.key"
chmod 600 "$compose/frag.key" && chown 65532:65532 "$compose/frag.key"
sed -i "s/image: frag$/image: $image/; /ports:/d" "$compose/compose.yaml" # 57777 may be taken
compose up -d || fail "podman-compose up"
for i in $(seq 60); do
	$podman exec "${driver}_driver_1" fragctl workers >"$folder/workers" 2>&1 || :
	! grep -q ' live ' "$folder/workers" || break
	sleep 0.5
done
$podman exec "${driver}_driver_1" fragctl start -e 'ping_tx count=3 ! ping_rx' --wait \
	>"$folder/composed" 2>&1 || fail "an application by compose.yaml"
grep -q 'ping_rx.in  *3  *3  *0  *0 ' "$folder/composed" || fail "the account by compose.yaml"
$podman exec "${driver}_driver_1" fragctl doctor --workers >"$folder/all" 2>&1 || :
grep -q '^worker .* ok, [0-9]* wrong$' "$folder/all" || fail "doctor --workers"
decompose

# What the image does when nothing is named: the demo.
run demo "$image" || fail "the demo"
grep -q 'source_video  *300  *300  *0  *0 ' "$folder/demo" || fail "the account of the demo"

# The same as a person sees it, on a terminal: top, and the account when it has ended.
$tmux -f /dev/null new-session -d -x 134 -y 30 \
	"$podman run --rm -it --network none $flags $image; echo ended with \$?; sleep 1000"
seen() { # WORDS: within three minutes they are on the screen
	for i in $(seq 360); do
		$tmux capture-pane -p >"$folder/screen"
		! grep -q "$1" "$folder/screen" || return 0
		sleep 0.5
	done
	fail "not on the screen: $1"
}
seen '^frag top  1 application'
seen '^ fragment2.motion '
seen 'source_video  *300  *300  *0  *0 '
seen '^ended with 0'

# In one command from a file, where nothing but podman is installed.
mkdir "$folder/file"
archive=oci-archive:$folder/file/frag.tar
buildah push -q "$image" "$archive:$image" && $podman rmi -f "$image" >"$folder/removed"
run archive "$archive" fragctl run -e 'ping_tx count=3 ! ping_rx' || fail "from a file"
grep -q 'ping_rx.in  *3  *3  *0  *0 ' "$folder/archive" || fail "the account from a file"
echo "container: version, user, graphs, doctor, three containers, compose, the demo and a file are well"
