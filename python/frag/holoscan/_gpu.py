# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, as NVIDIA's driver has them, and streams for operators in Python."""
import ctypes
import functools

_LEGACY = 1  # CU_STREAM_LEGACY: the default stream, by a number that is not 0


@functools.cache
def _driver():
    """None: there is no GPU."""
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        found = (driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
                 and count.value > 0)
        return driver if found else None
    except (OSError, AttributeError):
        return None


def has_gpu():
    return _driver() is not None


@functools.cache
def _context():
    """That of the first GPU, which CuPy and others use too."""
    device, context = ctypes.c_int(), ctypes.c_void_p()
    _check("cuDeviceGet", ctypes.byref(device), 0)
    _check("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


def default_stream():
    """0: there is no GPU."""
    return _LEGACY if has_gpu() else 0


class Streams:
    """The streams of an operator, by names.

    Work on the default stream and on one of them comes in the order in which it was given, so that
    programs may use both. Work on those of two operators does not: wait() is for the end of a tick.
    """

    def __init__(self):
        self._made = {}

    def get(self, name):
        """0: there is no GPU."""
        if not has_gpu():
            return 0
        if name not in self._made:
            stream = ctypes.c_void_p()
            _call("cuStreamCreateWithPriority", ctypes.byref(stream), 0, 0)
            self._made[name] = stream
        return self._made[name].value

    def __contains__(self, stream):
        return any(made.value == stream for made in self._made.values())

    def wait(self):
        for stream in self._made.values():
            _call("cuStreamSynchronize", stream)

    def close(self):
        for stream in self._made.values():
            _call("cuStreamDestroy_v2", stream)
        self._made.clear()


def _call(name, *args):
    """Calls the driver in that context."""
    _check("cuCtxPushCurrent_v2", _context())
    try:
        _check(name, *args)
    finally:
        _check("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def _check(name, *args):
    error = getattr(_driver(), name)(*args)
    if error:
        raise RuntimeError("%s: error %d of CUDA; see what the operator computes on its streams"
                           % (name, error))
