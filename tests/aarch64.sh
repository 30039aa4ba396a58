#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds everything for aarch64 in build-aarch64 and runs the test programs and two examples there
# under qemu-user: aarch64.sh [WORD] (only test programs whose path holds WORD). With --wheel it
# builds the package for Python into dist/aarch64 and imports that. Nothing of the machine changes:
# the arm64 libraries come from the machine's own apt sources into build-aarch64/sysroot, by an apt
# with a state and a cache of its own, and the kernel learns about qemu in a user namespace that
# ends with this script.
set -eu
cd "$(dirname "$0")/.."
out=$PWD/build-aarch64
root=$out/sysroot
libs=$root/usr/lib/aarch64-linux-gnu
packages="libc6-dev libprotobuf-c-dev libuv1-dev libssl-dev libyaml-dev libseccomp-dev
libsqlite3-dev libucx-dev libavcodec-dev libavformat-dev libavutil-dev libswscale-dev libpng-dev
libmicrohttpd-dev libturbojpeg0-dev libncurses-dev systemtap-sdt-dev libpython3-dev python3"

fail() {
	echo "aarch64: $*" >&2
	exit 1
}

# The kernel runs programs for aarch64 by qemu: magic and mask are those of an ELF file of that
# machine.
registration() {
	printf ':frag-aarch64:M::%s:%s:%s:F' '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
		'\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' "$(command -v qemu-aarch64)"
}

fill_sysroot() {
	apt=$out/apt
	rm -rf "$root" "$apt"
	mkdir -p "$root" "$apt/state/lists/partial" "$apt/cache/archives/partial"
	: >"$apt/status"
	cat >"$apt/apt.conf" <<-END
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "root";
		Dir::State "$apt/state";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Binary::apt-get::APT::Keep-Downloaded-Packages "true";
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
	END
	echo "aarch64: arm64 packages from the sources of apt into $root"
	APT_CONFIG=$apt/apt.conf timeout 300 apt-get update -qq >"$out/apt.log" 2>&1 &&
		# shellcheck disable=SC2086
		APT_CONFIG=$apt/apt.conf timeout 600 apt-get install -y --download-only \
			--no-install-recommends $packages >>"$out/apt.log" 2>&1 || {
		tail -5 "$out/apt.log"
		fail "apt does not get the arm64 packages; its sources must offer arm64 (Debian's do, unless they say arch=amd64)"
	}
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg -x "$deb" "$root"
	done
	# Links of development packages are absolute; here they are to stay within the folder.
	find "$root" -type l -lname '/*' -path '*/lib/*' | while read -r link; do
		ln -sfn "$(realpath -sm --relative-to="${link%/*}" "$root$(readlink "$link")")" "$link"
	done
	rm -rf "$apt"
	echo "$packages" >"$root/filled"
}

# build TARGET FOLDER [VARIABLE=...]
build() {
	target=$1 folder=$2
	shift 2
	PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=$libs/pkgconfig:$root/usr/share/pkgconfig \
		make -s -j"$(nproc)" B="$folder" CC="aarch64-linux-gnu-gcc --sysroot=$root" \
		AR=aarch64-linux-gnu-ar "$@" "$target" >"$out/build.log" 2>&1 || {
		tail -30 "$out/build.log"
		fail "the tree does not build for aarch64"
	}
}

# The wheel, imported by Debian's Python for arm64, and the first example of its guide.
wheel() {
	WHEEL_LIBRARIES=$libs:$root/lib/aarch64-linux-gnu
	export WHEEL_LIBRARIES
	build python-here build-aarch64-ndebug NDEBUG=1 \
		DIST=dist/aarch64 PYTHON_INC="$(echo "$root"/usr/include/python3.*)"
	rm -rf "$out/wheel"
	python3 -m zipfile -e dist/aarch64/frag-*.whl "$out/wheel"
	tests/python/first_example.sh >"$out/wheel/hello.py"
	PYTHONPATH=$out/wheel PYTHONDONTWRITEBYTECODE=1 timeout 120 qemu-aarch64 -L "$root" \
		"$(realpath "$root/usr/bin/python3")" "$out/wheel/hello.py" >"$out/log" 2>&1 || :
	[ "$(cat "$out/log")" = "$(printf 'hello 10\nhello 11\nhello 12')" ] || {
		cat "$out/log"
		fail "the first example of docs/PYTHON.md failed with $(echo dist/aarch64/frag-*.whl)"
	}
	echo "aarch64: $(echo dist/aarch64/frag-*.whl): imported, and the first example runs"
}

# says WORDS COMMAND...: it ends with 0 and says the words.
says() {
	words=$1
	shift
	timeout 120 "$@" >"$out/log" 2>&1 && grep -q -- "$words" "$out/log" || {
		tail -20 "$out/log"
		fail "$*: failed, or did not say $words"
	}
	echo "aarch64: $*: $words"
}

if [ "${1:-}" != --emulated ]; then
	mkdir -p "$out"
	[ "$(cat "$root/filled" 2>/dev/null)" = "$packages" ] || fill_sysroot
	if [ "${1:-}" = --wheel ]; then
		wheel
		exit 0
	fi
	build tests build-aarch64
	export QEMU_LD_PREFIX="$root"
	"$out/bin/fragctl" --version >/dev/null 2>&1 && exec "$0" --emulated "$@" # as with Debian's qemu-user-binfmt
	unshare -Urm mount -t binfmt_misc none /proc/sys/fs/binfmt_misc 2>/dev/null || fail "the kernel runs no program" \
		"for aarch64, and has no binfmt_misc of a namespace's own (Linux 6.7 has): apt-get install qemu-user-binfmt"
	exec unshare -Urm "$0" --emulated "$@"
fi
shift
"$out/bin/fragctl" --version >/dev/null 2>&1 || {
	mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
	registration >/proc/sys/fs/binfmt_misc/register
}
python3 tests/run.py --build build-aarch64 --emulated ${1:+--only "$1"}
[ $# = 0 ] || exit 0
says "Hello, world" "$out/bin/fragctl" run examples/hello/app.yaml
says "Rx message value: 10" "$out/bin/fragctl" run --workers 2 examples/ping_distributed/app.yaml
