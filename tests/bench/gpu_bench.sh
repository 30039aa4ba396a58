#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures frag on a GPU, beside floors of the same run, in the folder that make gpu-check-kit
# makes; it needs nothing else of frag, and nothing of Debian. Prints lines "NAME UNIT VALUE", and
# "lacks WHAT: WHY" for what cannot be measured here. Ends with 0; 77: no GPU can be used.
#   gpu_bench.sh [PART...]   floors twins peer host hosts mps staged streams networks holoscan
#       people; all of them
#   FRAG_ONNXRUNTIME=FOLDER: of the parts networks and holoscan, ONNX Runtime with its providers
#   HOLOSCAN=FOLDER: of the part holoscan, where Holoscan's wheel was unpacked, the folder above its
#       package; python3 has to have the wheel's version, cupy, numpy and cloudpickle
#   SECONDS_OF_STREAMS=60, STREAMS=30: of the part streams
#   NETWORKS="faces people", WAYS="gpu graphs host", NETWORK_STREAMS="1 8", NETWORK_FRAMES=1600: of
#       the part networks
set -u
cd "$(dirname "$0")" || exit 1
libraries=${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$PATH:$PWD/bin:/usr/sbin" CUDA_CACHE_PATH="$PWD/cache" FRAG_LIBRARY_PATH="$PWD/lib" FRAG_HOST_USER
FRAG_HOST_USER=$(id -un)
parts=${*:-floors twins peer host hosts mps staged streams networks holoscan people}
work=$(mktemp -d) || exit 1
trap 'stop_mps; remove_nodes; rm -rf "$work"' EXIT
mps_runs=
nodes_are_made=

us() { awk -v ns="$1" 'BEGIN { printf "%.1f", ns / 1000 }'; }
lacks() { echo "lacks $1: $2"; }
last_words() {
	{ grep -m 2 -E 'app.yaml:|error|ended by' "$work/log" || tail -n 2 "$work/log"; } | tr '\n' ' '
}

# trip NAME KERNEL COUNT HZ BYTES GPU HOSTS [ENV...]: messages from a source to a sink, in one host
# or two; sets the nine numbers that the sink wrote (tests/bench/plugin/gpu.c).
trip() {
	name=$1 kernel=$2 count=$3 hz=$4 bytes=$5 gpu=$6 hosts=$7
	shift 7
	rm -f "$work/figures"
	pool="{type: block_memory_pool, storage_type: 1, block_size: $bytes, num_blocks: 1}"
	[ "$gpu" = true ] || pool="{type: unbounded_allocator}"
	source="{type: bench_gpu_source, conditions: [{type: periodic, recess_period: ${hz}hz}],
	  parameters: {gpu: $gpu, count: $count, bytes: $bytes, allocator: \$pool}}"
	sink="{type: bench_gpu_sink,
	  parameters: {file: $work/figures, count: $count, gpu: $gpu, kernel: $kernel}}"
	if [ "$hosts" = 1 ]; then
		cat >"$work/app.yaml" <<-END
			frag: 1
			application: trip
			extensions: [libbench.so]
			resources: {pool: $pool}
			operators:
			  tx: $source
			  rx: $sink
			flows: [tx -> rx]
			scheduler: {type: greedy}
		END
		set -- "$@" bin/fragctl run
	else
		cat >"$work/app.yaml" <<-END
			frag: 1
			application: trip
			extensions: [libbench.so]
			fragments:
			  a:
			    host: one
			    resources: {pool: $pool}
			    operators:
			      tx: $source
			    scheduler: {type: greedy}
			  b:
			    host: two
			    operators:
			      rx: $sink
			    scheduler: {type: greedy}
			flows: [a.tx -> b.rx]
		END
		set -- "$@" bin/fragctl run --workers 1
	fi
	if env "$@" "$work/app.yaml" >"$work/log" 2>&1 && [ -s "$work/figures" ]; then
		# shellcheck disable=SC2046
		set -- $(cat "$work/figures")
		seen50=$3 seen99=$4 done50=$5 done99=$6 received=$1
		if [ "$received" -lt "$count" ]; then
			lacks "$name" "only $received of $count messages came"
			return 1
		fi
		return 0
	fi
	lacks "$name" "$(last_words)"
	return 1
}

