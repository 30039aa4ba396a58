#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that building and testing frag needs on Debian 12 (Ubuntu has the same
# names, but this was not tried). An argument adds packages: `proof` those of make proof, nightly,
# lint and fuzz; `bench` those that make bench compares with; `aarch64` the cross compiler and qemu.
# It prints the command that it runs, and does nothing when all packages are installed.
set -eu

packages="gcc g++ make pkg-config libc6-dev protobuf-c-compiler libprotobuf-c-dev libuv1-dev
libyaml-dev libucx-dev libcriterion-dev libavcodec-dev libavformat-dev libavutil-dev libswscale-dev
libpng-dev ffmpeg python3 iproute2 git"

if [ "${1:-}" = proof ]; then
	packages="$packages clang llvm libclang-rt-dev valgrind clang-format clang-tidy cppcheck gcovr"
fi

if [ "${1:-}" = bench ]; then
	packages="$packages ucx-utils valgrind libgstreamer1.0-dev gstreamer1.0-plugins-base"
fi

if [ "${1:-}" = aarch64 ]; then
	packages="$packages gcc-aarch64-linux-gnu qemu-user"
fi

missing=
for p in $packages; do
	dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "make deps: not root and there is no sudo; as root run: apt-get install --no-install-recommends$missing" >&2
		exit 3
	}
	sudo=sudo
fi
missing=$(echo $missing)
echo "${sudo:+$sudo }apt-get install -y --no-install-recommends $missing"
$sudo env DEBIAN_FRONTEND=noninteractive apt-get update -qq
# Without apt-utils debconf prints a warning, although these packages have nothing to configure.
# shellcheck disable=SC2086
$sudo env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes \
	apt-get install -y -qq --no-install-recommends $missing >/dev/null
