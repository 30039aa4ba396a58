# SPDX-License-Identifier: Apache-2.0
"""python_dlpack.py COUNT LIBRARY: the ns of a processor for a tensor that is handed out by
__dlpack__ and given back, for what taking such an array needs beside that, and for both by the
table of the class, whose other side is in C (plugin/python_table.c)."""
import ctypes
import sys
import time

import frag


class Array:
    def __init__(self, tensor):
        self.__dlpack__ = tensor.__dlpack__
        self.__dlpack_device__ = tensor.__dlpack_device__


class Fast:
    """An array of the library."""

    def __dlpack__(self, **options):
        raise AssertionError("the table was there")


def ns_each(count, function, *args, **options):
    start = time.process_time_ns()
    for _ in range(count):
        function(*args, **options)
    return (time.process_time_ns() - start) / count


def main():
    count, library = int(sys.argv[1]), ctypes.PyDLL(sys.argv[2])
    tensor = frag.empty((1080, 1920, 3), "uint8")
    array = Array(tensor)
    rest = ns_each(count, lambda: None)
    out = ns_each(count, tensor.__dlpack__, max_version=(1, 0))
    taken = ns_each(count, frag.as_tensor, array)

    name = b"dlpack_exchange_api"
    make, get = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.addressof(ctypes.c_char.in_dll(library, "bench_table"))
    Fast.__dlpack_c_exchange_api__ = make(table, name, None)
    take = library.bench_table_take_ns
    take.restype, take.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.py_object, ctypes.c_int]
    table_out = take(get(frag.Tensor.__dlpack_c_exchange_api__, name), tensor, count)
    table_in = ns_each(count, frag.as_tensor, Fast())
    print(out - rest, taken - out, table_out, table_in - rest)


if __name__ == "__main__":
    main()
