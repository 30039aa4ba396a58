# SPDX-License-Identifier: Apache-2.0
"""Fragments and applications: what compose() puts together."""
import os
import sys
import threading

from . import _environment, _log
from ._component import unsupported
from ._config import Config, from_config, kwargs_of
from ._graph import Flow, FragmentFlowGraph, OperatorFlowGraph
from ._metadata import MetadataPolicy
from ._operator import INPUT_EXEC, OUTPUT_EXEC, Operator, OperatorBase
from ._options import parse
from ._spec import IOSpec
from ._subgraph import Subgraph

START_OPERATOR_NAME = "<|start|>"


class FragmentBase:
    """What fragments and applications share."""
    _name = ""
    _unnamed = [0]  # operators without a name, of the process

    def _init_fragment(self, name):
        self._name = name
        self._nodes = []
        self._flows = []
        self._fragment_flows = []
        self._dynamic = {}
        self._fragments = []
        self._graph = OperatorFlowGraph(self._nodes, self._flows)
        self._application = None
        self._config = None
        self._scheduler = None
        self._network_context = None
        self._executor = None
        self._pools = []
        self._services = {}
        self._loggers = []
        self._tracker = None
        self._start_op = None
        self._metadata_enabled = None
        self._metadata_policy = None
        self._is_composed = False
        self._async_executor = None
        self._async_lock = threading.Lock()
        self._runner = None

    def compose(self):
        pass

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %r" % (name,))
        self._name = name

    @property
    def application(self):
        return self._application

    @application.setter
    def application(self, application):
        self._application = application

    @property
    def graph(self):
        return self._graph

    @property
    def executor(self):
        if self._executor is None:
            from .executors import GXFExecutor
            self._executor = GXFExecutor(self)
        return self._executor

    # Configuration.

    def config(self, config_file=None, prefix=""):
        """Sets the configuration file; without arguments: returns the Config."""
        if config_file is None:
            return self._config or Config("")
        self._config = (config_file if isinstance(config_file, Config)
                        else Config(config_file, prefix))
        return None

    def config_keys(self):
        return self.config().keys()

    def from_config(self, key):
        return from_config(self.config(), key)

    def kwargs(self, key):
        """The same as a dict."""
        return kwargs_of(self.config(), key)

    # Metadata.

    @property
    def is_metadata_enabled(self):
        if self._metadata_enabled is not None:
            return self._metadata_enabled
        return self._application is None or self._application.is_metadata_enabled

    @is_metadata_enabled.setter
    def is_metadata_enabled(self, enabled):
        self._metadata_enabled = bool(enabled)

    def enable_metadata(self, enabled):
        self._metadata_enabled = bool(enabled)

    @property
    def metadata_policy(self):
        if self._metadata_policy is not None:
            return self._metadata_policy
        return (MetadataPolicy.RAISE if self._application is None
                else self._application.metadata_policy)

    @metadata_policy.setter
    def metadata_policy(self, policy):
        self._metadata_policy = MetadataPolicy(policy)

    # Operators and flows.

    def add_operator(self, op):
        if op in self._nodes:
            return
        if not op.name:
            self._unnamed[0] += 1
            op._name = "unnamed_operator_%d" % self._unnamed[0]
        if any(node.name == op.name for node in self._nodes):
            _log.error("an operator called '%s' is there already (duplicate name)", op.name)
            raise RuntimeError("Duplicate name")
        self._nodes.append(op)

    def start_op(self):
        """The operator that ticks once, at the begin."""
        if self._start_op is None:
            from .conditions import CountCondition
            self._start_op = Operator(self, CountCondition(self, 1), name=START_OPERATOR_NAME)
            self.add_operator(self._start_op)
        return self._start_op

    def add_subgraph(self, subgraph):
        pass  # it has added its operators itself

    def add_flow(self, *args, **kwargs):
        """add_flow(upstream, downstream[, port_pairs][, connector_type])"""
        names = ("upstream", "downstream", "port_pairs", "connector_type")
        values = dict(zip(names, args))
        for key, value in kwargs.items():
            key = {"upstream_op": "upstream", "upstream_subgraph": "upstream",
                   "upstream_frag": "upstream", "downstream_op": "downstream",
                   "downstream_subgraph": "downstream",
                   "downstream_frag": "downstream"}.get(key, key)
            if key not in names or key in values:
                raise TypeError("add_flow() has no argument %s" % key)
            values[key] = value
        upstream, downstream = values["upstream"], values["downstream"]
        pairs, connector = values.get("port_pairs"), values.get("connector_type")
        if isinstance(pairs, IOSpec.ConnectorType):
            pairs, connector = None, pairs
        if pairs is not None and (not isinstance(pairs, (set, frozenset)) or not all(
                isinstance(p, tuple) and len(p) == 2 for p in pairs)):
            raise TypeError("port_pairs of add_flow() are a set of pairs {(\"out\", \"in\")}")
        if isinstance(upstream, FragmentBase) and isinstance(downstream, FragmentBase):
            self._add_fragment_flow(upstream, downstream, pairs)
            return
        for end in (upstream, downstream):
            if isinstance(end, OperatorBase):
                self.add_operator(end)
            elif not isinstance(end, Subgraph):
                raise TypeError("add_flow() connects operators and subgraphs, not %r" % (end,))
        for pair in sorted(pairs or [(None, None)], key=str):
            self._connect(upstream, downstream, pair, connector)

    def _connect(self, upstream, downstream, pair, connector):
        # "" is the only port, as None is
        source, output = _resolve(upstream, pair[0] or None, downstream, False)
        target, name = _resolve(downstream, pair[1] or None, upstream, True)
        for end in (source, target):
            self.add_operator(end)
        if output is None and name is None and not (source._spec.outputs and target._spec.inputs):
            output, name = OUTPUT_EXEC, INPUT_EXEC
        elif INPUT_EXEC in (name, output) or OUTPUT_EXEC in (name, output):
            output, name = output or OUTPUT_EXEC, name or INPUT_EXEC
        is_execution = output == OUTPUT_EXEC
        if not is_execution:
            output = _port(source, output, source._spec.outputs, "output")
            name = _port(target, name, target._spec.inputs, "input")
            if output is None or name is None:
                return
        for flow in self._flows:
            if (flow.source, flow.output, flow.target, flow.input) == (source, output, target,
                                                                       name):
                return
        self._flows.append(Flow(source, output, target, name, connector, is_execution))

    def set_dynamic_flows(self, op, dynamic_flow_func):
        """After each tick of op the function chooses, by op.add_dynamic_flow(), its flows."""
        self.add_operator(op)
        op._dynamic_flows = dynamic_flow_func

    def _add_fragment_flow(self, upstream, downstream, pairs):
        unsupported("a flow between fragments of a fragment", "add it to the application")

    # What operators share.

    def scheduler(self, scheduler=None):
        """Sets the scheduler; without arguments: returns it."""
        if scheduler is not None:
            self._scheduler = scheduler
            return None
        if self._scheduler is None:
            from .schedulers import GreedyScheduler
            self._scheduler = GreedyScheduler(self)
        return self._scheduler

    def network_context(self, network_context=None):
        if network_context is not None:
            self._network_context = network_context
            return None
        return self._network_context

    def make_thread_pool(self, name, initialize_size=1):
        """Threads for the operators that its add() names."""
        from .resources import ThreadPool
        pool = ThreadPool(self, initialize_size, name=name)
        self._pools.append(pool)
        return pool

    def add_default_green_context_pool(self, dev_id, sms_per_partition=(),
                                       default_context_index=-1, min_sm_size=2):
        from .resources import CudaGreenContextPool
        self._green_pool = CudaGreenContextPool(
            self, dev_id, num_partitions=len(sms_per_partition),
            sms_per_partition=sms_per_partition, default_context_index=default_context_index,
            min_sm_size=min_sm_size)
        return self._green_pool

    def get_default_green_context_pool(self):
        return getattr(self, "_green_pool", None)

    def register_service(self, service, id=""):
        """Has service(type, id) of operators find it."""
        from ._component import ResourceBase
        from ._service import DefaultFragmentService, FragmentService
        if not isinstance(service, (ResourceBase, FragmentService)):
            raise TypeError("a service is a Resource or a FragmentService, not %r" % (service,))
        if isinstance(service, ResourceBase) and not id:
            id = service.name
        key = (type(service), id)
        if key in self._services:
            raise RuntimeError("a service %s '%s' is registered already" % (key[0].__name__, id))
        self._services[key] = service
        if not isinstance(service, FragmentService):  # it is found as a service of a resource too
            self._services[DefaultFragmentService, id] = DefaultFragmentService(service)

    def service(self, service_type, id=""):
        """The service of this type and id, also of the application; None: there is none."""
        for owner in (self, self._application):
            for (cls, name), service in (owner._services if owner is not None else {}).items():
                if issubclass(cls, service_type) and (name == id or (
                        not id and issubclass(cls, service_type) and name in ("", cls.__name__))):
                    return service
        return None

    @property
    def data_loggers(self):
        return list(self._loggers)

    def add_data_logger(self, logger):
        self._loggers.append(logger)

    # Running.

    def compose_graph(self):
        """Calls compose() once."""
        if not self._is_composed:
            self._is_composed = True
            self.compose()

    def run(self):
        """Runs it in this process to its end."""
        from ._run import run
        run(self)

    def run_async(self):
        """Starts it. Returns a concurrent.futures.Future."""
        from concurrent.futures import ThreadPoolExecutor
        with self._async_lock:
            if self._async_executor is None:
                self._async_executor = ThreadPoolExecutor(max_workers=1)
            return self._async_executor.submit(self.run)

    def shutdown_async_executor(self, wait=True):
        with self._async_lock:
            if self._async_executor is not None:
                self._async_executor.shutdown(wait=wait)
                self._async_executor = None

    def stop_execution(self, op_name=""):
        """Ends the operator of this name; without one: everything."""
        from ._run import stop
        stop(self, op_name)

    def track(self, num_start_messages_to_skip=10, num_last_messages_to_discard=10,
              latency_threshold=0, is_limited_tracking=False):
        """Has latencies along paths measured. Returns the DataFlowTracker."""
        from ._tracker import DataFlowTracker
        self._tracker = DataFlowTracker._of(
            num_start_messages_to_skip, num_last_messages_to_discard, latency_threshold,
            is_limited_tracking)
        return self._tracker


