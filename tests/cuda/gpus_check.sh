#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What needs two GPUs of one machine, in the folder that make gpu-check-kit makes: how tensors go
# from a host on one GPU to a host on the other, beside what fragctl describe says before, and a
# worker for each GPU. gpu_check.sh runs it where there are two. Ends with 0: all is well.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_CACHE_PATH="$PWD/cache" FRAG_LIBRARY_PATH="$PWD/lib" FRAG_HOST_USER
FRAG_HOST_USER=$(id -un)

fail() { # WHAT [FILE...]
	echo "FAIL $1"
	shift
	cat "$@"
	exit 1
}

# pair POOL SINK MESSAGES A B USES: two fragments, each in a host of its own; POOL, SINK: the GPU of
# the sender's memory and of the receiver's; A, B: requirements; USES: the receiver uses GPU 0.
pair() {
	cat >pair.yaml <<-END
		frag: 1
		application: gpus_check
		extensions: [libgpu.so]
		fragments:
		  a:
		    host: one
		    requirements: {$4}
		    resources:
		      pool:
		        {type: block_memory_pool, storage_type: 1, block_size: 1M, num_blocks: 8$1}
		    operators:
		      tx:
		        type: ping_tensor_tx
		        parameters:
		          {storage_type: device, rows: 1024, columns: 1024, allocator: \$pool}
		        conditions: [{type: count, count: $3}]
		  b:
		    host: two
		    requirements: {$5}
		    resources:
		      own:
		        {type: block_memory_pool, storage_type: 1, block_size: 1M, num_blocks: 2$2}
		    operators:
		      rx: {type: gpu_sink, resources: [\$own], parameters: {use_gpu: $6}}
		flows: [a.tx -> b.rx]
	END
}

# What the summary says of the memory of a flow, and what was said of it before.
happened() { grep -m 1 "a.tx.out" pair.log | tr -s ' '; }
predicted() { bin/fragctl describe pair.yaml | sed -n 's/^ *GPU memory: //p'; }

# goes WHAT HOW SENTENCE: it goes so, and describe said so.
goes() {
	if ! bin/fragctl run --workers 1 pair.yaml >pair.log 2>&1 ||
		! grep -q "tensor 50 is whole" pair.log; then
		fail "$1" pair.log
	fi
	happened | grep -q "GPU memory $2" || fail "$1: not $2" pair.log
	predicted | grep -q "$3" || fail "$1: describe says: $(predicted)"
	echo "ok   $1: $2"
	echo "     $(happened)"
	echo "     before: $(predicted)"
}

pair "" ", dev_id: 1" 50 "" "" true
goes "from a host on GPU 0 to one that uses both" mapped "mapped where both hosts see the same GPU 0"
pair "" ", dev_id: 1" 50 "" "" false
goes "from a host on GPU 0 to one on GPU 1" staged "else staged; .* own memory is on GPU 1"
pair ", dev_id: 1" "" 50 "" "" true
goes "from a host on GPU 1 to one on GPU 0" staged "else staged; .* own memory is on GPU 0"

# A converter whose pool lies on the other GPU refuses frames.
cat >app.yaml <<END
frag: 1
application: gpus_check
resources:
  a: {type: block_memory_pool, storage_type: 1, block_size: 1M, num_blocks: 8}
  b: {type: block_memory_pool, storage_type: 1, dev_id: 1, block_size: 1M, num_blocks: 8}
operators:
  tx:
    type: ping_tensor_tx
    parameters: {storage_type: device, rows: 180, columns: 320, channels: 3, allocator: \$a}
    conditions: [{type: count, count: 20}]
  convert: {type: format_converter, parameters: {pool: \$b, out_dtype: float32}}
  rx: {type: ping_tensor_rx}
flows: [tx -> convert, convert -> rx]
END
if bin/fragctl run app.yaml >log 2>&1 || ! grep -q "its input came in memory of GPU 0" log; then
	fail "a converter on GPU 1 with frames of GPU 0" log
fi
echo "ok   a converter on GPU 1 refuses frames of GPU 0"

# A worker for each GPU. Both fragments need one, and each worker has one; labels say which.
# What a worker's host calls GPU 0 is another GPU for the other, so nothing can be mapped.
workers() { # WHAT: runs pair.yaml with both
	timeout 60 bin/driverd --address 127.0.0.1:47773 --app pair.yaml >pair.log 2>&1 &
	driver=$!
	for n in 0 1; do
		name=$([ $n = 0 ] && echo left || echo right)
		CUDA_VISIBLE_DEVICES=$n bin/workerd --address 127.0.0.1:47773 --name $name \
			--label gpu=$name --once >$name.log 2>&1 &
	done
	wait $driver || fail "a worker for each GPU, $1" pair.log left.log right.log
	wait
	ran_a=$(sed -n 's/.* a runs on worker \([a-z]*\).*/\1/p' pair.log)
	ran_b=$(sed -n 's/.* b runs on worker \([a-z]*\).*/\1/p' pair.log)
	[ "$ran_a" != "$ran_b" ] || fail "both fragments on one of two workers, $1" pair.log
	cat left.log right.log | grep -q "tensor 50 is whole" ||
		fail "a worker for each GPU, $1: the tensors are not whole" right.log
	happened | grep -q "GPU memory staged" || fail "memory of another GPU is mapped, $1" pair.log
	echo "ok   a worker for each GPU, $1: a on $ran_a, b on $ran_b, staged"
	echo "     $(happened)"
	echo "     before: $(predicted)"
}
pair "" "" 50 "gpu: 1, labels: {gpu: left}" "gpu: 1, labels: {gpu: right}" true
workers "by labels"
[ "$ran_a$ran_b" = leftright ] || fail "the labels were not looked at" pair.log
pair "" "" 50 "gpu: 1" "gpu: 1" true
workers "by what is free"
sed -i 's/gpu: 1/gpu: 2/' pair.yaml
timeout 15 bin/fragctl run --workers 1 pair.yaml >log 2>&1 &&
	fail "two fragments had 2 GPUs each" log
grep -q "of 2 gpu are free, and 2 are required" log ||
	fail "a fragment that has to wait for 2 GPUs has no sentence" log
echo "ok   two fragments with 2 GPUs each: $(grep -om 1 "no worker fits.*" log)"
