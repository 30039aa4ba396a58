# SPDX-License-Identifier: Apache-2.0
"""What operators, conditions, resources and schedulers have in common: arguments and parameters."""
from . import _log, _text
from ._args import Arg, ArgList, arg_to_py_object, py_object_to_arg, type_of
from ._enums import Enum, make

ParameterFlag = make("ParameterFlag", "NONE OPTIONAL DYNAMIC")
ConditionType = make(
    "ConditionType", "NONE MESSAGE_AVAILABLE DOWNSTREAM_MESSAGE_AFFORDABLE COUNT BOOLEAN PERIODIC "
    "ASYNCHRONOUS EXPIRING_MESSAGE_AVAILABLE MULTI_MESSAGE_AVAILABLE "
    "MULTI_MESSAGE_AVAILABLE_TIMEOUT")
SchedulingStatusType = make("SchedulingStatusType", "NEVER READY WAIT WAIT_TIME WAIT_EVENT")


class Unsupported(RuntimeError):
    """Something of Holoscan that frag does not have; the sentence says what to use instead."""


def unsupported(what, instead):
    raise Unsupported("%s is not supported by frag; %s" % (what, instead))


class Parameter:
    """A parameter that setup() declared."""
    __slots__ = ("name", "default", "flag", "kind", "type")

    def __init__(self, name, default=None, flag=ParameterFlag.NONE, kind=None, type="CustomType"):
        self.name = name
        self.default = default
        self.flag = flag
        self.kind = kind
        self.type = "std::vector<holoscan::IOSpec*>" if kind == "receivers" else type

    @property
    def tree(self):
        return {"name": self.name, "type": self.type, "description": '""',
                "flag": "k" + self.flag.name.capitalize()}


def _name_of_fragment(fragment):
    return "~" if fragment is None else _text.scalar(fragment.name)


class ComponentSpecBase:
    """The parameters of a component."""
    __slots__ = ("fragment", "_params")

    def __init__(self, fragment):
        self.fragment = fragment_of(fragment)
        self._params = {}

    @property
    def params(self):
        return dict(self._params)

    @property
    def tree(self):
        return {"fragment": _name_of_fragment(self.fragment),
                "params": [param.tree for param in reversed(self._params.values())]}

    @property
    def description(self):
        return _text.text(self.tree)

    def __repr__(self):
        return self.description


class ComponentSpec(ComponentSpecBase):
    __slots__ = ("component",)

    def __init__(self, fragment, component=None):
        super().__init__(fragment)
        self.component = component

    def param(self, name, default_value=None, flag=ParameterFlag.NONE, **kwargs):
        """Declares a parameter, an attribute of the component once it is initialised."""
        self._params[name] = Parameter(name, default_value, flag, kwargs.get("kind"))


def fragment_of(owner):
    """The fragment of what a component is made for: a fragment, or a subgraph of one."""
    from ._subgraph import Subgraph
    return owner.fragment if isinstance(owner, Subgraph) else owner


def check_owner(owner, what):
    from ._fragment import FragmentBase
    from ._subgraph import Subgraph
    if not isinstance(owner, (FragmentBase, Subgraph)):
        raise ValueError("The first argument to a %s's constructor must be the Fragment "
                         "(Application) or Subgraph to which it belongs" % what)


class ComponentBase:
    """A component: its name, fragment and arguments."""
    _name = ""
    _fragment = None

    def _init(self, owner, name=""):
        self._fragment = fragment_of(owner)
        self._name = name
        self._args = []

    @property
    def id(self):
        return -1

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %r" % (name,))
        self._name = name

    @property
    def fragment(self):
        return self._fragment

    @property
    def args(self):
        return self._args

    def add_arg(self, *args, **kwargs):
        """Adds arguments; of one name the last one counts."""
        for arg in args:
            if isinstance(arg, (Arg, ArgList)):
                self._args.extend(arg.args if isinstance(arg, ArgList) else [arg])
            else:
                raise TypeError("%s: %r is no Arg" % (self.name, arg))
        self._args.extend(py_object_to_arg(value, name) for name, value in kwargs.items())

    def initialize(self):
        pass

    def service(self, service_type, id=""):
        """The service of this type (and id) that the fragment or its application has."""
        return self.fragment.service(service_type, id)

    def _values(self):
        """The values of the arguments."""
        return {arg.name: arg_to_py_object(arg) for arg in self._args if arg.has_value}

    @property
    def tree(self):
        return {"id": self.id, "name": _text.scalar(self.name),
                "fragment": _name_of_fragment(self.fragment),
                "args": [arg.tree for arg in self._args]}

    @property
    def description(self):
        return _text.text(self.tree)

    def __repr__(self):
        return self.description


