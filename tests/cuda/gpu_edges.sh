#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures tensors in device memory between two hosts of this machine, in the folder that make
# gpu-check-kit makes, beside floors: copies between GPU and pinned memory, and a TCP connection
# over loopback. A message a time ("paced": the latency of an edge that is idle), and as fast as the
# edge takes them ("full speed": the rate; a message then waits for those before it); the latter
# also with tensors in memory of the host. The first messages take 20 ms and more, because streams
# and memory are made then: at full speed there are as many messages as make that small.
#
# usage: gpu_edges.sh [EDGE...]     shm, ucx; both; none: only what is with UCX_DIR
# UCX_DIR: the folder of another UCX with CUDA; its ucx_perftest, if it is in bin, runs beside.
set -u
cd "$(dirname "$0")" || exit 1
export LD_LIBRARY_PATH="$PWD/deps${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export FRAG_LIBRARY_PATH="$PWD/lib"
FRAG_HOST_USER=$(id -un)
export FRAG_HOST_USER

# EDGE BYTES COUNT PERIOD_MS FLAGS...; 0: full speed. memory: gpu, host
memory=gpu
run() {
	edge=$1 bytes=$2 count=$3 period=$4
	shift 4
	on_gpu=true also=
	[ $memory = gpu ] || on_gpu=false
	[ "$period" = 0 ] || also=", {type: periodic, recess_period: ${period}ms}"
	cat >app.yaml <<-END
		frag: 1
		application: gpu_edges
		extensions: [libgpu.so]
		fragments:
		  a:
		    host: one
		    operators:
		      tx:
		        type: gpu_source
		        parameters: {bytes: $bytes, on_gpu: $on_gpu}
		        conditions: [{type: count, count: $count}$also]
		  b:
		    host: two
		    operators:
		      rx: {type: gpu_sink, parameters: {look: false, use_gpu: $on_gpu}}
		flows: [{from: a.tx, to: b.rx, edge: $edge}]
	END
	if ! bin/fragctl run --workers 1 --summary summary.json "$@" app.yaml >log 2>&1; then
		echo "FAIL $edge $bytes bytes"
		tail -30 log
		return
	fi
	flow=$(grep "a.tx.out" log)
	if [ "$period" = 0 ]; then
		rx=$(tr -d ' \n' <summary.json | sed 's/.*"name":"rx"//')
		spent=$(echo "$rx" | sed 's/.*"time_ns":\([0-9]*\),"waiting_ns":\([0-9]*\).*/\1 \2/')
		emit=$(tr -d ' \n' <summary.json |
			sed 's/.*"name":"tx"[^}]*"compute_ns":{"p50":\([0-9]*\).*/\1/')
		echo "$spent $bytes $count $edge $emit $memory" | awk '{ printf "%-4s %9d bytes at full speed, %s: %7.2f GB/s; a tick of the sender p50 %.0f us\n", $5, $3, $7, $3 * $4 / ($1 + $2), $6 / 1e3 }'
	else
		p=$(tr -d ' \n' <summary.json |
			sed 's/.*"latency_ns":{"count":[0-9]*,"p50":\([0-9]*\),"p99":\([0-9]*\).*/\1 \2/')
		echo "$p $bytes $edge" | awk '{ printf "%-4s %9d bytes, paced: p50 %8.1f us, p99 %8.1f us\n", $4, $3, $1 / 1e3, $2 / 1e3 }'
	fi
	echo "     $flow" | tr -s ' '
}

perftest() {
	tls=$1
	shift
	UCX_TLS=$tls UCX_NET_DEVICES=lo UCX_TCP_TX_SEG_SIZE=64K \
		UCX_TCP_RX_SEG_SIZE=256K UCX_RNDV_THRESH=1M \
		bin/ucx_perftest -p 13339 >/dev/null 2>&1 &
	server=$!
	sleep 1
	UCX_TLS=$tls UCX_NET_DEVICES=lo UCX_TCP_TX_SEG_SIZE=64K \
		UCX_TCP_RX_SEG_SIZE=256K UCX_RNDV_THRESH=1M \
		timeout 60 bin/ucx_perftest -f -p 13339 127.0.0.1 "$@" 2>&1 | tail -1 |
		sed "s/^/     ucx_perftest $tls $*: /"
	wait $server
}

echo "floors:"
bin/gpu_check floors
for edge in ${*:-shm ucx}; do
	[ "$edge" != none ] || continue
	for bytes in 1024 2097152 8388608 67108864; do
		paced=100 period=20 count=2000
		[ "$bytes" -lt 8000000 ] || count=1000
		[ "$bytes" -lt 60000000 ] || paced=20 period=100 count=150
		run "$edge" "$bytes" "$paced" "$period"
		run "$edge" "$bytes" "$count" 0
		memory=host
		run "$edge" "$bytes" "$count" 0
		memory=gpu
	done
done
[ -n "${UCX_DIR:-}" ] || exit 0
echo "with UCX of $UCX_DIR:"
[ -x bin/ucx_perftest ] && (
	LD_LIBRARY_PATH="$UCX_DIR:$LD_LIBRARY_PATH"
	export LD_LIBRARY_PATH
	[ ! -x bin/ucx_info ] || bin/ucx_info -d 2>&1 | grep -i "transport: cuda\|error" | sed 's/^/     /'
	for bytes in 1024 8388608 67108864; do
		perftest tcp -t ucp_am_bw -s "$bytes" -n 100
		for tls in tcp,cuda_copy tcp,cuda_copy,cuda_ipc; do
			perftest "$tls" -t ucp_am_lat -m cuda -s "$bytes" -n 100 -e
			perftest "$tls" -t ucp_am_bw -m cuda -s "$bytes" -n 100 -e
		done
	done
)
for bytes in 1024 8388608 67108864; do
	run ucx "$bytes" 40 100 --ucx "$UCX_DIR"
	run ucx "$bytes" 40 0 --ucx "$UCX_DIR"
done
