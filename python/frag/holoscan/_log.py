# SPDX-License-Identifier: Apache-2.0
"""Lines of the log: "[error] [holoscan] text" on stderr, by HOLOSCAN_LOG_LEVEL."""
import os
import sys

LEVELS = ("trace", "debug", "info", "warning", "error", "critical", "off")
_NAMES = {"TRACE": 0, "DEBUG": 1, "INFO": 2, "WARN": 3, "WARNING": 3, "ERROR": 4, "CRITICAL": 5,
          "OFF": 6}
level = _NAMES.get(os.environ.get("HOLOSCAN_LOG_LEVEL", "INFO").upper(), 2)


def of_environment():
    """The level that HOLOSCAN_LOG_LEVEL names; None: it names none."""
    return _NAMES.get(os.environ.get("HOLOSCAN_LOG_LEVEL", "").upper())


def log(number, text, *args):
    if number >= level:
        sys.stdout.flush()
        sys.stderr.write("[%s] [holoscan] %s\n" % (LEVELS[number], text % args if args else text))


def info(text, *args):
    log(2, text, *args)


def warning(text, *args):
    log(3, text, *args)


def error(text, *args):
    log(4, text, *args)