class Component(ComponentBase):
    """A component of no fragment. It takes no other attributes."""

    def __init__(self):
        self.__dict__.update(_fragment=None, _name="", _args=[])

    def __setattr__(self, name, value):
        if type(self) is Component and name != "name":
            raise AttributeError("a Component has no attribute %s" % name)
        super().__setattr__(name, value)


def set_parameters(component, spec):
    """Makes attributes of the parameters: arguments count, then attributes, then defaults."""
    values = {**getattr(component, "_resources", {}), **component._values()}
    for name, param in spec._params.items():
        if param.kind == "receivers":
            continue
        if name in values:
            value = values[name]
        elif getattr(component, name, None) is not None:
            continue
        else:
            value = param.default
        object.__setattr__(component, name, value)
    unknown = [name for name in values if name not in spec._params
               and not isinstance(values[name], (ConditionBase, ResourceBase))]
    for name in unknown:
        _log.warning("%s: the argument '%s' is no parameter that setup() declares",
                     component.name, name)


class _Described(Component):
    """A condition or resource: its spec stands in its description."""
    _gxf_typename = None
    _spec = None
    _kind_key = "type"

    @property
    def spec(self):
        return self._spec

    @spec.setter
    def spec(self, spec):
        if not isinstance(spec, ComponentSpecBase):
            raise TypeError("%r is no spec" % (spec,))
        self._spec = spec

    @property
    def tree(self):
        tree = super().tree
        tree[self._kind_key] = "native"
        tree["spec"] = (self._spec or ComponentSpecBase(self.fragment)).tree
        if self._gxf_typename is not None:
            tree.update(gxf_eid=0, gxf_cid=0, gxf_typename=self._gxf_typename)
        return tree

    def _init_python(self, owner, args, kwargs):
        """What the constructors of classes in Python do."""
        check_owner(owner, type(self).__name__)
        name = kwargs.pop("name", "")
        self._init(owner, name)
        if not isinstance(name, str):
            raise TypeError("a name is a str, not %r" % (name,))
        for arg in args:
            if isinstance(arg, (Arg, ArgList)):
                self.add_arg(arg)
            elif isinstance(arg, str) and not self._name:
                self._name = arg
        self.add_arg(**kwargs)
        spec = ComponentSpec(self.fragment, self)
        self._spec = spec
        self.setup(spec)

    def setup(self, spec):
        pass

    def _init_built_in(self, owner, name, **values):
        """What the constructors of built-in ones do: `_types` says what is an argument."""
        self._init(owner, name)
        spec = ComponentSpec(self.fragment, self)
        self._spec = spec
        self._given = {k: v for k, v in values.items() if v is not None}
        for key, value in values.items():
            kind = self._types.get(key)
            if kind is None:
                continue
            spec._params[key] = Parameter(key, value, type=kind)
            if value is not None:
                self._args.append(Arg(key, value, type_of(kind)))


_READ_ONLY = "cannot override read-only property \"%s\""


class _Guarded:
    """Attributes that classes in Python must not set."""
    _readonly_attributes = ()

    def __setattr__(self, name, value):
        if name in self._readonly_attributes:
            raise AttributeError(_READ_ONLY % name)
        super().__setattr__(name, value)


class ConditionBase(_Described):
    """A condition of an operator."""
    _kind_key = "component_type"
    _frag_type = None  # its type in graphs
    _live = None  # the condition of frag, while the application runs

    class ConditionComponentType(Enum):
        NATIVE = 0
        GXF = 1

    def __init__(self, *args, **kwargs):
        raise TypeError("derive from Condition")

    @property
    def condition_type(self):
        return (self.ConditionComponentType.NATIVE if self._gxf_typename is None
                else self.ConditionComponentType.GXF)

    def notify_scheduler(self):
        """Has the condition checked again. Returns whether the application runs."""
        if self._live is None:
            return False
        self._live.changed()
        return True

    def receiver(self, port_name):
        return self._operator_of().receiver(port_name)

    def transmitter(self, port_name):
        return self._operator_of().transmitter(port_name)

    _operator = None

    def _operator_of(self):
        if self._operator is None:
            raise RuntimeError("condition %s is of no operator" % self.name)
        return self._operator


class ResourceBase(_Described):
    """A resource of operators, conditions or schedulers."""
    _frag_type = None

    class ResourceType(Enum):
        NATIVE = 0
        GXF = 1

    def __init__(self, *args, **kwargs):
        raise TypeError("derive from Resource")

    @property
    def resource_type(self):
        return (self.ResourceType.NATIVE if self._gxf_typename is None
                else self.ResourceType.GXF)


