#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the tests that need a GPU, in the folder that make gpu-check makes; it needs nothing else of
# frag, and nothing of Debian. Ends with 0: all is well; 77: no GPU can be used.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# What the driver compiles is kept between processes.
export CUDA_CACHE_PATH="$PWD/cache"
bin/gpu_check || exit $?
# A worker offers the GPUs to fragments that require them.
offer=$(bin/workerd --version -v | grep -E "^(this worker offers|the memory of GPUs)")
if echo "$offer" | grep -qE "gpu [1-9].*gpuMemory [0-9.]+ [GT]iB"; then
	echo "ok   $offer"
else
	echo "FAIL $offer"
	exit 1
fi
for storage in host device cuda_managed; do
	for pool in "{type: block_memory_pool, storage_type: 0, block_size: 2K, num_blocks: 3}" \
		"{type: block_memory_pool, storage_type: 1, block_size: 2K, num_blocks: 3}" \
		"{type: rmm_allocator}" "{type: stream_ordered_allocator}" \
		"{type: unbounded_allocator}"; do
		case "$storage $pool" in
		host*storage_type:\ 1* | host*stream* | device*storage_type:\ 0*) continue ;;
		cuda_managed*block* | cuda_managed*rmm* | cuda_managed*stream*) continue ;;
		esac
		cat >app.yaml <<-END
			frag: 1
			application: gpu_check
			resources: {pool: $pool}
			operators:
			  tx:
			    type: ping_tensor_tx
			    parameters: {allocator: \$pool, storage_type: $storage}
			    conditions: [{type: count, count: 20}]
			  rx: {type: ping_tensor_rx, parameters: {verify: true}}
			flows: [tx -> rx]
		END
		if bin/fragctl run app.yaml >log 2>&1 && grep -q "rx received message 20" log; then
			echo "ok   $storage from $pool"
		else
			echo "FAIL $storage from $pool"
			cat log
			exit 1
		fi
	done
done
# Holoscan's conditions of CUDA behind an operator that launches on a stream, in a part of the GPU.
for condition in cuda_stream cuda_buffer "cuda_event, event_name: big"; do
	for context in "" ", cuda_green_context: \$part"; do
		cat >app.yaml <<-END
			frag: 1
			application: gpu_check
			resources:
			  pool: {type: unbounded_allocator}
			  parts: {type: cuda_green_context_pool, num_partitions: 2}
			  part: {type: cuda_green_context, green_context_pool: \$parts, index: 1}
			  streams: {type: cuda_stream_pool$context}
			operators:
			  tx:
			    type: ping_tensor_tx
			    parameters:
			      {allocator: \$pool, storage_type: device,
			       rows: 180, columns: 320, channels: 3}
			    conditions: [{type: count, count: 20}]
			  convert:
			    type: format_converter
			    resources: [\$streams]
			    parameters:
			      {pool: \$pool, out_dtype: float32, out_tensor_name: big,
			       resize_width: 1280, resize_height: 720}
			  rx: {type: ping_tensor_rx, conditions: [{type: $condition}]}
			flows: [tx -> convert, convert -> rx]
		END
		if bin/fragctl run app.yaml >log 2>&1 && grep -q "rx received message 20" log; then
			echo "ok   $condition$context"
		else
			echo "FAIL $condition$context"
			cat log
			exit 1
		fi
	done
done
# The example cuda.
if [ -e bin/test_invert ]; then
	LD_LIBRARY_PATH="$PWD/lib:$LD_LIBRARY_PATH" bin/test_invert >log 2>&1 &&
		grep -q "all tests passed" log &&
		FRAG_LIBRARY_PATH="$PWD/lib" bin/fragctl run example_cuda.yaml >>log 2>&1 &&
		grep -q "mean 252" log || {
		echo "FAIL examples/cuda"
		cat log
		exit 1
	}
	echo "ok   examples/cuda"
