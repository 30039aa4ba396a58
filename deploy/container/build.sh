#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes a container image of an installed tree: frag, the shared libraries that it needs, their
# licences, and nothing else; no shell, and no image is pulled. Needs buildah (make container).
#
# usage: deploy/container/build.sh TREE [IMAGE]      TREE: DESTDIR of make install prefix=/usr
set -eu
tree=$(cd "$1" && pwd)
image=${2:-frag}
id=65532

# Libraries that programs and plugins are linked with, and what UCX opens by itself.
libraries() {
	find "$tree/usr" -type f \( -name '*.so*' -o -perm -111 \) | while read -r file; do
		LD_LIBRARY_PATH=$tree/usr/lib ldd "$file" 2>/dev/null || :
	done | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^\t\(\/[^ ]*ld-linux[^ ]*\) .*/\1/p'
	for module in /usr/lib/*/ucx/libuct_*.so.0 /usr/lib/*/ucx/libucm*.so.0; do
		[ ! -e "$module" ] || { echo "$module"; ldd "$module" |
			sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'; }
	done
}

mkdir -p "$tree/etc" "$tree/tmp" "$tree/run/frag" "$tree/var/lib/frag-driver"
rm -rf "$tree/usr/include" "$tree/usr/share/man" "$tree/usr/lib/systemd" "$tree/usr/lib/pkgconfig"
libraries | sort -u | grep -v "^$tree" >"$tree.list"
while read -r file; do
	target=$tree/$(readlink -f "$(dirname "$file")")/$(basename "$file")
	install -D -m 755 "$(readlink -f "$file")" "$target"
done <"$tree.list"
# Of all packages that they are of.
xargs readlink -f <"$tree.list" | sort -u | xargs dpkg -S 2>/dev/null | cut -d : -f 1 | sort -u |
	while read -r owner; do
		[ ! -e "/usr/share/doc/$owner/copyright" ] ||
			install -D -m 644 "/usr/share/doc/$owner/copyright" \
				"$tree/usr/share/doc/$owner/copyright"
	done
# Where the loader looks: /lib and /lib64 are links into /usr, as on the machine.
for link in lib lib64; do
	[ -e "$tree/$link" ] || ln -s "usr/$link" "$tree/$link"
done
cp -R /lib/terminfo "$tree/usr/lib/terminfo" # which fragctl top needs
install -D -m 644 /usr/share/doc/ncurses-base/copyright "$tree/usr/share/doc/ncurses-base/copyright"
printf 'root:x:0:0::/:/\nfrag:x:%s:%s::/tmp:/\n' $id $id >"$tree/etc/passwd"
printf 'root:x:0:\nfrag:x:%s:\n' $id >"$tree/etc/group"
echo 'hosts: files dns' >"$tree/etc/nsswitch.conf"
chmod 1777 "$tree/tmp"
/sbin/ldconfig -r "$tree"
own="run/frag var/lib/frag-driver" # what the daemons write
for folder in $own; do # buildah leaves out some folders that are empty
	: >"$tree/$folder/.keep"
done
# shellcheck disable=SC2086
tar -C "$tree" -cf "$tree.tar" --owner=0 --group=0 --exclude=./run/frag \
	--exclude=./var/lib/frag-driver . && tar -C "$tree" -rf "$tree.tar" --owner=$id --group=$id $own

made=$(buildah from scratch)
trap 'buildah rm "$made" >/dev/null; rm -f "$tree.tar" "$tree.list"' EXIT
buildah add -q "$made" "$tree.tar" / >/dev/null
buildah config --user $id:$id --env PATH=/usr/bin --env HOME=/tmp --workingdir /tmp \
	--label org.opencontainers.image.title=frag \
	--label org.opencontainers.image.licenses=Apache-2.0 \
	--cmd '["fragctl", "run", "--top", "--workers", "2", "/usr/share/frag/examples/video_replayer_distributed/app.yaml", "--", "--out", "/tmp"]' \
	"$made"
buildah commit -q "$made" "$image" >/dev/null
echo "$image: $(du -sm "$tree" | cut -f 1) MB"
