#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# deb.sh VERSION ARCH [REVISION]: builds the Debian packages of this work tree into
# build-deb/ARCH, from a copy of the tracked files, and checks them with lintian. For another
# architecture than the machine's they are cross-built, and what was built is run by qemu.
set -eu
cd "$(dirname "$0")/.."
version=$1${3:++$3} arch=$2
own=$(dpkg --print-architecture)
out=$PWD/build-deb/$arch
tree=$out/frag-$version

fail() {
	tail -n 30 "$out/log" >&2
	echo "deb: $*; its output is in $out/log" >&2
	exit 1
}

rm -rf "$out"
mkdir -p "$tree"
git ls-files -z | tar --null -T - -c | tar -x -C "$tree"
mv "$tree/deploy/debian" "$tree/debian"
cat >"$tree/debian/changelog" <<-CHANGES
	frag ($version) unstable; urgency=medium

	  * /usr/share/doc/frag/CHANGELOG.md lists what has changed.

	 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $(git log -1 --format=%cD 2>/dev/null || date -R)
CHANGES
cross=
[ "$arch" = "$own" ] || cross="-a$arch -Pcross"
# Dependencies were looked at by mk/deps.sh (-d), which knows no cross compilers as packages.
# shellcheck disable=SC2086
(cd "$tree" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" CONFIG_SITE= dpkg-buildpackage -b -d -us -uc $cross) \
	>"$out/log" 2>&1 || fail "the packages do not build"
lintian --fail-on error "$out"/frag_*.changes >"$out/lintian" 2>>"$out/log" || {
	grep '^E:' "$out/lintian" >&2
	fail "lintian reports errors"
}
echo "deb: lintian: no errors, $(grep -c '^W:' "$out/lintian" || :) warnings"

# Another architecture: the packages unpacked, hello built against them, and run by qemu.
if [ "$arch" != "$own" ]; then
	root=$out/root
	for deb in "$out"/*.deb; do
		dpkg -x "$deb" "$root"
	done
	triplet=$(dpkg-architecture -a"$arch" -q DEB_HOST_MULTIARCH 2>/dev/null)
	libs=$root/usr/lib/$triplet hello=$root/usr/share/frag/examples/hello
	"$triplet-gcc" -shared -fPIC -I "$root/usr/include" "$hello/hello.c" -L "$libs" -lfrag \
		-o "$libs/frag/extensions/libhello.so" >>"$out/log" 2>&1 || fail "hello does not build"
	LD_LIBRARY_PATH=$libs "qemu-${triplet%%-*}-static" "$root/usr/bin/fragctl" run --in-process \
		"$hello/app.yaml" >>"$out/log" 2>&1 && grep -q "Hello, world" "$out/log" ||
		fail "hello does not run under qemu"
	echo "deb: hello runs under qemu-${triplet%%-*}"
fi
# The package for Python, unpacked, runs the first example by Debian's own Python.
if [ "$arch" = "$own" ]; then
	root=$out/root
	for deb in "$out"/libfrag1_*.deb "$out"/python3-frag_*.deb; do
		dpkg -x "$deb" "$root"
	done
	printed=$(env -i LD_LIBRARY_PATH="$(echo "$root"/usr/lib/*-linux-gnu)" \
		PYTHONPATH="$root/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 examples/python/hello.py 2>>"$out/log") ||
		fail "python3-frag does not run"
	[ "$printed" = "$(printf 'hello 10\nhello 11\nhello 12')" ] || fail "python3-frag printed: $printed"
	echo "deb: python3-frag runs"
	rm -rf "$root"
fi
rm -rf "$tree"
ls "$out"/*.deb