fi
# Between two hosts of a worker: through memory of the host, and onto the GPU again.
cat >app.yaml <<END
frag: 1
application: gpu_check
extensions: [libgpu.so]
fragments:
  a:
    host: one
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {storage_type: device, rows: 1024, columns: 1024}
        conditions: [{type: count, count: 100}]
  b:
    host: two
    operators: {rx: {type: gpu_sink}}
flows: [a.tx -> b.rx]
END
if FRAG_LIBRARY_PATH="$PWD/lib" FRAG_HOST_USER=$(id -un) bin/fragctl run --workers 1 app.yaml \
	>log 2>&1 && grep -q "tensor 100 is whole, on device 2" log; then
	echo "ok   device memory between two hosts"
	grep "tx.out" log
else
	echo "FAIL device memory between two hosts"
	cat log
	exit 1
fi
# Between two hosts of a worker, mapped.
export FRAG_LIBRARY_PATH="$PWD/lib" FRAG_HOST_USER="$(id -un)"
between() { # rows of 1 KiB, messages, pool
	blocks="block_memory_pool, storage_type: 1, block_size: $1K, num_blocks: 8"
	cat >app.yaml <<-END
		frag: 1
		application: gpu_check
		extensions: [libgpu.so]
		fragments:
		  a:
		    host: one
		    resources:
		      pool: {type: ${3:-$blocks}}
		    operators:
		      tx:
		        type: ping_tensor_tx
		        parameters:
		          {storage_type: device, rows: $1, columns: 1024, allocator: \$pool}
		        conditions: [{type: count, count: $2}]
		  b:
		    host: two
		    operators: {rx: {type: gpu_sink}}
		flows: [a.tx -> b.rx]
	END
}
bin/gpu_check write || exit 1
bin/gpu_check limit || exit 1
for rows in 1 1024 65536; do
	between $rows 50
	if bin/fragctl run --workers 1 app.yaml >log 2>&1 &&
		grep -q "tensor 50 is whole, on device 2" log &&
		grep "GPU memory mapped$" log; then
		echo "ok   $rows KiB of device memory, mapped by the other host"
	else
		echo "FAIL $rows KiB of device memory, mapped by the other host"
		cat log
		exit 1
	fi
done
for pool in rmm_allocator stream_ordered_allocator; do
	between 1024 50 $pool
	if bin/fragctl run --workers 1 app.yaml >log 2>&1 &&
		grep -q "tensor 50 is whole, on device 2" log &&
		grep "GPU memory mapped$" log; then
		echo "ok   1024 KiB of $pool, mapped by the other host"
	else
		echo "FAIL 1024 KiB of $pool, mapped by the other host"
		cat log
		exit 1
	fi
done
# Where there is a second GPU, beside CUDA_VISIBLE_DEVICES.
if echo "$offer" | grep -qE "gpu ([2-9]|[1-9][0-9])"; then
	./gpus_check.sh || exit 1
fi
# Hosts that are killed give everything back: GPU_KILLS=n, 200 if nothing is said.
hosts() {
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/exe")" = "$PWD/libexec/frag/fraghost" ] &&
			grep -q tensor log && echo "${process#/proc/}"
	done 2>/dev/null
}
kill_one() { # the first or the last
	: >log
	bin/fragctl run --workers 1 app.yaml >log 2>&1 &
	app=$!
	for _ in $(seq 600); do
		grep -q "tensor 5 is whole" log && break
		sleep 0.05
	done
	victim=$(hosts | $1 -n 1)
	if [ -z "$victim" ]; then
		echo "FAIL no host to kill"
		cat log
		exit 1
	fi
	kill -9 "$victim"
	wait $app
}
between 64 1000000
kill_one head
before=$(bin/gpu_check free)
kills=${GPU_KILLS:-200}
for i in $(seq "$kills"); do
	if [ $((i % 2)) = 0 ]; then kill_one head; else kill_one tail; fi
done
after=$(bin/gpu_check free)
what="$kills kills of hosts: $before KiB of the GPU were free before, $after after"
if [ "$after" -lt "$before" ]; then
	echo "FAIL $what"
	exit 1
fi
echo "ok   $what"
