# SPDX-License-Identifier: Apache-2.0
"""iceoryx2 through its Python package: half of a round trip between two processes that spin, one
8-byte sample at a time. Both ends are Python programs, so this is an upper bound of what iceoryx2
takes: a call into its library costs Python more than the hand-over.

usage: iceoryx.py COUNT      prints p50 and p99 in us
"""
import ctypes
import os
import sys
import time

PEER_S = 20


class Number(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64)]

    @staticmethod
    def type_name():
        return "u64"


def ends(iox2, name, out, into):
    """A publisher and a subscriber of this process, once the other process has its own: what is
    published to nobody is lost."""
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)

    def service(which):
        topic = iox2.ServiceName.new("%s/%s" % (name, which))
        return node.service_builder(topic).publish_subscribe(Number).open_or_create()

    there, here = service(out), service(into)
    publisher, subscriber = there.publisher_builder().create(), here.subscriber_builder().create()
    deadline = time.monotonic() + PEER_S
    while there.dynamic_config.number_of_subscribers < 1 or (
            here.dynamic_config.number_of_publishers < 1):
        if time.monotonic() > deadline:
            raise RuntimeError("the other process did not open its ends in %d s" % PEER_S)
        time.sleep(0.001)
    return node, publisher, subscriber


def receive(subscriber):
    while True:
        sample = subscriber.receive()
        if sample is not None:
            value = sample.payload().contents.value
            sample.delete()
            return value


def main():
    try:
        import iceoryx2 as iox2
    except ImportError as e:
        print("there is no iceoryx2 (%s); pip install iceoryx2" % e, file=sys.stderr)
        return 3
    count, name = int(sys.argv[1]), "frag-bench-%d" % os.getpid()
    iox2.set_log_level(iox2.LogLevel.Fatal)
    child = os.fork()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[child == 0]})
    node, publisher, subscriber = ends(iox2, name, *(("a", "b") if child else ("b", "a")))
    if child == 0:
        ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL: it spins until somebody writes
        for _ in range(count + 100):
            publisher.send_copy(Number(value=receive(subscriber)))
        return 0
    ns = []
    for i in range(count + 100):
        start = time.monotonic_ns()
        publisher.send_copy(Number(value=i))
        if receive(subscriber) != i:
            raise RuntimeError("another number came back")
        ns.append(time.monotonic_ns() - start)
    os.waitpid(child, 0)
    ns = sorted(ns[100:])
    print("%.3f %.3f" % (ns[count // 2] / 2e3, ns[count * 99 // 100] / 2e3))
    return 0


if __name__ == "__main__":
    sys.exit(main())
