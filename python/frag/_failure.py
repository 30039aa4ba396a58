# SPDX-License-Identifier: Apache-2.0
"""Errors of frag, and how an exception in an operator becomes the sentence of its failure."""
import sys

__all__ = ["Error", "describe", "last_exception", "forget"]


class Error(Exception):
    """An application, its graph or one of its operators has failed.

    code is a negative errno, operator "fragment.operator" or "". Where an exception of an
    operator in Python was the reason, it is the __cause__.
    """

    def __init__(self, sentence, code=0, operator=""):
        super().__init__(sentence)
        self.code = code
        self.operator = operator


_last = None
_prints = False  # nobody else will show the traceback


def print_tracebacks():
    """Has tracebacks printed on stderr: for hosts, whose driver shows the sentence only."""
    global _prints
    _prints = True


def last_exception():
    return _last


def forget():
    global _last
    _last = None


def _places(exception):
    """Where it was raised, innermost first."""
    places = []
    traceback = exception.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = code.co_filename.rsplit("/", 1)[-1]
        places.append("%s:%d in %s" % (name, traceback.tb_lineno, code.co_name))
        traceback = traceback.tb_next
    return places[::-1][:8]


def describe(exception, what):
    """The sentence of an exception; `what` has raised it."""
    global _last
    _last = exception
    if _prints:
        import traceback
        traceback.print_exception(exception, file=sys.stderr)
    if isinstance(exception, SystemExit):
        text = "called sys.exit(%s); return frag.DONE or call context.stop() instead" % exception
    else:
        try:
            message = str(exception)
        except Exception:
            message = "(its text cannot be made)"
        text = "raised %s%s" % (type(exception).__name__, ": " + message if message else "")
    places = _places(exception)
    sentence = "%s %s%s" % (what, text[:500], " (%s)" % "; ".join(places) if places else "")
    return " | ".join(sentence.split("\n"))[:1000]
