# SPDX-License-Identifier: Apache-2.0
"""The flags of Holoscan's command line."""
import os
import sys

_FLAGS = {"--driver": ("run_driver", False), "--worker": ("run_worker", False),
          "--address": ("driver_address", True), "--worker-address": ("worker_address", True),
          "--fragments": ("worker_targets", True), "--config": ("config_path", True)}

_HELP = """usage: %s [OPTIONS]... [FLAGS OF THE APPLICATION]...

  -h, --help                 show this text
  --version                  show the version
  --driver                   be the driver
  --worker                   be a worker
  --address ADDRESS          address of the driver: HOST[:PORT]
  --worker-address ADDRESS   address of this worker: HOST[:PORT]
  --fragments NAMES          fragments of this worker, with commas between them, or all
  --config FILE              the configuration file
"""


class CLIOptions:
    """What the flags say."""

    def __init__(self, run_driver=False, run_worker=False, driver_address="", worker_address="",
                 worker_targets=(), config_path=""):
        self.run_driver = run_driver
        self.run_worker = run_worker
        self.driver_address = driver_address
        self.worker_address = worker_address
        self.worker_targets = list(worker_targets)
        self.config_path = config_path

    def __repr__(self):
        return ("<holoscan.core.CLIOptions: run_driver:%s run_worker:%s driver_address:'%s' "
                "worker_address:'%s' worker_targets:%s config_path:'%s'>"
                % (self.run_driver, self.run_worker, self.driver_address, self.worker_address,
                   ",".join(self.worker_targets), self.config_path))

    def print(self):
        print(self)


def parse(argv):
    """argv: the interpreter, the program and its flags. Returns (options, what is left)."""
    options = CLIOptions(config_path="")
    rest, words = [], list(argv[1:]) or [""]
    rest.append(words.pop(0))
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-h", "--help"):
            print(_HELP % os.path.basename(rest[0]), end="")
            sys.exit(0)
        if word == "--version" and "pytest" not in rest[0]:
            from . import __version__
            print(__version__)
            sys.exit(0)
        key, has_value = _FLAGS.get(name, (None, False))
        if key is None or (equals and not has_value) or (has_value and not equals and not words):
            rest.append(word)
            continue
        if has_value and not equals:
            value = words.pop(0)
        if key == "worker_targets":
            options.worker_targets += value.split(",")
        else:
            setattr(options, key, value if has_value else True)
    return options, rest
