#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs examples/people with everything on a GPU, beside the same networks on the CPU, in the folder
# that make gpu-check-people makes; it needs nothing else of frag, and nothing of Debian.
#   FRAG_ONNXRUNTIME=FOLDER: ONNX Runtime with its provider for CUDA (docs/INFERENCE.md)
#   FRAMES=800, PROCESSES="1 8"; CLIPS="pedestrians.mp4 large.mp4": the second is of 1920 x 1080
#   PARTS="same hosts alone rates copied": what is done of what follows
#   FIRST_GPU=0, GPUS=1: the streams take turns on so many; ON="gpu host cpu": where it runs; host:
#   the networks alone on the GPU, with tensors in host memory
# Compares both networks with the CPU, prints frames a second, cores, how busy the first GPU is, the
# times from the frame to the page and what is copied to the host, beside ONNX Runtime alone, and
# leaves the last picture of each. Ends with 0: all ran, and the networks make the same.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_CACHE_PATH="$PWD/cache" FRAG_HOST_USER
FRAG_HOST_USER=$(id -un)
frames=${FRAMES:-800} failed=0
cat >onnx.yaml <<-'END'
	network_cpu: {backend: onnxruntime}
	detect_cpu: {model_path_map: {person: person-detection.onnx}, inference_map: {person: ["detection_boxes:0", "detection_scores:0"]}}
	people_cpu: {count_tensor_name: ""}
	segment_cpu: {model_path_map: {mask: person-segmentation.onnx}}
END
cat >host.yaml <<-'END'
	network_cpu: {provider: cuda, transmit_on_cuda: false}
END

now() { date +%s.%N; }

# Seconds of cores that ended processes have taken.
cores() {
	sed 's/.*) //' /proc/$$/stat | awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) / hz }'
}

# run ON CLIP FRAMES PICTURE: runs the application once.
run() {
	where=$1 more=
	[ "$1" = host ] && where=cpu more="--config host.yaml"
	# shellcheck disable=SC2086
	bin/fragctl run people/app.yaml --config onnx.yaml $more -- --on $where --realtime false \
		--repeat true --count "$3" --data "$PWD" --clip "$2" --models "$PWD/models" \
		--picture "$PWD/$4.png"
}

# people ON STREAMS CLIP FRAMES: runs the application so often at the same time. Without the start:
# what twice the frames take longer than once.
people() {
	rm -f "$1"-*.log
	on=$1 streams=$2 clip=$3 name=people.$1.$2.${3%.mp4}
	for times in 1 2; do
		count=$(($4 * times)) pids='' used=$(cores)
		nvidia-smi --id="${FIRST_GPU:-0}" --query-gpu=utilization.gpu \
			--format=csv,noheader,nounits --loop-ms=200 >busy.log 2>/dev/null &
		watcher=$!
		begin=$(now)
		for i in $(seq "$streams"); do
			CUDA_VISIBLE_DEVICES=$((${FIRST_GPU:-0} + i % ${GPUS:-1})) \
				run "$on" "$clip" "$count" "$on-$streams-$i" >"$on-$i.log" 2>&1 &
			pids="$pids $!"
		done
		for pid in $pids; do
			wait "$pid" || {
				failed=1
				echo "$name failed:"
				tail -n 5 "$on-1.log"
				kill $watcher
				return
			}
		done
		end=$(now)
		kill $watcher
		wait $watcher 2>/dev/null
		[ $times = 2 ] || once="$begin $end $used $(cores)"
	done
	echo "$once $begin $end $used $(cores)" | awk -v name="$name" -v frames="$(($4 * streams))" '{
		s = $6 - $5 - ($2 - $1)
		printf "%s frames/s %.1f\n", name, frames / s
		printf "%s.cpu cores %.2f\n", name, ($8 - $7 - ($4 - $3)) / s }'
	[ "$on" = cpu ] || sort -n busy.log | awk -v name="$name" '
		{ all[NR] = $1 }
		END { if (NR) printf "%s.gpu busy_%% %d\n", name, all[int(NR * 3 / 4) + 1] }'
	grep -h "frames.out -> fragment2" "$on"-*.log | sort -rn | head -n 1 | awk -v name="$name" '
		{ printf "%s.p50 %s %s\n%s.p99 %s %s\n", name, $9, $8, name, $11, $10 }'
}

