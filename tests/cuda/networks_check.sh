#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What networks on a GPU may meet, with ONNX Runtime, in the folder of make gpu-check-people.
#   FRAG_ONNXRUNTIME=FOLDER: ONNX Runtime with its provider for CUDA (docs/INFERENCE.md)
#   KILLS=14: hosts that are killed, each later after the start than the one before
# Ends with 0: all is well; 77: no GPU can be used.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_CACHE_PATH="$PWD/cache" FRAG_HOST_USER
FRAG_HOST_USER=$(id -un)
bin/gpu_check free >log || {
	code=$?
	cat log
	exit $code
}
good=networks/ultrasound_segmentation.onnx rx='{type: ping_tensor_rx}' failed=0

# app MODEL PARAMETERS SINK ROWS COUNT: a graph of a tensor that is a picture, and the model.
app() {
	cat >app.yaml <<-END
		frag: 1
		application: networks
		resources: {pool: {type: unbounded_allocator}}
		operators:
		  tx:
		    type: ping_tensor_tx
		    conditions:
		      - {type: count, count: ${5:-3}}
		      - {type: periodic, recess_period: 100hz}
		    parameters:
		      {storage_type: device, batch_size: 1, rows: ${4:-256}, columns: 256,
		       channels: 3, data_type: float, tensor_name: x, allocator: \$pool}
		  detect:
		    type: inference
		    parameters:
		      {backend: onnxruntime, provider: cuda, model_path_map: {m: $1},
		       pre_processor_map: {m: [x]}, inference_map: {m: [y]}, allocator: \$pool$2}
		  rx: $3
		flows: [tx -> detect.receivers, detect -> rx.${6:-in}]
	END
}

ends() { # NAME CODE SENTENCE: runs app.yaml
	bin/fragctl run app.yaml >log 2>&1
	code=$?
	if [ $code = "$2" ] && grep -qE "$3" log; then
		echo "ok   $1"
	else
		failed=1
		echo "FAIL $1: exit code $code, and no \"$3\" in"
		tail -n 5 log
	fi
}

app $good '' "$rx"
ends "a network" 0 "rx received message 3"
app networks/unknown.onnx '' "$rx"
ends "an operation that the engine lacks" 1 "uses operations that ONNX Runtime does not have"
app $good '' "$rx" 255
ends "another shape" 1 'wants its input "INPUT__0" as f32 \[1, 256, 256, 3\].*\[1, 255, 256, 3\]'
for graphs in false true; do
	app networks/nan.onnx ", enable_cuda_graphs: $graphs" \
		'{type: segmentation_postprocessor, parameters: {in_tensor_name: y, data_format: nchw}}' \
		256 3 in_tensor
	ends "numbers that are none, graphs $graphs" 1 "holds numbers that are none \(NaN\)"
done
truncate -s 2200M big.onnx
app big.onnx '' "$rx"
ends "a file of more than 2 GB" 1 "a file of ONNX has 2 GB at most"
rm -f big.onnx
app $good ', gpu_memory: 64K' "$rx"
ends "less memory than the network needs" 1 "smaller than requested bytes of .*; give it smaller"

# Another process takes what the GPU has free, while the network runs.
blocks=$(($(bin/gpu_check free) / 1048576))
app $good '' "$rx" 256 1000
bin/fragctl run app.yaml >log 2>&1 &
app=$!
cat >full.yaml <<END
frag: 1
application: full
resources: {pool: {type: block_memory_pool, storage_type: 1, block_size: 1Gi, num_blocks: $blocks}}
operators:
  tx:
    type: ping_tensor_tx
    parameters: {storage_type: device, rows: 1024, columns: 1024, allocator: \$pool}
    conditions: [{type: count, count: 30}, {type: periodic, recess_period: 10hz}]
  rx: $rx
flows: [tx -> rx]
END
for _ in $(seq 300); do
	grep -q "received message 5:" log && break
	sleep 0.1
done
while [ "$blocks" -gt 0 ] && ! bin/fragctl run full.yaml >full.log 2>&1; do
	blocks=$((blocks - 1))
	sed -i "s/num_blocks: [0-9]*/num_blocks: $blocks/" full.yaml
done
if wait $app || grep -q "cannot make a tensor\|out of memory" log; then
	echo "ok   a GPU of which another process took $blocks GiB: $(grep -m 1 "^networks:" log)"
else
	failed=1
	echo "FAIL a GPU whose memory another process takes"
	tail -n 5 log
fi
app $good '' "$rx"
ends "the same network behind it" 0 "rx received message 3"

# Hosts that share memory of the GPU are killed in each phase.
hosts() {
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe")" = "$PWD/libexec/frag/fraghost" ] && echo "${process#/proc/}"
	done 2>/dev/null
}
cat >app.yaml <<END
frag: 1
application: networks
fragments:
  a:
    host: one
    resources: {pool: {type: block_memory_pool, storage_type: 1, block_size: 1M, num_blocks: 8}}
    operators:
      tx:
        type: ping_tensor_tx
        conditions: [{type: periodic, recess_period: 500hz}]
        parameters:
          {storage_type: device, batch_size: 1, rows: 256, columns: 256, channels: 3,
           data_type: float, tensor_name: x, allocator: \$pool}
  b:
    host: two
    resources: {pool: {type: block_memory_pool, storage_type: 1, block_size: 1M, num_blocks: 16}}
    operators:
      detect:
        type: inference
        conditions: [{type: memory_available, allocator: \$pool, min_blocks: 2}]
        parameters:
          {backend: onnxruntime, provider: cuda, model_path_map: {m: $good},
           pre_processor_map: {m: [x]}, inference_map: {m: [y]}, allocator: \$pool}
      rx: $rx
    flows: [detect -> rx]
flows: [a.tx -> b.detect.receivers]
END
before=$(bin/gpu_check free) killed=0
for i in $(seq "${KILLS:-14}"); do
	bin/fragctl run --workers 1 app.yaml >log 2>&1 &
	app=$!
	sleep "$(awk -v i="$i" 'BEGIN { print 0.15 + i * 0.3 }')"
	victim=$(hosts | sort -n | if [ $((i % 2)) = 0 ]; then head -n 1; else tail -n 1; fi)
	[ -z "$victim" ] || { kill -9 "$victim" && killed=$((killed + 1)); }
	[ -n "$victim" ] || kill $app
	wait $app && { failed=1; echo "FAIL a run whose host was killed ended well"; }
done
after=$(bin/gpu_check free)
what="$killed kills of hosts: $before KiB of the GPU were free before, $after after"
if [ "$after" -lt "$before" ] || [ -n "$(hosts)" ]; then
	failed=1
	echo "FAIL $what, and these hosts are left: $(hosts)"
else
	echo "ok   $what"
fi
exit $failed
