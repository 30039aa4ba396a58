# SPDX-License-Identifier: Apache-2.0
"""python_dlpack.py COUNT: ns of a tensor that is handed out by __dlpack__ and given back, and of
what taking such an array needs beside that."""
import sys
import time

import frag


class Array:
    def __init__(self, tensor):
        self.__dlpack__ = tensor.__dlpack__
        self.__dlpack_device__ = tensor.__dlpack_device__


def ns_each(count, function, *args, **options):
    start = time.process_time_ns()
    for _ in range(count):
        function(*args, **options)
    return (time.process_time_ns() - start) / count


def main():
    count = int(sys.argv[1])
    tensor = frag.empty((1080, 1920, 3), "uint8")
    array = Array(tensor)
    rest = ns_each(count, lambda: None)
    out = ns_each(count, tensor.__dlpack__, max_version=(1, 0))
    print(out - rest, ns_each(count, frag.as_tensor, array) - out)


if __name__ == "__main__":
    main()
