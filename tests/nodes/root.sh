#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# root.sh FOLDER: the root of a Debian 12 in which systemd and the packages of frag can run, made by
# debootstrap. It takes some minutes and 550 MB, and is kept: machines get a layer of their own over
# it. Needs root, and the network when it is made.
set -eu
folder=$1
# ssh, and what frag's packages depend on (deploy/debian/control), so that they install without a
# network.
packages="systemd systemd-sysv dbus iproute2 procps openssh-client openssh-server libuv1
libyaml-0-2 libprotobuf-c1 libssl3 libucx0 libseccomp2 libavcodec59 libavformat59 libavutil57
libswscale6 libpng16-16 libmicrohttpd12 libturbojpeg0 libsqlite3-0"

[ "$(cat "$folder/etc/frag-test" 2>/dev/null)" != "$packages" ] || exit 0
rm -rf "$folder" "$folder.new"
mkdir -p "$(dirname "$folder")"
# shellcheck disable=SC2086
debootstrap --variant=minbase --include="$(echo $packages | tr ' ' ,)" bookworm "$folder.new" >"$folder.log" 2>&1 || {
	tail -n 5 "$folder.log" >&2
	echo "root.sh: debootstrap failed; its output is in $folder.log" >&2
	exit 1
}
: >"$folder.new/etc/machine-id"
rm -rf "$folder.new"/var/cache/apt/archives/*.deb "$folder.new"/var/lib/apt/lists/*
systemctl --root="$folder.new" enable systemd-networkd >/dev/null 2>&1
echo "$packages" >"$folder.new/etc/frag-test"
mv "$folder.new" "$folder"