def _port(operator, name, ports, kind):
    """The name of a port; None with an error: there is none, or it must be chosen."""
    if name is None and len(ports) == 1:
        return next(iter(ports))
    if name is None:
        _log.error("The operator '%s' has %d %s ports; name one in port_pairs", operator.name,
                   len(ports), kind)
    elif name in ports:
        return name
    else:
        _log.error("The operator '%s' does not have an %s port with label '%s'. It has: %s",
                   operator.name, kind, name, ", ".join(ports) or "none")
    return None


def _resolve(end, name, other, is_input):
    """The operator and port that a name of an operator or subgraph means."""
    if isinstance(end, OperatorBase):
        return end, name
    if name is None:
        return end._choose(other, is_input)
    return end._find(name)


class Fragment(FragmentBase):
    """A part of an application, which runs in one process."""

    def __init__(self, app=None, name=""):
        if app is not None and not isinstance(app, Application):
            raise ValueError("The first argument of a Fragment must be the Application to which "
                             "it belongs")
        self._init_fragment(name)
        if name == "all":
            _log.error("Fragment name 'all' is reserved; choose another one")
        if app is not None:
            self._application = app
            self._config = app._config

    def __repr__(self):
        return "<holoscan.Fragment: name:%s>" % self.name


class Application(FragmentBase):
    """An application: operators of its own, or fragments."""

    def __init__(self, argv=None):
        self._init_fragment("")
        self._fragment_graph = FragmentFlowGraph(self._fragments, self._fragment_flows)
        self._description = self._version = ""
        self._options, self._argv = parse(argv or [sys.executable, *sys.argv])
        self._chosen_config = self._options.config_path or _environment.config_path()
        if os.path.exists(self._chosen_config):
            self._config = Config(self._chosen_config)

    @property
    def argv(self):
        """The command line without the flags of Holoscan."""
        return self._argv

    @property
    def options(self):
        return self._options

    @property
    def fragment_graph(self):
        return self._fragment_graph

    @property
    def description(self):
        return self._description

    @description.setter
    def description(self, text):
        if not isinstance(text, str):
            raise TypeError("a description is a str, not %r" % (text,))
        self._description = text

    @property
    def version(self):
        return self._version

    @version.setter
    def version(self, text):
        if not isinstance(text, str):
            raise TypeError("a version is a str, not %r" % (text,))
        self._version = text

    def config(self, config_file=None, prefix=""):
        if config_file is not None and self._chosen_config:
            return None  # --config wins, and HOLOSCAN_CONFIG_PATH
        return super().config(config_file, prefix)

    def add_fragment(self, frag):
        if frag in self._fragments:
            return
        if any(other.name == frag.name for other in self._fragments):
            _log.error("a fragment called '%s' is there already (duplicate name)", frag.name)
            raise RuntimeError("Duplicate name")
        frag._application = self
        self._fragments.append(frag)

    def _add_fragment_flow(self, upstream, downstream, pairs):
        if pairs is None:
            raise TypeError("add_flow() of fragments needs port_pairs")
        self.add_fragment(upstream)
        self.add_fragment(downstream)
        if not pairs:
            _log.error("Unable to add fragment flow with empty port_pairs")
        self._fragment_flows += [Flow(upstream, output, downstream, name)
                                 for output, name in sorted(pairs)]

    def compose_graph(self):
        super().compose_graph()
        for fragment in self._fragments:
            fragment.compose_graph()

    def track_distributed(self, num_start_messages_to_skip=10, num_last_messages_to_discard=10,
                          latency_threshold=0, is_limited_tracking=False):
        """Tracks all fragments together. Returns a dict from each to the DataFlowTracker."""
        self.compose_graph()
        tracker = self.track(num_start_messages_to_skip, num_last_messages_to_discard,
                             latency_threshold, is_limited_tracking)
        return {fragment.name: tracker for fragment in self._fragments}

    def __repr__(self):
        return "<holoscan.Application: name:%s>" % self.name
