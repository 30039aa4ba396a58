# SPDX-License-Identifier: Apache-2.0
"""holoscan.core._core: the base classes, for programs that ask for them."""
from .._args import (Arg, ArgContainerType, ArgElementType, ArgList, ArgType, arg_to_py_object,
                     arglist_to_kwargs, kwargs_to_arglist, py_object_to_arg)
from .._component import (Clock, ClockInterface, Component, ComponentBase, ComponentSpec,
                          ComponentSpecBase, ConditionBase, ConditionType, NetworkContext,
                          ParameterFlag, ResourceBase, Scheduler, SchedulingStatusType)
from .._config import Config
from .._contexts import (ExecutionContext, ExecutionContextBase, InputContext, InputContextBase,
                         OutputContext, OutputContextBase)
from .._data_logger import (AsyncDataLoggerResource, AsyncQueuePolicy, DataLogger,
                            DataLoggerQueueType, DataLoggerResource)
from .._executor import Executor
from .._fragment import Application, FragmentBase
from .._message import Message
from .._metadata import MetadataDictionary, MetadataPolicy
from .._operator import FlowInfo, OperatorBase, OperatorStatus
from .._options import CLIOptions
from .._registry import EmitterReceiverRegistry, registry
from .._service import (DefaultFragmentService, DistributedAppService, FragmentService,
                        ServiceDriverEndpoint, ServiceWorkerEndpoint)
from .._spec import IOSpec, MultiMessageConditionInfo, OperatorSpec, OperatorSpecBase
from .._subgraph import InterfacePort, InterfacePortMapping, InterfacePortType, Subgraph
from .._tensor import (DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, Tensor, TensorBase)
from .._tracker import DataFlowMetric, DataFlowTracker

PyComponentSpec, ComponentSpec = ComponentSpec, ComponentSpecBase
PyOperatorSpec, OperatorSpec = OperatorSpec, OperatorSpecBase
PyInputContext, InputContext = InputContext, InputContextBase
PyOutputContext, OutputContext = OutputContext, OutputContextBase
PyExecutionContext, ExecutionContext = ExecutionContext, ExecutionContextBase
PyTensor, Tensor = Tensor, TensorBase
Fragment = FragmentBase

__all__ = [name for name in dir() if name[0] != "_" and not name.endswith("SpecBase")]
