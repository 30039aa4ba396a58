# SPDX-License-Identifier: Apache-2.0
"""frag: streaming graphs across machines, in Python. See docs/PYTHON.md."""
import os

from . import _frag
from ._codec import allow_pickle, decode, encode, register_codec
from ._failure import Error, describe


def _load(path):
    from ._load import load
    return load(path)


_frag.set_hooks(Error, describe, encode, decode, _load)
_frag.loader_register()
os.register_at_fork(after_in_child=_frag.forked)

from ._application import Application, Fragment  # noqa: E402
from ._component import Clock, Condition, Ready, Resource  # noqa: E402
from ._frag import ExecutionContext, InputContext, OutputContext, Tensor  # noqa: E402
from ._metadata import Metadata  # noqa: E402
from ._operator import DONE, NativeOperator, Operator  # noqa: E402
from ._run import Future, run  # noqa: E402
from ._decorator import operator  # noqa: E402
from ._spec import ConditionType, IOSpec, OperatorSpec, Scheduler  # noqa: E402
from ._types import struct  # noqa: E402
from ._variable import Variable  # noqa: E402


def __getattr__(name):
    """What few programs use is imported when it is."""
    if name in ("Client", "ClientError"):
        from . import client
        return getattr(client, name)
    if name in ("Tracker", "DataFlowMetric"):
        from . import tracker
        return getattr(tracker, name)
    raise AttributeError("module frag has no attribute %r" % name)


__version__ = "0.1.0"
__all__ = ["Application", "Client", "ClientError", "Clock", "Condition", "ConditionType", "DONE",
           "DataFlowMetric", "Error", "ExecutionContext", "Fragment", "Future", "IOSpec",
           "InputContext", "Metadata", "NativeOperator", "Operator", "OperatorSpec",
           "OutputContext", "Ready", "Resource", "Scheduler", "Tensor", "Tracker", "Variable",
           "allow_pickle", "as_tensor", "empty", "operator", "register_codec", "run", "struct"]


def empty(shape, dtype="float32", allocator=None, *, gpu=-1):
    """A tensor of uninitialised memory, which crosses to other processes without a copy.

    allocator: a resource of the operator's fragment, such as a block_memory_pool; gpu: the number
    of the GPU on which the memory is to lie.
    """
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    if allocator is None:
        return _frag.empty(shape, name, None, None, gpu)
    return _frag.empty(shape, name, allocator._context, allocator.name, gpu)


def as_tensor(array):
    """The tensor of an array that has __dlpack__, without a copy. It must not be changed any more."""
    return _frag.as_tensor(array)
