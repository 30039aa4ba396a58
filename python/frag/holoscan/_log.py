# SPDX-License-Identifier: Apache-2.0
"""Lines of the log: "[error] [holoscan] text" on stderr.

HOLOSCAN_LOG_LEVEL chooses which, HOLOSCAN_LOG_FORMAT their form.
"""
import os
import sys

LEVELS = ("trace", "debug", "info", "warning", "error", "critical", "off")
_NAMES = {"TRACE": 0, "DEBUG": 1, "INFO": 2, "WARN": 3, "WARNING": 3, "ERROR": 4, "CRITICAL": 5,
          "OFF": 6}
level = _NAMES.get(os.environ.get("HOLOSCAN_LOG_LEVEL", "INFO").upper(), 2)
pattern = os.environ.get("HOLOSCAN_LOG_FORMAT", "")  # empty: the form above


def of_environment():
    """The level that HOLOSCAN_LOG_LEVEL names; None: it names none."""
    return _NAMES.get(os.environ.get("HOLOSCAN_LOG_LEVEL", "").upper())


def log(number, text, *args):
    if number >= level:
        text = text % args if args else text
        sys.stdout.flush()
        sys.stderr.write(line_of(LEVELS[number], text) + "\n" if pattern else
                         "[%s] [holoscan] %s\n" % (LEVELS[number], text))


# The forms of lines that have a name, as patterns of spdlog.
_FORMS = {"SHORT": "[%^%l%$] %v", "DEFAULT": "[%^%l%$] [%s:%#] %v",
          "LONG": "[%Y-%m-%d %H:%M:%S.%e] [%n] [%^%l%$] [%s:%#] %v",
          "FULL": "[%Y-%m-%d %H:%M:%S.%e] [%t] [%n] [%^%l%$] [%s:%#] %v"}


def line_of(name, text):
    """A line by the pattern: what strftime does not know are fields of spdlog."""
    import threading
    import time
    now = time.time()
    code = sys._getframe(3)
    fields = {"v": text, "l": name, "L": name[:1].upper(), "n": "holoscan", "^": "", "$": "",
              "s": os.path.basename(code.f_code.co_filename), "#": str(code.f_lineno),
              "t": str(threading.get_native_id()), "P": str(os.getpid()), "%": "%",
              "e": "%03d" % (now % 1 * 1e3), "f": "%06d" % (now % 1 * 1e6)}
    result, rest = "", iter(_FORMS.get(pattern.upper(), pattern))
    for character in rest:
        flag = next(rest, "%") if character == "%" else None
        result += character if flag is None else fields[flag] if flag in fields else \
            time.strftime("%" + flag, time.localtime(now))
    return result


def info(text, *args):
    log(2, text, *args)


def warning(text, *args):
    log(3, text, *args)


def error(text, *args):
    log(4, text, *args)