class Condition(_Guarded, ConditionBase):
    """A condition in Python: check() says when its operator may be ticked."""
    _readonly_attributes = ("fragment", "condition_type", "description")

    def __init__(self, fragment, *args, **kwargs):
        self._init_python(fragment, args, kwargs)
        for name in ("receiver_name", "transmitter_name"):
            if name in kwargs and name not in self._spec._params:
                self._spec.param(name, kwargs[name])

    def update_state(self, timestamp):
        pass

    def check(self, timestamp):
        """Returns (SchedulingStatusType, the time of the next check or None)."""
        return SchedulingStatusType.READY, None

    def on_execute(self, timestamp):
        pass


class Resource(_Guarded, ResourceBase):
    """A resource in Python."""
    _readonly_attributes = ("fragment", "resource_type", "description")

    def __init__(self, fragment, *args, **kwargs):
        self._init_python(fragment, args, kwargs)


def _typed(name, kind, default):
    """A property of GXF: a name only, which keeps what it is set to."""
    def set_value(self, value):
        if not isinstance(value, kind):
            raise TypeError("%s is %s, not %r" % (name, kind.__name__, value))
        object.__setattr__(self, "_" + name, value)
    return property(lambda self: getattr(self, "_" + name, default), set_value)


class GXFNames:
    """The identifiers that components of GXF have."""
    gxf_cid = _typed("gxf_cid", int, 0)
    gxf_eid = _typed("gxf_eid", int, 0)
    gxf_cname = _typed("gxf_cname", str, "")
    gxf_context = None


class GXFComponent(GXFNames):
    """The names of GXF, for programs that ask for them; frag has no GXF."""
    _gxf_typename = ""

    def __setattr__(self, name, value):
        if type(self) is GXFComponent and not hasattr(self, name):
            raise AttributeError("a GXFComponent has no attribute %s" % name)
        super().__setattr__(name, value)

    @property
    def gxf_typename(self):
        return self._gxf_typename

    def gxf_initialize(self):
        pass


class GXFCondition(GXFComponent, ConditionBase):
    def __init__(self):
        self._init(None)

    def initialize(self):
        pass


class GXFResource(GXFComponent, ResourceBase):
    def __init__(self):
        self._init(None)

    def initialize(self):
        pass


class GXFSystemResourceBase(GXFResource):
    pass


class Clock(ResourceBase):
    """The clock of a scheduler."""
    _types = {}

    def __init__(self, clock_impl):
        self._init(clock_impl.fragment, clock_impl.name)
        self._impl = clock_impl

    def clock_impl(self):
        return self._impl

    def set_clock_impl(self, clock_impl):
        self._impl = clock_impl

    def cast_to(self, type):
        if not isinstance(self._impl, type):
            raise RuntimeError("Clock could not be cast to %s" % type.__name__)
        return self._impl

    def time(self):
        return self._impl.time()

    def timestamp(self):
        return self._impl.timestamp()

    def sleep_for(self, duration):
        self._impl.sleep_for(duration)

    def sleep_until(self, target_time_ns):
        self._impl.sleep_until(target_time_ns)


class ClockInterface:
    """What clocks do; times in nanoseconds, but time() in seconds."""


class Scheduler(Component):
    """Who runs the operators of a fragment."""
    _spec = None
    _clock = None

    def __init__(self, *args, **kwargs):
        self._init(None, kwargs.pop("name", ""))
        self.add_arg(*args, **kwargs)

    @property
    def spec(self):
        return self._spec

    @spec.setter
    def spec(self, spec):
        self._spec = spec

    @property
    def clock(self):
        return self._clock

    def setup(self, spec):
        pass

    @property
    def tree(self):
        tree = super().tree
        tree["spec"] = (self._spec or ComponentSpecBase(self.fragment)).tree
        tree["resources"] = []
        return tree


class NetworkContext(Component):
    """How fragments of several processes are connected; frag decides that itself."""

    def __init__(self, *args, **kwargs):
        self._init(None, kwargs.pop("name", ""))
        self.add_arg(*args, **kwargs)
        self.spec = None

    def setup(self, spec):
        pass


class GXFScheduler(GXFComponent, Scheduler):
    def __init__(self):
        raise TypeError("a GXFScheduler is one of its subclasses")


class GXFNetworkContext(GXFComponent, NetworkContext):
    def __init__(self):
        raise TypeError("a GXFNetworkContext is one of its subclasses")