# What one host takes for a message of 8 MiB, in memory of the GPU and of the host.
part_host() {
	trip same_host.8MiB.system false 2000 1000 8M false 1 &&
		echo "same_host.8MiB.system us $(us "$seen50")"
	trip same_host.8MiB.gpu false 2000 1000 8M true 1 &&
		echo "same_host.8MiB.gpu us $(us "$seen50")"
	trip same_host.8MiB.gpu.kernel true 2000 500 8M true 1 &&
		echo "same_host.8MiB.gpu.kernel us $(us "$done50")"
}

# The way that the edge took, as the summary calls it.
way() { grep -m 1 'tx.out' "$work/log" | sed 's/^ *//' | tr -s ' ' | cut -c -150; }

# A thousand messages a second, whatever their size.
part_hosts() {
	for wait in adaptive busy_poll; do
		for label in 1KiB 64KiB 1MiB 8MiB 64MiB 256MiB; do
			trip "hosts.$label.$wait" false 400 1000 "${label%iB}" true 2 FRAG_PUMP=$wait ||
				continue
			echo "hosts.$label.seen.$wait us $(us "$seen50")"
			echo "hosts.$label.seen.$wait.p99 us $(us "$seen99")"
			[ "$label" = 8MiB ] && echo "#    $(way)"
		done
	done
	kernels_of_consumer hosts
}

kernels_of_consumer() {
	for row in 1K:1KiB:200:200 8M:8MiB:200:100 64M:64MiB:60:20; do
		IFS=: read -r bytes label count hz <<-END
			$row
		END
		trip "$1.$label.kernel" true "$count" "$hz" "$bytes" true 2 FRAG_PUMP=busy_poll &&
			echo "$1.$label.kernel us $(us "$done50")" &&
			echo "$1.$label.kernel.p99 us $(us "$done99")"
	done
}

stop_mps() {
	[ -n "$mps_runs" ] && echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
	mps_runs=
}

part_mps() {
	if ! command -v nvidia-cuda-mps-control >/dev/null; then
		lacks mps "there is no nvidia-cuda-mps-control here"
		return
	fi
	export CUDA_MPS_PIPE_DIRECTORY="$work/mps" CUDA_MPS_LOG_DIRECTORY="$work/mps-log"
	mkdir -p "$work/mps" "$work/mps-log"
	if nvidia-cuda-mps-control -d >"$work/log" 2>&1; then
		mps_runs=1
		kernels_of_consumer mps
		stop_mps
	else
		lacks mps "$(last_words)"
	fi
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

remove_nodes() {
	[ -n "$nodes_are_made" ] && for n in frag-a frag-b; do ip netns delete $n; done 2>/dev/null
	nodes_are_made=
}

make_nodes() {
	ip netns add frag-a && nodes_are_made=1 && ip netns add frag-b &&
		ip link add frag-a type veth peer name frag-b &&
		ip link set frag-a netns frag-a && ip link set frag-b netns frag-b &&
		ip -n frag-a address add 10.77.0.1/24 dev frag-a &&
		ip -n frag-b address add 10.77.0.2/24 dev frag-b &&
		for n in frag-a frag-b; do
			ip -n $n link set lo up && ip -n $n link set $n up || return 1
		done
}

# Between two nodes, which two network namespaces are: driver and one worker in the first, the other
# worker in the second. Where there may be none, between two workers on loopback, which is a node.
# As many messages as go, for some seconds; the first tenth does not count.
part_staged() {
	if [ ! -e lib/frag/modules/ucx.so ]; then
		lacks staged "this kit has no module ucx"
		return
	fi
	if make_nodes >"$work/log" 2>&1; then
		in_a="ip netns exec frag-a" in_b="ip netns exec frag-b" a=10.77.0.1 b=10.77.0.2
	else
		echo "# no network namespaces, so over loopback: $(last_words)"
		remove_nodes
		in_a='' in_b='' a=127.0.0.1 b=127.0.0.1
	fi
	for row in 2MiB:2097152:4000 8MiB:8388608:1200 64MiB:67108864:160; do
		IFS=: read -r label bytes count <<-END
			$row
		END
		floor_of_tcp
		for gpu in false true; do staged $gpu; done
	done
	remove_nodes
}

# Of one connection, in the larger of two kinds of writes.
floor_of_tcp() {
	for piece in 65536 1048576; do
		$in_b bin/gpu serve 13999 "$bytes" &
		server=$!
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			sleep 0.2
			$in_a bin/gpu send "$b" 13999 "$bytes" "$count" $piece 2>"$work/log" && break
		done
		wait $server
	done | sort -n | tail -n 1 | sed "s/^/floor.tcp.$label MB\/s /"
}

staged() {
	[ "$1" = true ] && name=staged.$label.gpu || name=staged.$label.system
	rm -f "$work/figures" "$work/driver" "$work/one" "$work/two"
	cat >"$work/app.yaml" <<-END
		frag: 1
		application: staged
		extensions: [libbench.so]
		fragments:
		  f1:
		    operators:
		      tx:
		        type: bench_gpu_source
		        parameters: {gpu: $1, fresh: true, count: $count, bytes: $bytes}
		    scheduler: {type: greedy}
		  f2:
		    operators:
		      rx:
		        type: bench_gpu_sink
		        parameters: {file: $work/figures, count: $count, gpu: $1}
		    scheduler: {type: greedy}
		flows: [{from: f1.tx, to: f2.rx, edge: ucx}]
	END
	$in_a bin/driverd --address "$a:13998" --app "$work/app.yaml" --insecure >"$work/log" 2>&1 &
	driver=$!
	$in_a bin/workerd --address "$a:13998" --fragments f1 --name one --once --insecure \
		>"$work/one" 2>&1 &
	one=$!
	$in_b bin/workerd --address "$a:13998" --fragments f2 --name two --once --insecure \
		--allow-write "$work" >"$work/two" 2>&1 &
	two=$!
	wait $driver
	kill $one $two 2>/dev/null
	wait $one $two
	if [ ! -s "$work/figures" ]; then
		cat "$work/one" "$work/two" >>"$work/log"
		lacks "$name" "$(last_words)"
		return
	fi
	# shellcheck disable=SC2046
	set -- $(cat "$work/figures")
	awk -v name="$name" -v n="${10}" -v bytes="$7" -v span="$8" -v first="${11}" 'BEGIN {
		printf "%s MB/s %.1f\n", name, n * bytes / (span / 1000)
		printf "%s.first ms %.1f\n", name, first / 1e6 }'
}

