# SPDX-License-Identifier: Apache-2.0
"""holoscan.gxf: the names of its base classes; frag has no GXF."""
from ._component import (GXFComponent, GXFCondition, GXFNames, GXFNetworkContext, GXFResource,
                         GXFScheduler, GXFSystemResourceBase, unsupported)
from ._contexts import ExecutionContextBase, InputContextBase, OutputContextBase
from ._operator import OperatorBase
from ._tensor import Tensor

__all__ = ["Entity", "GXFComponent", "GXFCondition", "GXFExecutionContext", "GXFInputContext",
           "GXFNetworkContext", "GXFOperator", "GXFOutputContext", "GXFResource", "GXFScheduler",
           "GXFSystemResourceBase", "load_extensions"]


class Entity(dict):
    """A message of named tensors."""

    def __init__(self, context):
        super().__init__()

    def __bool__(self):
        return True

    def add(self, obj, name=""):
        self[name] = Tensor.as_tensor(obj)
        return self[name]

    def get(self, name="", log_errors=True):
        if not name and len(self) == 1:
            return next(iter(self.values()))
        return super().get(name)


class GXFExecutionContext(ExecutionContextBase):
    def __init__(self, context, op):
        self.operator = op


class GXFInputContext(InputContextBase):
    def __init__(self, context, op):
        self.operator = op

    def receive(self, name):
        unsupported("GXFInputContext.receive", "compute() gets an InputContext")


class GXFOutputContext(OutputContextBase):
    def __init__(self, context, op):
        self.operator = op

    def emit(self, data, name=""):
        unsupported("GXFOutputContext.emit", "compute() gets an OutputContext")


class GXFOperator(GXFNames, OperatorBase):
    """The name of operators that wrap codelets of GXF; frag has none, and none runs."""
    gxf_entity_group_name = ""
    gxf_typename = ""

    def __init__(self):
        pass

    def initialize(self):
        unsupported("GXFOperator", "write the codelet as an Operator")


def load_extensions(context, extension_filenames=(), manifest_filenames=()):
    unsupported("load_extensions of GXF", "write their components as operators and resources")
