#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plants each mistake of races.txt in a copy of the tree and shows that the tests of the queue, the
# pump and the ring of shared memory, which make check runs under ThreadSanitizer, notice it.
# usage: tests/planted/races.sh [NAME...]
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/planted/plant.sh
kind=races

plant_build() {
	make -s -C "$scratch" tsan-queues-build
}

plant_notice() {
	local failed
	(cd "$scratch" && make -s tsan-queues) >"$scratch.log" 2>&1
	failed=$(sed -n 's/^failed: //p' "$scratch.log")
	echo $failed
	[ -n "$failed" ]
}

names=$(plant_names "$@") || exit
make -s tsan-queues-build || exit 1
plant_copy build-tsan-queues
plant_each $names