part_floors() { bin/gpu floors || { [ $? = 77 ] && exit 77; lacks floors "see above"; }; }
part_twins() { bin/twins || { [ $? = 77 ] && exit 77; lacks twins "see above"; }; }

part_peer() {
	if bin/gpu peer >"$work/log" 2>&1; then cat "$work/log"; else lacks peer "$(last_words)"; fi
}

# examples/people, in the folder beside that make gpu-check-people makes.
part_people() {
	if [ -x ../gpu-check-people/people_check.sh ]; then
		../gpu-check-people/people_check.sh 2>&1 |
			grep --line-buffered -E "^(people|ok|FAIL|lacks)"
	else
		lacks people "make gpu-check-people was not run"
	fi
}

# Streams of 1080p60 through format_converter, one source and one sink for each.
part_streams() {
	seconds=${SECONDS_OF_STREAMS:-60} streams=${STREAMS:-30}
	count=$((seconds * 60)) i=0
	rm -f "$work"/stream.*
	{
		printf 'frag: 1\napplication: streams\nextensions: [libbench.so]\nresources:\n'
		while [ $i -lt "$streams" ]; do
			echo "  pool$i:"
			echo "    {type: block_memory_pool, storage_type: 1, block_size: 11059200, num_blocks: 4}"
			i=$((i + 1))
		done
		echo "operators:"
		i=0
		while [ $i -lt "$streams" ]; do
			cat <<-END
				  tx$i:
				    type: bench_gpu_source
				    parameters: {rows: 1080, columns: 1920, count: $count}
				    conditions: [{type: periodic, recess_period: 60hz}]
				  fc$i:
				    type: format_converter
				    parameters:
				      out_dtype: float32
				      resize_width: 1280
				      resize_height: 720
				      resize_mode: 2
				      out_layout: chw
				      pool: \$pool$i
				  rx$i:
				    type: bench_gpu_sink
				    parameters:
				      {file: $work/stream.$i, count: $count, period_ns: 16666667}
			END
			i=$((i + 1))
		done
		echo "flows:"
		i=0
		while [ $i -lt "$streams" ]; do
			printf '  - tx%d -> fc%d.source_video\n  - fc%d -> rx%d\n' $i $i $i $i
			i=$((i + 1))
		done
		echo "scheduler: {type: event_based, worker_thread_number: 4}"
	} >"$work/app.yaml"
	if ! bin/fragctl run "$work/app.yaml" >"$work/log" 2>&1; then
		lacks streams "$(last_words)"
		return
	fi
	cat "$work"/stream.* | awk -v streams="$streams" -v count="$count" -v seconds="$seconds" '
		{ received += $1; late += $2; if ($5 > p50) p50 = $5; if ($6 > p99) p99 = $6
		  if ($9 > cpu) cpu = $9 }
		END {
			printf "streams.%d.frames n %d\n", streams, received
			printf "streams.%d.missed n %d\n", streams, streams * count - received + late
			printf "streams.%d.latency.worst_p50 us %.1f\n", streams, p50 / 1000
			printf "streams.%d.latency.worst_p99 us %.1f\n", streams, p99 / 1000
			printf "streams.%d.cpu cores %.2f\n", streams, cpu / 1e9 / seconds
		}'
}

