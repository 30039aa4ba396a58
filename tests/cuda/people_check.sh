#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs examples/people with everything on a GPU, beside the same networks on the CPU, in the folder
# that make gpu-check-people makes; it needs nothing else of frag, and nothing of Debian.
#   FRAG_ONNXRUNTIME=FOLDER: ONNX Runtime with its provider for CUDA (docs/INFERENCE.md)
#   FRAMES=200, STREAMS=8
# Compares both networks with the CPU, prints frames a second and cores, and leaves the last picture
# of each. Ends with 0: all ran, and the networks make the same.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_CACHE_PATH="$PWD/cache" FRAG_HOST_USER
FRAG_HOST_USER=$(id -un)
frames=${FRAMES:-200} failed=0
cat >onnx.yaml <<-'END'
	network_cpu: {backend: onnxruntime}
	detect_cpu: {model_path_map: {person: person-detection.onnx}, inference_map: {person: ["detection_boxes:0", "detection_scores:0"]}}
	people_cpu: {count_tensor_name: ""}
	segment_cpu: {model_path_map: {mask: person-segmentation.onnx}}
END

now() { date +%s.%N; }

# people ON STREAMS: runs the application so often at the same time.
people() {
	on=$1 streams=$2 pids=
	begin=$(now)
	for i in $(seq "$streams"); do
		bin/fragctl run people/app.yaml --config onnx.yaml -- --on "$on" --realtime false \
			--repeat true --count "$frames" --data "$PWD" \
			--models "$PWD/models" --picture "$PWD/$on-$streams-$i.png" >"$on-$i.log" 2>&1 &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || {
			failed=1
			echo "people --on $on failed:"
			tail -n 5 "$on-1.log"
			return
		}
	done
	end=$(now)
	awk -v on="$on" -v streams="$streams" -v frames="$frames" -v s="$(echo "$end $begin" |
		awk '{ print $1 - $2 }')" 'BEGIN {
		printf "people.%s.%d frames/s %.1f\n", on, streams, streams * frames / s }'
	tail -n 16 "$on-1.log"
}

# Runs it with a driver and two workers: the frames stay on the GPU from host to host.
hosts() {
	bin/driverd --address 127.0.0.1:47771 --app people/app.yaml -- --on gpu --realtime false \
		--repeat true --count "$frames" --data "$PWD" --models "$PWD/models" \
		--picture "$PWD/hosts.png" >hosts.log 2>&1 &
	driver=$!
	for n in 1 2; do
		bin/workerd --address 127.0.0.1:47771 --fragments "fragment$n" \
			--allow-write "$PWD" --once >"worker$n.log" 2>&1 &
	done
	wait "$driver" || failed=1
	wait
	echo "people.hosts:"
	tail -n 16 hosts.log
}

# same MODEL SIDE...: what it makes on the GPU and on the CPU, which differ by what 19 bits of the
# fractions of TF32 leave out, and 0.1 where the provider does not do what the model says.
same() {
	model=models/$1.onnx
	shift
	if bin/network "$model" cuda compare "$model" noise "$@" >compare.log 2>&1 &&
		awk '!($2 < 0.1) { exit 1 }' compare.log; then
		echo "ok   $model differs from the CPU by $(sort -gk2 compare.log | tail -n 1 | cut -d ' ' -f 2)"
	else
		failed=1
		echo "FAIL $model on the GPU is not what it is on the CPU:"
		cat compare.log
	fi
}

same person-detection 4 300 300 3
same person-segmentation 1 256 256 3
hosts
for streams in 1 "${STREAMS:-8}"; do
	people gpu "$streams"
	people cpu "$streams"
done
exit $failed
