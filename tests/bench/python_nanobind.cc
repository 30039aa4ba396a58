// SPDX-License-Identifier: Apache-2.0
#include <nanobind/nanobind.h>

#include <ctime>
#include <thread>

/* The floor of a tick in Python: a thread of C++ takes the interpreter's lock, calls, and gives the
 * lock back, as nanobind does it. */
namespace nb = nanobind;

static double now_ns()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

static double call_ns(nb::callable callee, int count)
{
	double result = 0;
	nb::gil_scoped_release released;
	std::thread thread([&] {
		nb::gil_scoped_acquire kept; /* the thread state lasts */
		nb::gil_scoped_release again;
		double begin = now_ns();

		for (int i = 0; i < count; i++) {
			nb::gil_scoped_acquire lock;
			callee();
		}
		result = (now_ns() - begin) / count;
	});

	thread.join();
	return result;
}

NB_MODULE(python_nanobind, m)
{
	m.def("call_ns", call_ns);
}