# choose NETWORK: of the functions below: its file, what is sent to it, its outputs, its input.
# faces: pictures of 768 x 576; people: the four parts of a picture that examples/people makes.
choose() {
	if [ "$1" = faces ]; then
		model=models/centerface-1.onnx sides="1 3 576 768"
		picture="planes: true, rows: 576, columns: 768"
		outputs='"537", "538", "539", "540"'
	else
		model=models/person-detection.onnx sides="4 300 300 3"
		picture="pictures: 4, rows: 300, columns: 300"
		outputs='"detection_boxes:0", "detection_scores:0"'
	fi
}

# network NAME STREAMS HZ GPU PARAMETERS [ENV...]: pictures of one or several sources through a
# network, each with an operator and a session of its own; HZ 0: as fast as they go. Sets rate, p50
# and p99 in ms.
network() {
	name=$1 streams=$2 hz=$3 gpu=$4 parameters=$5 i=0
	shift 5
	rm -f "$work"/stream.*
	storage=1
	[ "$gpu" = true ] || storage=0
	condition=
	[ "$hz" = 0 ] || condition="conditions: [{type: periodic, recess_period: ${hz}hz}],"
	{
		printf 'frag: 1\napplication: networks\nextensions: [libbench.so]\noperators:\n'
		while [ $i -lt "$streams" ]; do
			cat <<-END
				  tx$i: {type: bench_gpu_source, $condition
				    parameters: {gpu: $gpu, $picture, count: $count}}
				  detect$i:
				    type: inference
				    conditions:
				      - {type: memory_available, allocator: \$pool$i, min_blocks: 4}
				    parameters:
				      backend: onnxruntime
				      provider: cuda
				      model_path_map: {m: $PWD/$model}
				      pre_processor_map: {m: [""]}
				      inference_map: {m: [$outputs]}
				      allocator: \$pool$i
				$parameters
				  rx$i: {type: bench_gpu_sink,
				    parameters: {file: $work/stream.$i, count: $count, gpu: $gpu}}
			END
			i=$((i + 1))
		done
		echo "resources:"
		i=0
		while [ $i -lt "$streams" ]; do
			echo "  pool$i:"
			echo "    {type: block_memory_pool, storage_type: $storage, block_size: 2M, num_blocks: 48}"
			i=$((i + 1))
		done
		echo "flows:"
		i=0
		while [ $i -lt "$streams" ]; do
			printf '  - tx%d -> detect%d.receivers\n  - detect%d -> rx%d\n' $i $i $i $i
			i=$((i + 1))
		done
		echo "scheduler: {type: event_based, worker_thread_number: 4}"
	} >"$work/app.yaml"
	if ! env "$@" bin/fragctl run "$work/app.yaml" >"$work/log" 2>&1; then
		lacks "$name" "$(last_words)"
		return 1
	fi
	summarise
}

