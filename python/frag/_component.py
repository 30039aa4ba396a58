# SPDX-License-Identifier: Apache-2.0
"""Conditions and resources: of frag's own types, and those that are classes in Python."""
from ._spec import OperatorSpec


class Ready:
    """What the check of a condition returns; WAIT_TIME as (Ready.WAIT_TIME, nanoseconds)."""
    READY, WAIT_TIME, WAIT, WAIT_EVENT, NEVER = range(5)  # enum frag_ready


def plain(value):
    """Whether a graph can hold the value."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and plain(v) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str, _Component))


def text_of(value):
    """A value as the graph holds it."""
    if isinstance(value, _Component):
        return "$" + value.name
    if isinstance(value, dict):
        return {k: text_of(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [text_of(v) for v in value]
    return value


def _warn_of_misspelling(owner, key):
    import difflib
    known = difflib.get_close_matches(key, owner.spec.params, 1)
    if known:
        import warnings
        warnings.warn("%s: %s is no parameter and becomes an attribute; did you mean %s?"
                      % (owner.name, key, known[0]), stacklevel=4)


def take_parameters(owner, params):
    """Those that the graph gives to an object with a spec; all others become attributes."""
    given = {}
    for key, value in params.items():
        if key not in owner.spec.params:
            _warn_of_misspelling(owner, key)
        if key not in owner.spec.params or not plain(value):
            owner.spec.params.pop(key, None)
            setattr(owner, key, value)
        else:
            owner.spec.params[key].accept(value)
            given[key] = value
    return given


class _Component:
    """type: a type of frag's; None: the class is the type, and has setup(spec)."""

    def __init__(self, fragment, type, name, params):
        self.fragment = fragment
        self.type = type
        self.args = params
        self.name = name or type or self.__class__.__name__.lower()
        if type is None:
            self.spec = OperatorSpec(fragment)
            self.setup(self.spec)
            params = take_parameters(self, params)
        self.params = params

    def setup(self, spec):
        """Declares parameters, which are attributes from initialize on."""

    def initialize(self):
        """Is called once, before anything runs."""

    def declaration(self, types=None):
        """types: the names of those in Python."""
        type = self.type if self.type is not None else types[self]
        return {"type": type, **{k: text_of(v) for k, v in self.params.items() if v is not None}}

    # What the extension calls.

    def _set_params(self, params):
        for name, value in params.items():
            setattr(self, name, value)


class Condition(_Component):
    """A condition of an operator: Condition(fragment, "periodic", recess_period="10ms").

    A class with check(timestamp) is a condition in Python. The timestamp is that of the fragment's
    clock in nanoseconds, and the answer one of Ready. update_state(timestamp) is called before each
    check, on_execute(timestamp) after each tick, start() and stop() around the operator's own. An
    answer WAIT is asked for again every few ms, or at once after changed().
    """
    _kind = "condition"

    def __init__(self, fragment, type=None, name=None, **params):
        self._operator = None
        self._handle = None
        super().__init__(fragment, type, name, params)
        if type is None and not callable(getattr(self, "check", None)):
            raise TypeError("%s has no check; a condition in Python has check(timestamp), any other "
                            "one names its type" % self.__class__.__name__)

    def start(self):
        pass

    def stop(self):
        pass

    def changed(self):
        """Has a condition in Python checked again at once. Any thread may call it."""
        if self._handle is not None:
            self._handle.changed()

    def declaration(self, types=None):
        return {**super().declaration(types), "name": self.name}

    def _attach(self, handle):
        self._handle = handle

    def _call(self, event):
        """Asks or sets one of frag's own types, through an operator in Python that runs."""
        operator = self._operator
        if operator is not None and operator._context is not None:
            return operator._context._condition(self.name, event)
        others = operator.fragment.operators.values() if operator is not None else ()
        for other in others:
            if other._context is not None:
                return other._context._condition(self.name, event, operator.name)
        raise RuntimeError("the operator of condition %s does not run" % self.name)


class Resource(_Component):
    """A resource of a fragment: Resource(fragment, "block_memory_pool", name="pool", ...).

    A class of your own is a resource in Python, an object that operators share: by a parameter, by
    position, or by operator.resource(name).
    """
    _kind = "resource"

    def __init__(self, fragment, type=None, name=None, **params):
        self._context = None
        super().__init__(fragment, type, name, params)
        if fragment._resources.setdefault(self.name, self) is not self:
            raise ValueError("%s has two resources called %s" % (fragment.name, self.name))

    def _attach(self, handle):
        pass


class _Native(Resource):
    """A resource of frag's that a graph made."""

    def __init__(self, operator, name):
        super().__init__(operator.fragment, "resource", name)


class Clock:
    """The clock of a fragment. Times are nanoseconds; durations may be timedeltas."""

    def __init__(self, context):
        self._context = context

    def _call(self, what, time=0, scale=0.0):
        if self._context is None:
            raise RuntimeError("an operator has a clock from initialize on")
        if hasattr(time, "total_seconds"):
            time = round(time.total_seconds() * 1e9)
        return self._context._clock(what, time, scale)

    def timestamp(self):
        return self._call(0)

    def time(self):
        """In seconds."""
        return self._call(0) * 1e-9

    def sleep_for(self, duration):
        self._call(1, duration)

    def sleep_until(self, time):
        self._call(2, time)

    def advance_to(self, time):
        """Sets a manual or synthetic clock forward."""
        self._call(3, time)

    def advance_by(self, duration):
        self._call(4, duration)

    def set_time_scale(self, scale):
        """Lets a realtime clock run faster or slower."""
        self._call(5, 0, scale)
