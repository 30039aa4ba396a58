#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the frames that a GPU decodes with those of the CPU, and measures both, in the folder
# that make gpu-check-video makes; it needs nothing else of frag, and nothing of Debian. Files to
# compare may be given: FILE FORMAT ... Ends with 0: all is well; 77: no GPU can be used.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ $# -gt 0 ] || set -- pedestrians.mp4 nv12
while [ $# -gt 1 ]; do
	bin/video_check "$1" "$2" 1 || exit $?
	bin/video_check "$1" "$2" 8 || exit $?
	shift 2
done
