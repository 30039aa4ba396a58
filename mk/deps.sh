#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that building and testing frag needs on Debian 12 (Ubuntu has the same
# names, but this was not tried). An argument adds packages: `proof` those of make proof;
# `nightly` those of nightly, lint, fuzz, coverage and docs; `bench` those that make bench
# compares with; `aarch64` the cross compiler and qemu; `deb` what packages are built with, and
# with `deb arm64` also the libraries of that architecture; `nodes` what the tests on machines of
# systemd-nspawn need; `container`, `limits`, `vivid`, `paused` and `site` what the targets of those
# names do; `ai` pip, for make deps-ai; `python` what the wheel is made with.
# It prints the command that it runs, and does nothing when all packages are installed.
set -eu

packages="gcc g++ make pkg-config libc6-dev protobuf-c-compiler libprotobuf-c-dev
libuv1-dev libyaml-dev libseccomp-dev libsqlite3-dev libucx-dev libssl-dev
libavcodec-dev libavformat-dev libavutil-dev libswscale-dev libpng-dev libmicrohttpd-dev
libturbojpeg0-dev libncurses-dev systemtap-sdt-dev libsdl2-2.0-0 ffmpeg openssl python3
python3-dev iproute2 iptables git tmux curl"

foreign=
case ${1:-} in
proof) packages="$packages clang clang-format valgrind" ;;
nightly) packages="$packages clang llvm libclang-rt-dev valgrind clang-format clang-tidy
bpftrace cppcheck gcovr zsh chromium doxygen prometheus python3-dbg libcriterion-dev" ;;
esac

if [ "${1:-}" = bench ]; then
	packages="$packages ucx-utils valgrind libgstreamer1.0-dev gstreamer1.0-plugins-base
libtbb-dev g++ chromium rt-tests ffmpeg gstreamer1.0-tools gstreamer1.0-libav
gstreamer1.0-plugins-good gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly"
fi

if [ "${1:-}" = aarch64 ]; then
	packages="$packages gcc-aarch64-linux-gnu qemu-user"
fi

if [ "${1:-}" = ai ]; then
	packages="$packages python3-pip"
fi

if [ "${1:-}" = site ]; then
	packages="python3 python3-pip graphviz git ${2:+hunspell hunspell-en-gb chromium curl}"
fi

if [ "${1:-}" = python ]; then
	packages="$packages python3-pip python3-venv binutils"
fi

if [ "${1:-}" = deb ]; then
	packages="$packages dpkg-dev debhelper lintian"
	if [ "${2:-}" != "$(dpkg --print-architecture)" ]; then
		foreign=$2
		packages="$packages crossbuild-essential-$2 qemu-user-static"
		for p in libc6-dev libprotobuf-c-dev libuv1-dev libyaml-dev libseccomp-dev \
			libsqlite3-dev libucx-dev libssl-dev libavcodec-dev libavformat-dev \
			libavutil-dev libswscale-dev libpng-dev libmicrohttpd-dev \
			libturbojpeg0-dev libncurses-dev systemtap-sdt-dev; do
			packages="$packages $p:$2"
		done
	fi
fi

if [ "${1:-}" = vivid ] || [ "${1:-}" = paused ]; then
	packages="$packages qemu-system-x86 busybox-static"
fi

if [ "${1:-}" = container ]; then
	packages="$packages buildah podman runc podman-compose netavark aardvark-dns"
fi

if [ "${1:-}" = limits ]; then
	packages="$packages dpkg-dev debhelper lintian debootstrap qemu-system-x86 busybox-static e2fsprogs"
fi

if [ "${1:-}" = nodes ]; then
	packages="$packages dpkg-dev debhelper lintian debootstrap systemd-container"
fi

missing=
for p in $packages; do
	dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086
set -- $missing

command -v apt-get >/dev/null || {
	echo "make deps: there is no apt-get here; install what Debian calls $* (docs/DEPENDENCIES.md)" >&2
	exit 3
}
sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "make deps: not root and there is no sudo; as root run: apt-get install --no-install-recommends $*" >&2
		exit 3
	}
	sudo=sudo
fi
[ -z "$foreign" ] || $sudo dpkg --add-architecture "$foreign"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Shows how far apt-get is: one updating line for each step on a terminal, a line for each quarter
# elsewhere.
show() {
	was=$shown shown="$1 $(($2 / 25))"
	if [ -t 2 ]; then
		[ -z "$was" ] || [ "${was% *}" = "$1" ] || echo >&2
		printf '\r%s: %3d %%' "$1" "$2" >&2
	elif [ "$shown" != "$was" ]; then
		echo "$1: $2 %" >&2
	fi
}

# The last line has come: the step is over.
finish() {
	[ -z "$shown" ] || [ "$1" != 0 ] || show "${shown% *}" 100
	[ -z "$shown" ] || [ ! -t 2 ] || echo >&2
	return "$1"
}

# Reads what apt-get writes with APT::Status-Fd: "dlstatus:WHAT:PERCENT:TEXT" while it downloads,
# "pmstatus:WHAT:PERCENT:TEXT" while it installs, and other lines, which go into the log. Returns
# the exit status of apt-get, which the last line holds.
watch() {
	shown=
	while read -r line; do
		percent=${line#*:*:}
		percent=${percent%%[:.]*}
		case $line in
		dlstatus:*) show downloading "$percent" ;;
		pmstatus:*) show installing "$percent" ;;
		"exit status "*) finish "${line##* }" && return 0 || return $? ;;
		*) echo "$line" >>"$log" ;;
		esac
	done
}

# apt ARGUMENTS: runs apt-get; when it fails, prints what it wrote and ends.
apt() {
	{
		# Without apt-utils debconf prints a warning, although nothing here is configured.
		$sudo env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes LC_ALL=C.UTF-8 apt-get "$@" 2>&1 && echo "exit status 0" ||
			echo "exit status $?"
	} | watch || {
		tail -n 30 "$log" >&2
		echo "make deps: apt-get $1 failed" >&2
		exit 3
	}
}

echo "${sudo:+$sudo }apt-get update" >&2
apt update -q
echo "${sudo:+$sudo }apt-get install -y --no-install-recommends $*" >&2
apt install -y -q --no-install-recommends -o APT::Status-Fd=1 "$@"
