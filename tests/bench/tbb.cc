// SPDX-License-Identifier: Apache-2.0
/*
 * What oneTBB's flow graph takes for the graphs of hop that compute, for comparison:
 *   tbb line|diamond|caterpillar|wide NS THREADS MESSAGES
 * prints ns an arrow by the clock and of processor time. Each node is serial and has a queue
 * without a limit, as is usual there.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>

namespace flow = tbb::flow;
using node = flow::function_node<long, long>;
using pair = std::tuple<long, long>;

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const struct {
		const char *name, *arrows;
	} shapes[] = {{"line", "01122334455667"},
		      {"diamond", "01021323"},
		      {"caterpillar", "01122304152637"},
		      {"wide", "01020304050607"}};
	const char *arrows = nullptr;

	for (const auto &shape : shapes)
		if (argc == 5 && strcmp(argv[1], shape.name) == 0)
			arrows = shape.arrows;
	if (arrows == nullptr) {
		fprintf(stderr, "usage: tbb line|diamond|caterpillar|wide NS THREADS MESSAGES\n");
		return 2;
	}
	const double work_ns = atof(argv[2]);
	const long each = atol(argv[4]) / (long)(strlen(arrows) / 2);
	tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
				  (size_t)atol(argv[3]));
	long next = 0, ended = 0;
	flow::graph graph;
	auto work = [=](long x) {
		double until = now_ns(CLOCK_MONOTONIC) + work_ns;

		while (now_ns(CLOCK_MONOTONIC) < until)
			;
		return x;
	};
	flow::input_node<long> source(graph, [&](tbb::flow_control &control) {
		if (next == each)
			control.stop();
		else
			work(0);
		return next++;
	});
	std::vector<std::unique_ptr<node>> nodes(8);
	flow::join_node<pair, flow::queueing> both(graph);
	flow::function_node<pair, long> join(graph, flow::serial,
					     [=](const pair &p) { return work(std::get<0>(p)); });
	const bool is_diamond = strcmp(argv[1], "diamond") == 0;

	for (auto &n : nodes)
		n = std::make_unique<node>(graph, flow::serial, [&, i = &n - &nodes[0]](long x) {
			if (i == 7 && x == each - 1)
				ended++;
			return work(x);
		});
	for (const char *a = arrows; *a != '\0'; a += 2) {
		node &to = *nodes[(size_t)(a[1] - '0')];

		if (a[0] == '0')
			flow::make_edge(source, to);
		else if (!is_diamond)
			flow::make_edge(*nodes[(size_t)(a[0] - '0')], to);
	}
	if (is_diamond) {
		flow::make_edge(*nodes[1], flow::input_port<0>(both));
		flow::make_edge(*nodes[2], flow::input_port<1>(both));
		flow::make_edge(both, join);
	}
	double wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	source.activate();
	graph.wait_for_all();
	double hops = (double)each * (double)(strlen(arrows) / 2);
	printf("%.2f %.2f\n", (now_ns(CLOCK_MONOTONIC) - wall) / hops,
	       (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / hops);
	return is_diamond || ended == 1 ? 0 : 1;
}
