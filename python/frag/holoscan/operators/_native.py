# SPDX-License-Identifier: Apache-2.0
"""Holoscan's operators that are operators in C of frag.

A class says its type in graphs, its ports, and how its arguments become parameters of that type. An
argument that frag has no counterpart of is refused when the application starts, by a sentence with
the place where the operator was made; at its default it has no effect.
"""
import sys

from .._args import Arg, ArgType, arg_to_py_object, py_object_to_arg, type_of
from .._component import Parameter, ResourceBase, Unsupported
from .._operator import OperatorBase
from .._spec import OperatorSpec

ROW_MAJOR = (("not adjacent", "Tensor must have a row-major memory layout"),)


def place():
    """The file and line outside of this package that called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("frag."):
        frame = frame.f_back
    return "%s:%d" % (frame.f_code.co_filename, frame.f_lineno)


class NativeOperator(OperatorBase):
    """The base of these operators."""
    _native_type = None
    _inputs = ()
    _outputs = ()
    _frag_ports = {}  # ports that frag's operator calls otherwise
    _same = ()  # parameters that are called as the arguments
    _types = {}  # types of arguments, where the value does not say it
    _refused = None  # why no graph can have it
    _says = ()  # words of a failure of frag's operator, and those of Holoscan's

    def _make(self, fragment, args, name, **values):
        """What the constructors do. None: the argument was not given."""
        self._place = place()
        self._init_operator(fragment, args, {"name": name})
        spec = OperatorSpec(self.fragment, self)
        self._spec = spec
        self._setup_ports(spec)
        self._given = values
        for key, value in values.items():
            spec._params[key] = Parameter(key, value)
            if value is not None:
                self._add_value(key, value)
        self._own_args = len(self._args)

    def _setup_ports(self, spec):
        for port in self._inputs:
            spec.input(port)
        for port in self._outputs:
            spec.output(port)
        for name, port in (*spec.inputs.items(), *spec.outputs.items()):
            port._frag_name = self._frag_ports.get(name, port._frag_name)

    def _add_value(self, key, value):
        if key in self._types:
            self._args.append(Arg(key, value, type_of(self._types[key])))
            return
        if isinstance(value, ResourceBase):
            self._args.append(py_object_to_arg(value, key))
        try:
            self.add_arg(**{key: value})
        except RuntimeError:  # a dict, a callback, an empty list
            self._args.append(Arg(key, value, ArgType()))

    def add_arg(self, *args, **kwargs):
        """Adds arguments; what is added behind the constructor counts more than what it got."""
        super().add_arg(*args, **kwargs)
        for arg in self._args[getattr(self, "_own_args", len(self._args)):]:
            if arg.name in self._given and arg.has_value:
                self._given[arg.name] = arg_to_py_object(arg)

    def initialize(self):
        if self._context is None:
            raise RuntimeError("%s: operators in C are initialized when their application starts"
                               % self.name)

    def _native_parameters(self):
        """The parameters of frag's operator."""
        if self._refused is not None:
            self.refuse(type(self).__name__, self._refused)
        return {key: self._given[key] for key in self._same if self._given[key] is not None}

    def _converter(self, port):
        """Makes what a port takes of what operators in Python send to it. None: it is taken so."""
        return None

    def _in_holoscans_words(self, text):
        """A failure with the words that programs may look for, or with what its sentence lacks."""
        if 'unknown operator type "%s"' % self._native_type in text:
            return "%s (%s of %s needs an installed frag: frag's wheel has no videos and cameras; " \
                   "name the installed library's folder in LD_LIBRARY_PATH)" % (
                       text, type(self).__name__, self._place)
        return next(("%s (%s)" % (text, words) for ours, words in self._says if ours in text), text)

    def refuse(self, what, instead):
        raise Unsupported("%s: %s is not supported by frag; %s" % (self._place, what, instead))

    def _refuse_unless(self, instead, **defaults):
        for key, value in defaults.items():
            if self._given[key] != value:
                self.refuse("%s(%s=%r)" % (type(self).__name__, key, self._given[key]), instead)