# Sets rate, p50 and p99 from what the sinks have written.
summarise() {
	# shellcheck disable=SC2046
	set -- $(cat "$work"/stream.* | awk '
		{ rate += $10 / ($8 / 1e9); if ($3 > p50) p50 = $3; if ($4 > p99) p99 = $4 }
		END { printf "%.1f %.3f %.3f", rate, p50 / 1e6, p99 / 1e6 }')
	rate=$1 p50=$2 p99=$3
}

# What is copied to the host for a frame, and how often a thread waits for the GPU: the difference
# between a run and one that is twice as long, of all libraries in the process (copies.c).
copies() {
	rm -f "$work/copies"
	for count in 200 400; do
		network "$1.copies" 1 0 "$2" "$3" CUDA_INJECTION64_PATH="$PWD/lib/copies.so" \
			BENCH_COPIES="$work/copies" || return
	done
	awk -v name="$1" '
		{ bytes[NR] = $1; waits[NR] = $3; lost += $4 }
		END {
			if (NR != 2 || lost > 0) {
				printf "lacks %s.copies: %d of 2 counts, %d lost\n", name, NR, lost
				exit
			}
			printf "%s.to_host B/frame %.1f\n", name, (bytes[2] - bytes[1]) / 200
			printf "%s.waits n/frame %.2f\n", name, (waits[2] - waits[1]) / 200
		}' "$work/copies" 2>&1 | tail -n 2
}

# Networks by ONNX Runtime in a loop, and in frag.
part_networks() {
	if [ -z "${FRAG_ONNXRUNTIME:-}" ]; then
		lacks networks "set FRAG_ONNXRUNTIME to its folder"
		return
	fi
	if [ ! -e models/centerface-1.onnx ]; then
		lacks networks "make deps-ai was not run before make gpu-check-kit"
		return
	fi
	for network in ${NETWORKS:-faces people}; do
		choose "$network"
		[ "$network" = faces ] && name=network || name=network.$network
		alone "$name.alone" 1 "$model" "$sides"
		[ "$network" = faces ] && alone "$name.alone" 8 models/centerface-8.onnx "8 3 576 768"
		ways "$name"
	done
	case " ${NETWORKS:-faces people} " in *" faces "*) ;; *) return ;; esac
	count=400
	batch network.batch.8 0 && echo "network.batch.8 frames/s $rate"
	count=300
	batch network.batch.8.latency 25 && echo "network.batch.8.p50 ms $p50" &&
		echo "network.batch.8.p99 ms $p99"
}

