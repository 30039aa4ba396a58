# SPDX-License-Identifier: Apache-2.0
"""The GPUs of this machine, as NVIDIA's driver has them."""
import functools

_LEGACY = 1  # CU_STREAM_LEGACY: the default stream, by a number that is not 0


@functools.cache
def has_gpu():
    import ctypes
    try:
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        return (driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
                and count.value > 0)
    except (OSError, AttributeError):
        return False


def default_stream():
    """0: there is no GPU."""
    return _LEGACY if has_gpu() else 0
