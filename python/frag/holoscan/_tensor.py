# SPDX-License-Identifier: Apache-2.0
"""Tensor: an array of any library, without a copy."""
from ._enums import Enum


class DLDeviceType(Enum):
    DLCPU = 1
    DLCUDA = 2
    DLCUDAHOST = 3
    DLCUDAMANAGED = 13


class DLDevice:
    """Where memory is."""

    def __init__(self, device_type, device_id):
        self.device_type = device_type
        self.device_id = device_id

    def __repr__(self):
        return "<DLDevice device_type:%d device_id:%d>" % (self.device_type, self.device_id)


class DLDataTypeCode(Enum):
    DLINT = 0
    DLUINT = 1
    DLFLOAT = 2
    DLOPAQUEHANDLE = 3
    DLBFLOAT = 4
    DLCOMPLEX = 5


class DLDataType:
    """The type of an element."""

    def __init__(self, code, bits, lanes=1):
        self.code = code
        self.bits = bits
        self.lanes = lanes

    def __repr__(self):
        return "<DLDataType code:%d bits:%d lanes:%d>" % (self.code, self.bits, self.lanes)


_CODES = {"i": 0, "u": 1, "b": 6, "f": 2, "c": 5, "V": 4}


class TensorBase:
    """The base of Tensor."""


class Tensor(TensorBase):
    """A view of an array that has __array_interface__, __cuda_array_interface__ or __dlpack__."""
    __slots__ = ("_source", "_interface", "__array_interface__", "__cuda_array_interface__")

    def __init__(self, source):
        self._source = source
        interface = getattr(source, "__cuda_array_interface__", None)
        if interface is not None:
            self.__cuda_array_interface__ = interface
        else:
            if not hasattr(source, "__array_interface__"):
                import frag
                self._source = source = frag.as_tensor(source)
            self.__array_interface__ = interface = source.__array_interface__
        self._interface = interface

    @staticmethod
    def as_tensor(obj):
        return obj if isinstance(obj, Tensor) else Tensor(obj)

    @staticmethod
    def from_dlpack(obj, device=None, copy=None):
        return Tensor.as_tensor(obj)

    @property
    def data(self):
        """The address."""
        return self._interface["data"][0]

    @property
    def device(self):
        kind, number = self.__dlpack_device__()
        return DLDevice(DLDeviceType(kind), number)

    @property
    def dtype(self):
        return DLDataType(_CODES[self._kind], self.itemsize * 8)

    @property
    def _kind(self):
        """The letter of the type of an element, as numpy's dtype.kind."""
        return self._interface["typestr"][1]

    @property
    def shape(self):
        return tuple(self._interface["shape"])

    @property
    def itemsize(self):
        return int(self._interface["typestr"][2:])

    @property
    def strides(self):
        """In bytes. Where the memory is contiguous they are those of C's order."""
        strides = self._interface.get("strides")
        return self._row_major() if strides is None or self._is_packed(strides) else strides

    def _row_major(self):
        strides, step = [], self.itemsize
        for size in reversed(self.shape):
            strides.append(step)
            step *= max(size, 1)
        return tuple(reversed(strides))

    def _is_packed(self, strides):
        """Whether the strides differ from C's order in dimensions of size 1 only."""
        return all(size <= 1 or one == other for size, one, other
                   in zip(self.shape, strides, self._row_major()))

    @property
    def ndim(self):
        return len(self._interface["shape"])

    @property
    def size(self):
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self):
        return self.size * self.itemsize

    def is_contiguous(self):
        strides = self._interface.get("strides")
        return strides is None or self._is_packed(strides)

    def set_deallocation_stream(self, stream):
        return False

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if max_version is not None and not (isinstance(max_version, tuple)
                                            and len(max_version) == 2):
            raise ValueError("max_version must be a tuple of (major, minor)")
        if copy is not None and not isinstance(copy, bool):
            raise ValueError("copy must be a boolean")
        if dl_device is not None:
            if not (isinstance(dl_device, tuple) and len(dl_device) == 2
                    and isinstance(dl_device[0], DLDeviceType)):
                raise ValueError("dl_device must be a tuple of (DLDeviceType, device_id)")
            if tuple(map(int, dl_device)) != tuple(map(int, self.__dlpack_device__())):
                raise BufferError("a tensor is not copied to another device; copy the array")
        if copy:
            raise BufferError("a tensor is not copied here; copy the array that is made of it")
        kwargs = {key: value for key, value in (
            ("max_version", max_version), ("dl_device", dl_device), ("copy", copy))
            if value is not None}
        try:
            return self._source.__dlpack__(stream=stream, **kwargs)
        except TypeError:  # an older protocol
            return self._source.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._source.__dlpack_device__()


Tensor.__name__ = "Tensor"


def is_tensor_like(value):
    return (hasattr(value, "__array_interface__") or hasattr(value, "__cuda_array_interface__")
            or (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")))


def as_array(tensor):
    """A numpy array, or a cupy array of memory of a GPU."""
    if hasattr(tensor, "__cuda_array_interface__"):
        import cupy
        return cupy.asarray(tensor)
    import numpy
    return numpy.asarray(tensor)