# alone NAME PICTURES MODEL SIDES: ONNX Runtime in a loop; PICTURES: that a run is for
alone() {
	for how in cuda:resident graphs:resident cuda:host; do
		label=$1.${how#*:}.$2
		[ "${how%:*}" = cuda ] || label=$1.graphs.$2
		# shellcheck disable=SC2046,SC2086
		set -- "$1" "$2" "$3" "$4" $(bin/network "$3" "${how%:*}" "${how#*:}" 1000 $4 \
			2>"$work/log")
		[ $# = 7 ] || { lacks "$label" "$(last_words)"; continue; }
		echo "$label frames/s $(awk -v r="$5" -v b="$2" 'BEGIN { print r * b }')"
		echo "$label.p50 ms $6"
		echo "$label.p99 ms $7"
		set -- "$1" "$2" "$3" "$4"
	done
}

# ways NAME: the chosen network in frag
ways() {
	row=$1
	for way in ${WAYS:-gpu graphs host}; do
		gpu=true parameters=
		[ "$way" = graphs ] && parameters="      enable_cuda_graphs: true"
		[ "$way" = host ] && gpu=false parameters="      transmit_on_cuda: false"
		for streams in ${NETWORK_STREAMS:-1 8}; do
			count=$((${NETWORK_FRAMES:-1600} / streams + 200))
			network "$row.$way.$streams" "$streams" 0 "$gpu" "$parameters" &&
				echo "$row.$way.$streams frames/s $rate"
			count=$((${NETWORK_FRAMES:-1600} * 3 / 16))
			network "$row.$way.$streams.latency" "$streams" $((200 / streams)) "$gpu" \
				"$parameters" &&
				echo "$row.$way.$streams.p50 ms $p50" &&
				echo "$row.$way.$streams.p99 ms $p99"
		done
		copies "$row.$way" "$gpu" "$parameters"
	done
}

# Eight sources through one network, a run for all that wait; HZ as in network.
batch() {
	name=$1 hz=$2 i=0
	rm -f "$work"/stream.*
	condition=
	[ "$hz" = 0 ] || condition="conditions: [{type: periodic, recess_period: ${hz}hz}],"
	{
		cat <<-END
			frag: 1
			application: networks
			extensions: [libbench.so]
			resources:
			  pool: {type: block_memory_pool, storage_type: 1, block_size: 12M,
			    num_blocks: 72}
			scheduler: {type: event_based, worker_thread_number: 4}
			operators:
			  detect:
			    type: inference
			    metadata_policy: update
			    conditions: [{type: memory_available, allocator: \$pool, min_blocks: 4}]
			    parameters:
			      backend: onnxruntime
			      provider: cuda
			      model_path_map: {face: $PWD/models/centerface-8.onnx}
			      pre_processor_map: {face: [""]}
			      inference_map: {face: ["537", "538", "539", "540"]}
			      allocator: \$pool
			      batch:
			        {size: 8, max_delay: 5ms, cameras: [a0, a1, a2, a3, a4, a5, a6, a7]}
		END
		while [ $i -lt 8 ]; do
			cat <<-END
				  tx$i: {type: bench_gpu_source, $condition
				    parameters: {gpu: true, planes: true, rows: 576, columns: 768,
				      count: $count}}
				  rx$i: {type: bench_gpu_sink,
				    parameters: {file: $work/stream.$i, count: $count, gpu: true}}
			END
			i=$((i + 1))
		done
		echo "flows:"
		i=0
		while [ $i -lt 8 ]; do
			echo "  - {from: tx$i, to: detect.receivers, capacity: 8}"
			echo "  - {from: detect.a$i, to: rx$i, capacity: 8}"
			i=$((i + 1))
		done
	} >"$work/app.yaml"
	if ! bin/fragctl run "$work/app.yaml" >"$work/log" 2>&1; then
		lacks "$name" "$(last_words)"
		return 1
	fi
	summarise
}

# What Holoscan's wheel is linked with and does not use: holoscan/stand_ins.c says why. The links
# are those that pip makes.
holoscan_libraries() {
	so=$work/holoscan
	mkdir -p "$so"
	echo 'VERS_1.22.1 { global: OrtGetApiBase; };' >"$work/map"
	cc -shared -fPIC -O2 holoscan/stand_ins.c -Wl,--version-script="$work/map" \
		-Wl,-soname,libonnxruntime.so.1 -o "$so/libonnxruntime.so.1" -ldl || return
	for name in nvinfer_plugin nvonnxparser; do
		cc -shared -fPIC -O2 holoscan/stand_ins.c -Wl,-soname,lib$name.so.10 \
			-o "$so/lib$name.so.10" -ldl || return
	done
	for file in "$HOLOSCAN"/holoscan/lib/*.so.*; do
		name=${file##*/}
		ln -sf "$file" "$so/$(echo "$name" | sed 's/\(\.so\.[0-9]*\).*/\1/')"
	done
}

# holoscan ALLOCATOR SCHEDULER WHAT: prints the numbers of inference.py.
holoscan() {
	lib=$HOLOSCAN/holoscan/lib
	# shellcheck disable=SC3045 # dash has it; Holoscan advises it
	ulimit -s 32768 2>/dev/null
	ONNXRUNTIME=$(echo "$FRAG_ONNXRUNTIME"/libonnxruntime.so.1.*) \
		PYTHONPATH="$HOLOSCAN${PYTHONPATH:+:$PYTHONPATH}" \
		LD_LIBRARY_PATH="$so:$lib:$lib/gxf_extensions:$libraries:$FRAG_ONNXRUNTIME" \
		timeout 60 python3 holoscan/inference.py models/centerface-1.onnx "$@" \
		2>"$work/log" | grep -E '^[0-9.]+( [0-9.]+)?$'
}

# The network that finds faces by Holoscan's InferenceOp, each run in a process of its own, and by
# frag before and behind them.
part_holoscan() {
	if [ -z "${HOLOSCAN:-}" ] || [ -z "${FRAG_ONNXRUNTIME:-}" ]; then
		lacks holoscan "set HOLOSCAN and FRAG_ONNXRUNTIME to their folders"
		return
	fi
	holoscan_libraries >"$work/log" 2>&1 || { lacks holoscan "$(last_words)"; return; }
	holoscan_beside 1
	for allocator in unbounded rmm; do
		for scheduler in greedy event_based; do
			for what in rate waits latency; do
				name=holoscan.$allocator.$scheduler
				# shellcheck disable=SC2046
				set -- $(holoscan "$allocator" "$scheduler" "$what")
				case $what:$# in
				latency:2)
					echo "$name.p50 ms $1"
					echo "$name.p99 ms $2"
					;;
				rate:1) echo "$name frames/s $1" ;;
				waits:1) echo "$name.waits frames/s $1" ;;
				*) lacks "$name.$what" "$(last_words)" ;;
				esac
			done
		done
	done
	holoscan_beside 2
}

holoscan_beside() {
	choose faces
	for graphs in false true; do
		row=holoscan.frag.graphs_$graphs.$1
		count=1800
		network "$row" 1 0 true "      enable_cuda_graphs: $graphs" &&
			echo "$row frames/s $rate"
		count=500
		network "$row.latency" 1 200 true "      enable_cuda_graphs: $graphs" &&
			echo "$row.p50 ms $p50" && echo "$row.p99 ms $p99"
	done
}

echo "# gpu_bench: $(uname -r), $(nproc) cores; $(nvidia-smi \
	--query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no nvidia-smi')"
for part in $parts; do
	echo "# $part"
	"part_$part"
done
