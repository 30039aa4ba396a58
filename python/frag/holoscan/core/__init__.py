# SPDX-License-Identifier: Apache-2.0
"""holoscan.core: operators, fragments and what they are made of."""
from .._args import (Arg, ArgContainerType, ArgElementType, ArgList, ArgType, arg_to_py_object,
                     arglist_to_kwargs, kwargs_to_arglist, py_object_to_arg)
from .._component import (Clock, ClockInterface, Component, ComponentSpec, Condition,
                          ConditionBase, ConditionType, NetworkContext, ParameterFlag, Resource,
                          ResourceBase, Scheduler, SchedulingStatusType)
from .._config import Config
from .._contexts import ExecutionContext, InputContext, OutputContext
from .._data_logger import (AsyncDataLoggerResource, AsyncQueuePolicy, DataLogger,
                            DataLoggerQueueType, DataLoggerResource)
from .._executor import Executor
from .._fragment import START_OPERATOR_NAME, Application, Fragment, FragmentBase
from .._graph import FragmentGraph, OperatorGraph
from .._message import Message
from .._metadata import MetadataDictionary, MetadataPolicy
from .._operator import FlowInfo, Operator, OperatorBase, OperatorStatus
from .._options import CLIOptions
from .._registry import registry
from .._service import (DefaultFragmentService, DistributedAppService, FragmentService,
                        ServiceDriverEndpoint, ServiceWorkerEndpoint)
from .._spec import IOSpec, MultiMessageConditionInfo, OperatorSpec
from .._subgraph import InterfacePort, InterfacePortMapping, InterfacePortType, Subgraph
from .._tensor import DLDevice, DLDeviceType, Tensor
from .._tracker import DataFlowMetric, DataFlowTracker, Tracker
from . import _core  # noqa: F401

Graph = OperatorGraph
io_type_registry = registry()
_Fragment = FragmentBase
_Condition, _Operator, _Resource = ConditionBase, OperatorBase, ResourceBase

__all__ = [
    "Application", "Arg", "ArgContainerType", "ArgElementType", "ArgList", "ArgType",
    "AsyncDataLoggerResource", "AsyncQueuePolicy", "CLIOptions", "Clock", "ClockInterface",
    "Component", "ComponentSpec", "Condition", "ConditionBase", "ConditionType", "Config",
    "DLDevice", "DLDeviceType", "DataFlowMetric", "DataFlowTracker", "DataLogger",
    "DataLoggerQueueType", "DataLoggerResource", "DefaultFragmentService",
    "DistributedAppService", "ExecutionContext",
    "Executor", "FlowInfo", "Fragment", "FragmentGraph", "FragmentService", "Graph", "IOSpec",
    "InputContext", "InterfacePort", "InterfacePortMapping", "InterfacePortType", "Message",
    "MetadataDictionary", "MetadataPolicy",
    "MultiMessageConditionInfo", "NetworkContext", "Operator", "OperatorBase", "OperatorGraph",
    "OperatorSpec", "OperatorStatus", "OutputContext", "ParameterFlag", "Resource",
    "ResourceBase", "START_OPERATOR_NAME", "Scheduler", "SchedulingStatusType",
    "ServiceDriverEndpoint", "ServiceWorkerEndpoint", "Subgraph", "Tensor", "Tracker",
    "arg_to_py_object", "arglist_to_kwargs", "io_type_registry", "kwargs_to_arglist",
    "py_object_to_arg"]