# What is copied to the host for a frame, and how often a thread waits for the GPU
# (tests/bench/copies.c): what twice as many frames have more.
copied() { # ON CLIP
	name=people.$1.1.${2%.mp4}
	rm -f copies
	for count in 100 200; do
		CUDA_INJECTION64_PATH=$PWD/lib/copies.so BENCH_COPIES=$PWD/copies \
			run "$1" "$2" $count copies >copies.log 2>&1
	done
	[ -e copies ] || { echo "lacks $name.to_host: $(grep -m 1 "copies:" copies.log)"; return; }
	awk -v name="$name" '
		{ b[NR] = $1; n[NR] = $2; w[NR] = $3; lost += $4 }
		END {
			if (NR != 2 || lost > 0)
				printf "lacks %s.to_host: %d of 2 counts, %d lost\n", name, NR, lost
			else {
				printf "%s.to_host B/frame %.0f\n", name, (b[2] - b[1]) / 100
				printf "%s.copies n/frame %.2f\n", name, (n[2] - n[1]) / 100
				printf "%s.waits n/frame %.2f\n", name, (w[2] - w[1]) / 100
			}
		}' copies
}

rate() { # PROVIDER MODEL COUNT SIDE...: runs a second of ONNX Runtime in a loop
	provider=$1 model=$2
	shift 2
	bin/network "models/person-$model.onnx" "$provider" resident "$@" 2>alone.log | cut -d ' ' -f 1
}

# alone PROVIDER: ONNX Runtime in a loop with everything on the GPU, for the frames of each clip,
# as often for a frame as the application runs each network: once for the four parts, and once for
# each of the people that a frame shows.
alone() {
	detect=$(rate "$1" detection 400 4 300 300 3)
	mask=$(rate "$1" segmentation 800 1 256 256 3)
	if [ -z "$detect" ] || [ -z "$mask" ]; then
		echo "lacks people.alone.$1: $(grep -m 1 "network:" alone.log)"
		return
	fi
	echo "people.alone.$1.detect runs/s $detect"
	echo "people.alone.$1.mask runs/s $mask"
	for clip in $clips; do
		# as counted on the CPU
		people_of_frame=$([ "$clip" = large.mp4 ] && echo 4.3 || echo 5.1)
		awk -v name="people.alone.$1.${clip%.mp4}" -v d="$detect" -v m="$mask" \
			-v people="$people_of_frame" \
			'BEGIN { printf "%s frames/s %.1f\n", name, 1 / (1 / d + people / m) }'
	done
}

# Runs it with a driver and two workers: the frames stay on the GPU from host to host.
hosts() {
	bin/driverd --address 127.0.0.1:47771 --app people/app.yaml -- --on gpu --realtime false \
		--repeat true --count 200 --data "$PWD" --models "$PWD/models" \
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

does() { # PART
	case " ${PARTS:-same hosts alone rates copied} " in *" $1 "*) ;; *) return 1 ;; esac
}

clips=
for clip in ${CLIPS:-pedestrians.mp4 large.mp4}; do
	if [ -e "$clip" ]; then clips="$clips $clip"; else echo "lacks $clip"; fi
done
does same && same person-detection 4 300 300 3
does same && same person-segmentation 1 256 256 3
does hosts && hosts
does alone && alone cuda && alone graphs
for clip in $clips; do
	for on in ${ON:-gpu host cpu}; do
		case $on in gpu) share=1 ;; host) share=2 ;; cpu) share=8 ;; esac
		for processes in ${PROCESSES:-1 8}; do
			count=$((frames / share / (processes > 1 ? 4 : 1)))
			does rates && people "$on" "$processes" "$clip" "$count"
		done
		[ "$on" != cpu ] && does copied && copied "$on" "$clip"
	done
done
exit $failed
